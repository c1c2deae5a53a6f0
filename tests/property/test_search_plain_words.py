"""Many ASCII texts cut at once give the tokens that the analyzer gives for each."""

from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.analysis.plain_words import cut_all

STANDARD = Analyzers.of({}).analyzer("standard")
PLAIN = st.text(st.sampled_from("aZ09_'.:,; \n-\"\x00~"), max_size=40)


@settings(deadline=None)  # the first call may have to compile
@given(st.lists(PLAIN, min_size=1, max_size=30))
def test_as_the_analyzer_cuts_each(texts: list[str]) -> None:
    words = cut_all([text.encode() for text in texts])
    tokens = [words.terms[number].decode() for number in words.tokens.tolist()]
    start = 0
    for text, count in zip(texts, words.counts.tolist(), strict=True):
        positions = words.positions[start : start + count].tolist()
        assert (tokens[start : start + count], positions) == STANDARD.tokens(text)
        start += count
    assert start == len(tokens)


def test_more_words_than_the_table_begins_with() -> None:
    text = " ".join(f"w{number}" for number in range(5000))
    words = cut_all([text.encode(), text.encode()])
    assert [term.decode() for term in words.terms] == text.split()
    assert words.tokens.tolist() == [*range(5000), *range(5000)]


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 200, 254, 255, 256, 300]), st.sampled_from(" \n\t\x1f")), max_size=6
    )
)
def test_a_run_that_is_too_long_is_found(runs: list[tuple[int, str]]) -> None:
    text = "".join("a" * length + space for length, space in runs)
    assert STANDARD.is_plain(text) == (max((length for length, _ in runs), default=0) <= 255)


@settings(deadline=None)  # the first call may have to compile
@given(st.sampled_from(["a" * 255, "a" * 256, "é", "a b", "x" * 300 + " b", "it's", ""]))
def test_only_what_comes_out_alike_is_plain(text: str) -> None:
    assert STANDARD.is_plain(text) == (text.isascii() and max(map(len, text.split()), default=0) <= 255)


def test_an_analyzer_that_does_more_has_no_plain_texts() -> None:
    analyzers = Analyzers.of({})
    assert not any(
        analyzers.analyzer(name).is_plain("a b") for name in ("english", "whitespace", "stop", "simple")
    )
