"""Lower and upper case, character by character as Java's, and letters without their marks."""

import re
import unicodedata
from functools import lru_cache

__all__ = ["LOWER_CASES", "decimal_digits", "fold", "java_lower", "java_upper"]


def java_lower(text: str) -> str:
    """`str.lower` also looks at neighbours (final sigma) and makes two characters of one (dotted I)."""
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()


def java_upper(text: str) -> str:
    """Characters whose upper case is several stay as they are, or take their title case if that is one."""
    if text.isascii():
        return text.upper()
    return "".join(_upper(char) for char in text)


def _upper(char: str) -> str:
    return next((form for form in (char.upper(), char.title()) if len(form) == 1), char)


def _turkish_lower(text: str) -> str:
    return java_lower(text.replace("I\u0307", "i").replace("\u0130", "i").replace("I", "\u0131"))


_GREEK = str.maketrans("ςάέήίΰϊϋΐόύώ", "σαεηιυιυιουω")


def _greek_lower(text: str) -> str:
    """Without accents and diaereses, and with one sigma."""
    return java_lower(text).translate(_GREEK)


def _irish_lower(text: str) -> str:
    """A vowel in upper case keeps the n or t before it apart: `nAthair` becomes `n-athair`."""
    if len(text) > 1 and text[0] in "nt" and text[1] in "AEIOUÁÉÍÓÚ":
        text = f"{text[0]}-{text[1:]}"
    return java_lower(text)


LOWER_CASES = {"": java_lower, "greek": _greek_lower, "irish": _irish_lower, "turkish": _turkish_lower}
"""By the `language` of the filter `lowercase`."""


def decimal_digits(text: str) -> str:
    """With ASCII digits for those of all scripts."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def fold(text: str) -> str:
    """ASCII for Latin letters, digits and marks that have a look-alike there; all else stays.

    Source: Lucene's ASCIIFoldingFilter, by Unicode's decompositions and names instead of its table.
    """
    return text if text.isascii() else "".join(map(_fold_char, text))


# What neither a decomposition nor a name shows.
_SPECIAL = {
    **dict.fromkeys("«»“”„″‶❝❞❮❯＂", '"'),
    **dict.fromkeys("‘’‚‛′‵‹›❛❜＇", "'"),
    **dict.fromkeys("‐‑‒–—⁻₋－", "-"),
    **{"ß": "ss", "ẞ": "SS", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Þ": "TH", "þ": "th", "Ð": "D"},
    **{"ð": "d", "Ø": "O", "ø": "o", "Ł": "L", "ł": "l", "ı": "i", "ȷ": "j", "ĸ": "q", "ŉ": "'n", "Ŋ": "N"},
    **{"ŋ": "n", "Ə": "A", "ə": "a", "Ǝ": "E", "ǝ": "e", "Ɛ": "E", "ɛ": "e", "ſ": "s", "ƒ": "f", "Ƒ": "F"},
    **{
        "Ɖ": "D",
        "Ɔ": "O",
        "ɔ": "o",
        "‸": "^",
        "⁅": "[",
        "❲": "[",
        "⁆": "]",
        "❳": "]",
        "‼": "!!",
        "⁇": "??",
        "⁈": "?!",
    },
    **{"⁉": "!?", "⁄": "/", "⁎": "*", "⁏": ";", "⁒": "%", "⁓": "~", "❨": "(", "❪": "(", "❩": ")", "❫": ")"},
    **{
        "❬": "<",
        "❰": "<",
        "❭": ">",
        "❱": ">",
        "❴": "{",
        "❵": "}",
        "ȸ": "db",
        "ȹ": "qp",
        "ƕ": "hv",
        "Ƕ": "HV",
    },
}
# Marks and forms that Lucene folds, by how their names begin. Ordinals (ª, º) are not among them.
_FOLDED_NAMES = (
    "LATIN",
    "FULLWIDTH",
    "SUPERSCRIPT",
    "SUBSCRIPT",
    "CIRCLED",
    "PARENTHESIZED",
    "DIGIT",
    "NUMBER",
)
_LETTER_WITH = re.compile(
    r"LATIN (SMALL LETTER|CAPITAL LETTER|LETTER SMALL CAPITAL) ([A-Z]{1,2})(?: WITH .*)?$"
)


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    if char < "\x80":
        return char
    special = _SPECIAL.get(char)
    if special is not None:
        return special
    return _by_decomposition(char) or _by_name(char) or char


def _by_decomposition(char: str) -> str:
    """A letter or digit without marks, ring or width; empty where that is not ASCII."""
    if not unicodedata.name(char, "").startswith(_FOLDED_NAMES) or not unicodedata.decomposition(char):
        return ""
    plain = "".join(part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part))
    plain = "".join(_SPECIAL.get(part, part) for part in plain)
    return plain if plain.isascii() else ""


def _by_name(char: str) -> str:
    """`LATIN SMALL LETTER B WITH HOOK` is a b."""
    found = _LETTER_WITH.match(unicodedata.name(char, ""))
    if found is None:
        return ""
    size, letter = found.groups()
    return letter.lower() if size == "SMALL LETTER" else letter
