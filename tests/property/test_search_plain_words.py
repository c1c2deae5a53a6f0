"""Many ASCII texts cut at once give the tokens that the analyzer gives for each."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.analysis.plain_words import LENGTH_MAX, cut_all

STANDARD = Analyzers.of({}).analyzer("standard")
SIGNS = st.text(st.sampled_from("aZ09_'.:,; \n-\"\x00~"), max_size=40)
WORDS = st.text(st.sampled_from("abZ9"), min_size=6, max_size=20)  # of eight letters or less, and of more
RUNS = st.builds(
    lambda part, length, end: (part * length)[:length] + end,
    st.sampled_from(["a", "1", "_", "a.", "1,", "ab.", "_a", "_a.b"]),
    st.sampled_from([LENGTH_MAX - 1, LENGTH_MAX, LENGTH_MAX + 1, 2 * LENGTH_MAX, 1500]),
    SIGNS,
)
TEXTS = st.one_of(SIGNS, st.lists(st.one_of(SIGNS, WORDS, RUNS), max_size=4).map(" ".join))


@settings(deadline=None)  # the first call may have to compile
@given(st.lists(TEXTS, min_size=1, max_size=30))
@example([("a" * (LENGTH_MAX - 1)) + ".b", ("a" * LENGTH_MAX) + ".b"])
def test_as_the_analyzer_cuts_each(texts: list[str]) -> None:
    words = cut_all(texts)
    tokens = [words.terms[number].decode() for number in words.tokens.tolist()]
    assert len(set(words.terms)) == len(words.terms)
    start = 0
    for text, count in zip(texts, words.counts.tolist(), strict=True):
        positions = words.positions[start : start + count].tolist()
        assert (tokens[start : start + count], positions) == STANDARD.tokens(text)
        start += count
    assert start == len(tokens)


def test_more_words_than_the_table_begins_with() -> None:
    text = " ".join(f"w{number} longer-than-eight{number}" for number in range(3000))
    words = cut_all([text, text])
    seen = dict.fromkeys(STANDARD.tokens(text)[0])
    assert [term.decode() for term in words.terms] == list(seen)
    assert len(seen) == 6002


def test_only_the_standard_analyzer_is_plain() -> None:
    analyzers = Analyzers.of(
        {"analyzer": {"short": {"type": "standard", "max_token_length": 9}, "same": {"type": "standard"}}}
    )
    names = ("standard", "same", "short", "english", "whitespace", "stop", "simple")
    assert [name for name in names if analyzers.analyzer(name).is_plain] == ["standard", "same"]
