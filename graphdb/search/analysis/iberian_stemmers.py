"""Stemmers of Portuguese and Spanish: RSLP, and those that take off plurals alone.

Sources: Orengo and Huyck, "A Stemming Algorithm for the Portuguese Language" (2001); Wikilengua, "Plural
(formación)". Where Lucene's stemmers differ from these, they follow Lucene.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["portuguese_minimal", "portuguese_rslp", "spanish_plural"]

# Portuguese.


@dataclass(frozen=True, slots=True)
class _Rule:
    """An ending after at least so many letters, what stands in its place, and what stays as it is."""

    ending: str
    least: int
    instead: str
    kept: frozenset[str]

    def fits(self, word: str, keeps_words: bool) -> bool:
        if not word.endswith(self.ending) or len(word) - len(self.ending) < self.least:
            return False
        return word not in self.kept if keeps_words else not word.endswith(tuple(self.kept))


@dataclass(frozen=True, slots=True)
class _Step:
    """The first rule that fits a word changes it. ends: words that end otherwise stay as they are, if any.

    keeps_words: what rules keep are words, and not endings.
    """

    least: int
    ends: tuple[str, ...]
    keeps_words: bool
    rules: tuple[_Rule, ...]

    def __call__(self, word: str) -> str:
        if len(word) < self.least or (self.ends and not word.endswith(self.ends)):
            return word
        for rule in self.rules:
            if rule.fits(word, self.keeps_words):
                return word[: len(word) - len(rule.ending)] + rule.instead
        return word


@cache
def _steps() -> dict[str, _Step]:
    """By name, as `rslp.words.txt` has them: read with the first word."""
    text = Path(__file__).with_name("rslp.words.txt").read_text("utf-8")
    _, *parts = text.replace("\n    ", " ").split("\n[")
    steps = {}
    for part in parts:
        head, *lines = part.strip().splitlines()
        name, kind, *rest = head.replace("]", "").split()
        least, ends = (int(rest[1]), rest[2:]) if rest[:1] == ["least"] else (0, rest)
        rules = tuple(map(_rule, lines))
        least = least or min(rule.least + len(rule.ending) for rule in rules)
        steps[name] = _Step(least, tuple(ends), kind == "words", rules)
    return steps


def _rule(line: str) -> _Rule:
    change, _, kept = line.partition(" = ")
    least, ending, *instead = change.replace(" >", "").split()
    return _Rule(ending, int(least), "".join(instead), frozenset(kept.split()))


def portuguese_rslp(word: str) -> str:
    """Plurals, adverbs, feminine forms, diminutives; then an ending of nouns, else of verbs, else a vowel."""
    steps = _steps()
    for name in ("plural", "adverb", "feminine", "augmentative"):
        word = steps[name](word)
    for name in ("noun", "verb", "vowel"):
        shorter = steps[name](word)
        if shorter != word:
            word = shorter
            break
    return _without_marks(word)


def portuguese_minimal(word: str) -> str:
    """Plurals alone."""
    return _steps()["plural"](word)


def _without_marks(word: str) -> str:
    """Small letters of Latin-1 without their marks."""
    return "".join(
        unicodedata.normalize("NFD", char)[0] if "\xe0" <= char <= "\xff" and char not in "æðø÷þß" else char
        for char in word
    )


# Spanish.

_SPANISH_MARKS = str.maketrans("àáâäòóôöèéêëùúûüìíîï", "aaaaooooeeeeuuuuiiii")
_VOWELS = frozenset("aeiou")
_SPANISH_KEPT_WORDS = """
    abrebotellas abrecartas abrelatas afueras albatros albricias aledaños alexis alicates analisis
    andurriales antitesis apendicitis apocalipsis arcoiris aries añicos bilis boletus boris brindis
    cactus canutas caries cascanueces cascarrabias ciempies cifosis corpus cortaplumas cosmos cosquillas
    creces crisis cuatrocientas cuatrocientos cuelgacapas cuentacuentos cuentapasos cumpleaños
    doscientas doscientos dosis enseres entonces esponsales estatus exequias fauces forceps fotosintesis
    gafas gafotas gargaras gris honorarios ictus jueves lapsus lavacoches lavaplatos limpiabotas lunes
    maitines martes mondadientes novecientas novecientos nupcias ochocientas ochocientos pais parabrisas
    paracaidas parachoques paraguas pararrayos paris pisapapeles piscis portaaviones portamaletas
    portamantas quinientas quinientos quitamanchas recogepelotas rictus rompeolas sacacorchos sacapuntas
    saltamontes salvavidas seis seiscientas seiscientos setecientas setecientos sintesis tenis tifus
    trabalenguas vacaciones venus versus viacrucis virus viveres volandas"""
_SPANISH_KEPT = frozenset(_SPANISH_KEPT_WORDS.split())
_SPANISH_SHORTENED_WORDS = """
    albalaes albumes bojes carcajes clubes contrarreloj faralaes itemes noes relojes sandwiches sies
    yoes"""
_SPANISH_SHORTENED = frozenset(_SPANISH_SHORTENED_WORDS.split())


def spanish_plural(word: str) -> str:
    """Without marks of accents, and without the ending of a plural."""
    if len(word) < 4:
        return word
    word = word.translate(_SPANISH_MARKS)
    if word.lower() in _SPANISH_KEPT:
        return word
    if word.lower() in _SPANISH_SHORTENED:
        return word[:-2]
    if not word.endswith("s"):
        return word
    before, third, vowel = word[-4], word[-3], word[-2]
    if vowel == "i" and (third in _VOWELS or third == "d") and not _keeps_e(before, third, vowel):
        return f"{word[:-2]}y"
    if vowel != "e" or _keeps_e(before, third, vowel):
        return word[:-1]
    if third == "c":
        return f"{word[:-3]}z"
    is_consonant_before = (third in "rdlnx" and before in _VOWELS) or third in "yus"
    return word[:-2] if is_consonant_before or (third == "i" and before in "ulrtn") else word[:-1]


def _keeps_e(before: str, third: str, vowel: str) -> bool:
    """In qu and gu the u is not heard: `parques`, `maniquis`."""
    return before == "q" or (before == "g" and third == "u" and vowel in "ie")
