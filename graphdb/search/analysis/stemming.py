"""Stemmers by the names that settings use: those that Snowball has as Lucene has them."""

import re
from collections.abc import Callable

import Stemmer  # type: ignore[import-not-found]  # a compiled module without stubs

from graphdb.search.errors import illegal_argument

__all__ = ["porter", "possessive", "snowball", "stemmer"]

Stem = Callable[[str], str]

# Lucene's light, minimal and own stemmers (german, light_french, kstem and so on) are not Snowball's.
_SNOWBALL_LANGUAGES = """
    armenian basque catalan danish estonian finnish french hungarian irish italian lithuanian norwegian
    portuguese romanian russian spanish swedish turkish"""
_SNOWBALL = {name: name for name in _SNOWBALL_LANGUAGES.split()} | {
    "dutch": "dutch_porter",
    "german2": "german",
    "porter2": "english",
}
_POSSESSIVE = ("'s", "'S", "\u2019s", "\u2019S", "\uff07s", "\uff07S")


def _snowball(algorithm: str) -> Stem:
    # Analyzers remember each term's outcome themselves.
    stem: Stem = Stemmer.Stemmer(algorithm, 0).stemWord
    return stem


_PORTER = _snowball("porter")
# Porter's own program departs from his paper for -bli and -logi. Lucene follows the program,
# Snowball the paper.
_DEPARTURE = re.compile(r"(.*)(bl|log)(?:[yi](?:ing|ed)?s?|ies)", re.DOTALL)


def porter(term: str) -> str:
    """Porter's first algorithm; as Lucene's, it leaves words of one or two letters alone."""
    if len(term) < 3:
        return term
    found = _DEPARTURE.fullmatch(term)
    if found and _has_measure(found[1]):
        return _PORTER(f"{found[1]}{'ble' if found[2] == 'bl' else 'log'}")
    return _PORTER(term)


def _has_measure(stem: str) -> bool:
    """Whether a vowel, or y after a consonant, stands somewhere before a consonant: Porter's m > 0."""
    vowel = False
    for number, char in enumerate(stem):
        before, vowel = vowel, char in "aeiou" or (char == "y" and number > 0 and not vowel)
        if before and not vowel:
            return True
    return False


def possessive(term: str) -> str:
    """Without an English possessive at its end."""
    return term[:-2] if term.endswith(_POSSESSIVE) else term


def minimal_english(term: str) -> str:
    """Without the s of most plurals. Source: Harman's S stemmer, as Lucene's EnglishMinimalStemmer."""
    if len(term) < 3 or not term.endswith("s") or term.endswith(("us", "ss")):
        return term
    if term.endswith("ies"):
        return f"{term[:-3]}y" if len(term) > 3 and term[-4] not in "ae" else term
    if term.endswith("es") and term[-3] in "iaoe":
        return term
    return term[:-1]


def stemmer(language: str) -> Stem:
    """That of the filter `stemmer`."""
    own: dict[str, Stem] = {
        "english": porter,
        "porter": porter,
        "minimal_english": minimal_english,
        "possessive_english": possessive,
    }
    name = language.lower()
    if name in own:
        return own[name]
    if name in _SNOWBALL:
        return _snowball(_SNOWBALL[name])
    raise illegal_argument(f"Invalid stemmer class specified: {language}")


def snowball(language: str) -> Stem:
    """That of the filter `snowball`, whose languages begin with a capital letter."""
    name = {"English": "porter2", "German2": "german2"}.get(language, language.lower())
    if name == "porter":
        return _snowball("porter")
    if name not in _SNOWBALL:
        raise illegal_argument(f"Invalid stemmer class specified: {language}")
    return _snowball(_SNOWBALL[name])
