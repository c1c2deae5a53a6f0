"""Stemmers by the names that settings use."""

import re
from collections.abc import Callable
from itertools import pairwise

import Stemmer  # type: ignore[import-not-found]  # a compiled module without stubs

from graphdb.search.analysis.asian_stemmers import ASIAN_STEMMERS
from graphdb.search.analysis.iberian_stemmers import portuguese_minimal, portuguese_rslp, spanish_plural
from graphdb.search.analysis.kstem import kstem
from graphdb.search.analysis.light_stemmers import LIGHT_STEMMERS
from graphdb.search.errors import illegal_argument

__all__ = ["Stem", "porter", "possessive", "snowball", "stemmer"]

Stem = Callable[[str], str]

_SNOWBALL_LANGUAGES = """
    armenian basque catalan danish estonian finnish french german hungarian irish italian lithuanian norwegian
    portuguese romanian russian serbian spanish swedish turkish"""
_SNOWBALL = {name: name for name in _SNOWBALL_LANGUAGES.split()} | {
    # For these Lucene has its own, and stems some words otherwise; Snowball has none for Galician.
    "brazilian": "portuguese",
    "galician": "portuguese",
    "greek": "greek",
    "dutch": "dutch_porter",
    "dutch_kp": "dutch",  # Kraaij and Pohlmann's, which Snowball has made its Dutch stemmer
    "kp": "dutch",
    "german2": "german",
    "porter2": "english",
}
# Elasticsearch has these as well.
_NOT_HERE = {
    "lovins": "use [english] or [porter2]",
    "minimal_galician": "use [galician]",
    "minimal_swedish": "use [light_swedish]",
    "persian": "use [stemmer_override]",
}
_POSSESSIVE = ("'s", "'S", "\u2019s", "\u2019S", "\uff07s", "\uff07S")


def _snowball(algorithm: str) -> Stem:
    # Analyzers remember each term's outcome themselves.
    stem: Stem = Stemmer.Stemmer(algorithm, 0).stemWord
    return stem


_PORTER = _snowball("porter")
# Porter's own program departs from his paper for -bli and -logi. Lucene follows the program,
# Snowball the paper.
# Snowball makes one of two consonants for some consonants only: not in `trekked`.
_DOUBLED = re.compile(r"(.*([chjkqvwxy]))\2(?:ed|ing)s?", re.DOTALL)
_DEPARTURE = re.compile(r"(.*)(bl|log)(?:[yi](?:ing|ed)?s?|ies)", re.DOTALL)


def porter(term: str) -> str:
    """Porter's first algorithm; as Lucene's, it leaves words of one or two letters alone."""
    if len(term) < 3:
        return term
    found = _DEPARTURE.fullmatch(term)
    if found and _has_measure(found[1]):
        return _PORTER(f"{found[1]}{'ble' if found[2] == 'bl' else 'log'}")
    if found := _DOUBLED.fullmatch(term):
        vowels = _vowels(found[1] + found[2])
        if any(vowels) and not vowels[-1]:
            return _PORTER(found[1])
    return _PORTER(term)


def _has_measure(stem: str) -> bool:
    """Whether a vowel stands somewhere before a consonant: Porter's m > 0."""
    return any(before and not after for before, after in pairwise(_vowels(stem)))


def _vowels(stem: str) -> list[bool]:
    """Which letters are vowels, y after a consonant among them."""
    vowels: list[bool] = []
    for number, char in enumerate(stem):
        vowels.append(char in "aeiou" or (char == "y" and number > 0 and not vowels[-1]))
    return vowels


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


_OWN: dict[str, Stem] = {
    "english": porter,
    "porter": porter,
    "kstem": kstem,
    "light_english": kstem,
    "minimal_english": minimal_english,
    "possessive_english": possessive,
    "minimal_portuguese": portuguese_minimal,
    "portuguese_rslp": portuguese_rslp,
    "spanish_plural": spanish_plural,
    **LIGHT_STEMMERS,
    **ASIAN_STEMMERS,
}


def stemmer(language: str) -> Stem:
    """That of the filter `stemmer`. Names may be written without underscores too (`lightFrench`)."""
    name = _plain_name(language)
    if name in _OWN:
        return _OWN[name]
    if name in _SNOWBALL:
        return _snowball(_SNOWBALL[name])
    if name in _NOT_HERE:
        raise illegal_argument(f"the stemmer [{name}] is not supported: {_NOT_HERE[name]}")
    raise illegal_argument(f"Invalid stemmer class specified: {language[:100]}")


def _plain_name(language: str) -> str:
    written = language.lower()
    joined = {name.replace("_", ""): name for name in (*_OWN, *_NOT_HERE)}
    return joined.get(written, written)


def snowball(language: str) -> Stem:
    """That of the filter `snowball`, whose languages begin with a capital letter."""
    name = {"English": "porter2", "German2": "german2"}.get(language, language.lower())
    if name == "porter":
        return _snowball("porter")
    if name in _OTHER_SNOWBALL:
        return _snowball(name)
    if name in _SNOWBALL:
        return _snowball(_SNOWBALL[name])
    if name == "lovins":
        raise illegal_argument(f"the stemmer [{language}] is not supported: {_NOT_HERE[name]}")
    raise illegal_argument(f"Invalid stemmer class specified: {language[:100]}")


_OTHER_SNOWBALL = frozenset({"arabic", "greek", "hindi", "indonesian", "nepali", "tamil", "yiddish"})
