"""Lists of stop words by the names that settings use: `_english_`, `_french_` ..."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

__all__ = ["CJK", "ENGLISH", "language_words", "stop_words"]

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET
_ENGLISH_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with"""
ENGLISH = frozenset(_ENGLISH_WORDS.split())
CJK = frozenset({*ENGLISH, "s", "t", "www"})


@cache
def _lists() -> dict[str, frozenset[str]]:
    """Of each language, from the file beside this module: read when a list is first asked for."""
    lists = {"english": ENGLISH, "cjk": CJK}
    text = Path(__file__).with_name("stop.words.txt").read_text("utf-8")
    for section in text.split("\n[")[1:]:
        language, _, words = section.partition("]")
        lists[language] = frozenset(words.split())
    return lists


def language_words(language: str) -> frozenset[str]:
    """Those of one language, by its English name; KeyError where it has no list."""
    return _lists()[language]


def stop_words(names: Sequence[str] | None, default: frozenset[str] = ENGLISH) -> frozenset[str]:
    """The words that a list names: words, and `_english_` for that language's."""
    if names is None:
        return default
    return frozenset().union(*map(_named, names))


def _named(name: str) -> frozenset[str]:
    if not (len(name) > 2 and name.startswith("_") and name.endswith("_")):
        return frozenset({name})
    if name == "_none_":
        return frozenset()
    if name == "_english_":
        return ENGLISH
    return _lists().get(name[1:-1], frozenset({name}))
