"""One spelling for letters that a language writes in several ways: the filters `…_normalization`.

Each function maps a term to a term. Source: the tables of Lucene's filters of the same names; the German one
has the rules of Snowball's `german2`.
"""

import re
import unicodedata

from graphdb.search.analysis import indic

__all__ = ["NORMALIZATIONS"]

_MARKS = "\u0640\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"  # tatweel and the signs of vowels

_ARABIC = str.maketrans(
    "\u0622\u0623\u0625\u0649\u0629",  # alef with madda, hamza above, hamza below; dotless yeh; teh marbuta
    "\u0627\u0627\u0627\u064a\u0647",
    _MARKS,
)
_PERSIAN = str.maketrans(
    "\u06cc\u06d2\u06a9\u06c0\u06c1",  # Farsi yeh, yeh barree; keheh; heh with yeh, heh goal
    "\u064a\u064a\u0643\u0647\u0647",
    "\u0654",  # hamza above
)
# "Bald" Latin: Cyrillic letters become Latin ones, and these lose their marks.
_SERBIAN = str.maketrans("абвгдежзијклмнопрстћуфхцчшčćžš", "abvgdezzijklmnoprstcufhccscczs") | str.maketrans(
    {"ђ": "dj", "đ": "dj", "љ": "lj", "њ": "nj", "џ": "dz"}
)


def _arabic(term: str) -> str:
    return term.translate(_ARABIC)


def _persian(term: str) -> str:
    return term.translate(_PERSIAN)


def _serbian(term: str) -> str:
    """Of a term in lower case; capital letters stay."""
    return term.translate(_SERBIAN)


_UMLAUTS = {"ä": "a", "ö": "o", "ü": "u"}


def _german(term: str) -> str:
    """Without umlauts, written with dots or with an e; ue is none after a vowel or q."""
    result: list[str] = []
    after_vowel = drops_e = False
    for char in term:
        if char == "e" and drops_e:
            char = ""
        result.append("ss" if char == "ß" else _UMLAUTS.get(char, char))
        drops_e = char in ("a", "o") or (char == "u" and not after_vowel)
        after_vowel = char in ("", "a", "o", "u", "e", "i", "q", "y", "ä", "ö", "ü")
    return "".join(result)


_LETTERS = str.maketrans("äÄöÖ", "æÆøØ")
_PAIR = re.compile("([aA])[aAoO]|([aA])[eE]|([oO])[eEoO]")
_PAIRED = {"a": "å", "A": "Å"}, {"a": "æ", "A": "Æ"}, {"o": "ø", "O": "Ø"}


def _scandinavian(term: str) -> str:
    """With å, æ and ø for the Swedish letters and for the pairs that replace them."""

    def letter(found: "re.Match[str]") -> str:
        kind = found.lastindex or 1
        return _PAIRED[kind - 1][found[kind]]

    return _PAIR.sub(letter, term).translate(_LETTERS)


_FOLDED = str.maketrans("åäæÅÄÆöøÖØ", "aaaAAAooOO")
_FOLDED_PAIR = re.compile("([aA])[aAeEoO]|([oO])[eEoO]")


def _scandinavian_folding(term: str) -> str:
    """With a and o for all of these letters and pairs."""
    return _FOLDED_PAIR.sub(lambda found: found[0][0], term).translate(_FOLDED)


_SORANI = str.maketrans(
    "\u064a\u0649\u0643\u0629\u06be\u0692",  # yeh, dotless yeh; kaf; teh marbuta; heh doachashmee; reh with v
    "\u06cc\u06cc\u06a9\u06d5\u0647\u0695",
)
_HEH, _AE, _REH, _RREH, _NON_JOINER = "\u0647", "\u06d5", "\u0631", "\u0695", "\u200c"


def _sorani(term: str) -> str:
    """Heh is a vowel at the end and before a non-joiner, and reh is rolled at the beginning."""
    result: list[str] = []
    for at, char in enumerate(term):
        if char == _NON_JOINER and result and result[-1] == _HEH:
            result[-1] = _AE
        elif char == _HEH and at == len(term) - 1:
            result.append(_AE)
        elif char == _REH and not result:
            result.append(_RREH)
        elif char not in _MARKS and unicodedata.category(char) != "Cf":
            result.append(char.translate(_SORANI))
    return "".join(result)


# By the types that settings use.
NORMALIZATIONS = {
    "arabic_normalization": _arabic,
    "bengali_normalization": indic.bengali,
    "german_normalization": _german,
    "hindi_normalization": indic.hindi,
    "indic_normalization": indic.indic,
    "persian_normalization": _persian,
    "scandinavian_folding": _scandinavian_folding,
    "scandinavian_normalization": _scandinavian,
    "serbian_normalization": _serbian,
    "sorani_normalization": _sorani,
}
