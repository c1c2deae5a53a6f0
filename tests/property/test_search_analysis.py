"""The standard tokenizer against a twin that asks UAX #29's rules of every place between two characters."""

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.analysis.tokenizers import StandardTokenizer

CHARS = "aB1٣_.,;:' \n-é\u0301\u00ad\u2019·カー한글яж\u2060\u202f٬x9\u0308\r"
NAMES = ["ALetter", "Numeric", "Katakana", "ExtendNumLet", "MidNumLet", "MidLetter", "MidNum", "Single_Quote"]
PROPERTIES = {name: regex.compile(rf"\p{{WB={name}}}") for name in NAMES}
IGNORED = regex.compile(r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]")
NEWLINES = "\r\n"
TAKES_LOW = {"ALetter", "Numeric", "Katakana", "ExtendNumLet"}
MID_LETTER, MID_NUM = {"MidLetter", "MidNumLet", "Single_Quote"}, {"MidNum", "MidNumLet", "Single_Quote"}


def property_of(char: str) -> str:
    return next((name for name, pattern in PROPERTIES.items() if pattern.match(char)), "Other")


def joined(kinds: list[str], place: int) -> bool:
    """Whether no boundary stands before kinds[place], by rules WB5 to WB13b."""
    before, after = kinds[place - 1], kinds[place]
    earlier = kinds[place - 2] if place > 1 else ""
    later = kinds[place + 1] if place + 1 < len(kinds) else ""
    return (
        {before, after} <= {"ALetter", "Numeric"}
        or (before == "ALetter" and after in MID_LETTER and later == "ALetter")
        or (earlier == "ALetter" and before in MID_LETTER and after == "ALetter")
        or (earlier == "Numeric" and before in MID_NUM and after == "Numeric")
        or (before == "Numeric" and after in MID_NUM and later == "Numeric")
        or before == after == "Katakana"
        or (before in TAKES_LOW and after == "ExtendNumLet")
        or (before == "ExtendNumLet" and after in TAKES_LOW)
    )


def twin(text: str) -> list[str]:
    """Segments that hold a letter, a digit or Katakana."""
    clusters: list[str] = []  # WB4: a character with what is ignored after it
    for char in text:
        if clusters and IGNORED.match(char) and clusters[-1][0] not in NEWLINES:
            clusters[-1] += char
        else:
            clusters.append(char)
    kinds = [property_of(cluster[0]) for cluster in clusters]
    segments: list[list[int]] = []
    for place in range(len(clusters)):
        if place and joined(kinds, place):
            segments[-1].append(place)
        else:
            segments.append([place])
    core = {"ALetter", "Numeric", "Katakana"}
    return [
        "".join(clusters[place] for place in part) for part in segments if core & {kinds[p] for p in part}
    ]


@settings(max_examples=1000, deadline=None)
@given(st.text(CHARS, max_size=14))
def test_word_breaks(text: str) -> None:
    assert StandardTokenizer().terms(text) == twin(text)


@settings(max_examples=300, deadline=None)
@given(st.text("aB1_.,;:' -9", max_size=14))
def test_the_pattern_for_ascii_says_the_same(text: str) -> None:
    assert StandardTokenizer().terms(text) == [token.term for token in StandardTokenizer().tokens(text)]


DEFINITIONS = {
    "filter": {"syn": {"type": "synonym_graph", "synonyms": ["a b, c", "x => the y z"]}},
    "analyzer": {
        "plain": {"tokenizer": "standard", "char_filter": ["html_strip"], "filter": ["lowercase", "stop"]},
        "shingled": {"tokenizer": "standard", "filter": ["lowercase", "stop", "shingle"]},
        "graph": {"tokenizer": "whitespace", "filter": ["lowercase", "syn", "unique"]},
        "grams": {"tokenizer": "ngram", "filter": ["asciifolding", "trim", "length"]},
    },
}
ANALYZERS = Analyzers.of(DEFINITIONS)
PARTS = [*"abcxyz THE <>&;'é1\n😀ʼ日", "the ", "<b>", "&amp;", "<!--"]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([*DEFINITIONS["analyzer"], "english", "stop", "fingerprint", "pattern"]),
    st.lists(st.sampled_from(PARTS), max_size=30).map("".join),
)
def test_what_holds_of_every_analyzer(name: str, text: str) -> None:
    analyzer = ANALYZERS.analyzer(name)
    detailed = analyzer.detailed(text)
    assert analyzer.tokens(text) == ([t.term for t in detailed], [t.position for t in detailed])
    assert analyzer.tokens(text) == analyzer.tokens(text)
    assert all(0 <= t.start_offset <= t.end_offset <= len(text) for t in detailed)
    positions = [token.position for token in detailed]
    assert positions == sorted(positions)
    assert all(position >= 0 for position in positions)
