"""One spelling for letters of the scripts of India: `indic_normalization`, and what Hindi and Bengali add.

Sources: the Unicode Standard, chapter 12 (South Asian scripts: letters that look the same when they are
written with other code points); Pingali and Varma, "Word normalization in Indian languages"; Larkey, Connell
and AbdulJaleel, "Hindi CLIR in Thirty Days"; UzZaman and Khan, "A Double Metaphone Encoding for Bangla". The
tables are those of Lucene's filters of the same names.
"""

import re

__all__ = ["bengali", "hindi", "indic"]

_BLOCKS = {
    "D": 0x900, "B": 0x980, "P": 0xA00, "G": 0xA80, "O": 0xB00, "T": 0xB80, "E": 0xC00, "K": 0xC80,
    "M": 0xD00,
}  # fmt: skip
"""Where the block of a script begins: Devanagari, Bengali, Punjabi (Gurmukhi), Gujarati, Oriya, Tamil, Telugu
(E), Kannada, Malayalam.
"""
# The scripts, the letters that are written, and the one letter that they are, as places in the block; FF is
# the zero width joiner. The longest that fits counts.
_COMPOSED = """
    DG 05 3E 45 11; D 05 3E 46 12; DG 05 3E 47 13; DG 05 3E 48 14; DBPGO 05 3E 06; D 05 45 72; G 05 45
    0D; D 05 46 04; G 05 47 0F; PG 05 48 10; DG 05 49 11; D 05 4A 12; DG 05 4B 13; DPG 05 4C 14; DG 06
    45 11; D 06 46 12; DG 06 47 13; DG 06 48 14; M 07 57 08; D 09 41 0A; TM 09 57 0A; M 0E 46 10; D 0F
    45 0D; D 0F 46 0E; D 0F 47 10; O 0F 57 10; M 12 3E 13; EK 12 4C 14; E 12 55 13; TM 12 57 14; O 13 57
    14; D 15 3C 58; DP 16 3C 59; DP 17 3C 5A; DP 1C 3C 5B; DBO 21 3C 5C; DBO 22 3C 5D; M 23 4D FF 7A; B
    24 4D FF 4E; D 28 3C 29; M 28 4D FF 7B; DP 2B 3C 5E; DB 2F 3C 5F; E 2C 41 41 0B; D 30 3C 31; M 30 4D
    FF 7C; M 32 4D FF 7D; D 33 3C 34; M 33 4D FF 7E; E 35 41 2E; DG 3E 45 49; D 3E 46 4A; DG 3E 47 4B;
    DG 3E 48 4C; K 3F 55 40; P 41 41 42; TM 46 3E 4A; K 46 42 55 4B; K 46 42 4A; M 46 46 48; EK 46 55
    47; EK 46 56 48; TM 46 57 4C; BOTM 47 3E 4B; BO 47 57 4C; K 4A 55 4B; P 72 3F 07; P 72 40 08; P 72
    47 0F; P 73 41 09; P 73 42 0A; P 73 4B 13"""


def _letter(script: str, place: str) -> str:
    return "\u200d" if place == "FF" else chr(_BLOCKS[script] + int(place, 16))


_ONE_OF: dict[str, str] = {}
for _row in _COMPOSED.split(";"):
    _scripts, *_places, _one = _row.split()
    for _script in _scripts:
        _written = "".join(_letter(_script, place) for place in _places)
        _ONE_OF[_written] = _letter(_script, _one)
_WRITTEN = re.compile("|".join(sorted(_ONE_OF, key=len, reverse=True)))


def indic(term: str) -> str:
    """With one letter where a letter is written as several."""
    return term if term.isascii() else _WRITTEN.sub(lambda found: _ONE_OF[found[0]], term)


_DEAD_N = re.compile("\u0928\u094d")
_HINDI = str.maketrans(
    # bindu; without nukta
    "\u0901" + "\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f"
    # short vowels for candra and long ones
    + "\u0945\u0946\u0949\u094a\u090d\u090e\u0911\u0912\u0972\u0906\u0908\u090a\u0960\u0961\u0910\u0914"
    + "\u0940\u0942\u0944\u0963\u0948\u094c",
    "\u0902" + "\u0928\u0930\u0933\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f"
    + "\u0947\u0947\u094b\u094b\u090f\u090f\u0913\u0913\u0905\u0905\u0907\u0909\u090b\u090c\u090f\u0913"
    + "\u093f\u0941\u0943\u0962\u0947\u094b",
    "\u093c\u094d\u200c\u200d",  # nukta, virama, and what joins or parts letters
)  # fmt: skip


def hindi(term: str) -> str:
    """Without nukta and virama, with bindu for dead n, and with short vowels for long ones."""
    return _DEAD_N.sub("\u0902", term).translate(_HINDI)


_VIRAMA, _JA, _BA, _VISARGA = "\u09cd", "\u09af", "\u09ac", "\u0983"
_KHIO, _KHA, _AA, _E, _HA = "\u0995\u09cd\u09bf", "\u0996", "\u09be", "\u09c7", "\u09b9"
_BENGALI = str.maketrans(
    "\u09c0\u09c2\u0999\u09b6\u09b7\u09a3\u09dc\u09dd\u09ce",
    "\u09bf\u09c1\u0982\u09b8\u09b8\u09a8\u09b0\u09b0\u09a4",
    "\u0981",  # candrabindu
)


def bengali(term: str) -> str:
    """With one letter for those that sound alike, and the forms of ya and ba below a letter as they sound."""
    letters = list(term.translate(_BENGALI))
    at = 0
    while at < len(letters):
        at = _sounded(letters, at) + 1
    return "".join(letters)


def _sounded(letters: list[str], at: int) -> int:
    """Changes the letters around a place; the place of the last one that is done."""
    letter, follows_virama = letters[at], at > 0 and letters[at - 1] == _VIRAMA
    if letter == _KHIO[0] and "".join(letters[at : at + 3]) == _KHIO:
        letters[at : at + 3] = [_KHA] if at == 0 else [letter, _KHA]
    elif letter == _JA and follows_virama:
        if at != 2:
            del letters[at - 1 : at + 1]
            return at - 2
        letters[1:4] = [_E] if letters[3:4] == [_AA] else [_E, *letters[3:4]]
        return 1
    elif letter == _BA and follows_virama:
        if at == 2 or (at >= 5 and letters[at - 3] == _VIRAMA):
            del letters[at - 1 : at + 1]
            return at - 2
        if at > 2:
            letters[at - 1] = letters[at - 2]
            del letters[at]
            return at - 1
    elif letter == _VISARGA:
        if at < len(letters) - 1:
            letters[at] = letters[at + 1]
        elif len(letters) <= 3:
            letters[at] = _HA
        else:
            del letters[at]
    return at
