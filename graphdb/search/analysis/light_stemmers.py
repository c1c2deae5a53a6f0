"""Light stemmers of languages of Europe: they take off the endings of nouns and adjectives, one at a time.

Each is a chain of steps, and a step is a list of rules: the first that fits changes the word.

Sources: Savoy, "Light Stemming Approaches for the French, Portuguese, German and Hungarian Languages" (2006),
and his reports on the CLEF campaigns of 2001 and 2003; Dolamic and Savoy on Czech (2009), Bulgarian (2007)
and Russian (2009); Kreslins, "A stemming algorithm for Latvian" (1996). Where Lucene's stemmers of the same
names differ from the papers, these follow Lucene.
"""

import re
from collections.abc import Callable
from functools import reduce

__all__ = ["LIGHT_STEMMERS", "Stem", "chain", "step"]

Stem = Callable[[str], str]
Rule = tuple[int, str, str]
"""A word of more than so many letters, the end of it as a pattern, what stands in place of that end."""


def step(*rules: Rule) -> Stem:
    """The first rule that fits a word changes it."""
    compiled = [(length, re.compile(rf"(?:{end})\Z"), instead) for length, end, instead in rules]

    def change(word: str) -> str:
        for length, end, instead in compiled:
            if len(word) > length and (found := end.search(word)):
                return word[: found.start()] + found.expand(instead)
        return word

    return change


def chain(*steps: Stem, length: int = 0) -> Stem:
    """All of them in turn; words of fewer letters than length stay as they are."""

    def change(word: str) -> str:
        return reduce(lambda term, one: one(term), steps, word) if len(word) >= length else word

    return change


def _letters(**letters: str) -> Stem:
    """Each letter that stands for itself and for those of its text: `a="àá"`."""
    table = str.maketrans({marked: plain for plain, every in letters.items() for marked in every})
    return lambda word: word.translate(table)


_UNMARKED = _letters(a="àáâä", o="òóôö", e="èéêë", u="ùúûü", i="ìíîï")

# German.

_GERMAN_LIGHT = chain(
    _letters(a="äàáâ", o="öòóô", i="ïìíî", u="üùúû"),
    step((5, "ern", ""), (4, "e[mnrs]", ""), (3, "e", ""), (3, "(?<=[bdfghklmnt])s", "")),
    step((5, "est", ""), (4, "e[rn]", ""), (4, "(?<=[bdfghklmnt])st", "")),
)
_GERMAN_MINIMAL = chain(
    _letters(a="ä", o="ö", u="ü"),
    step((6, "nen", ""), (5, "en|se|es|er", ""), (0, "[nesr]", "")),
    length=5,
)

# French.

_FRENCH_ENDING = step(
    (9, "issement", "ir"), (8, "issant", "ir"),
    (7, "ivement", "if"), (6, "ement", "e"), (11, "ficatrice", "fier"), (10, "ficateur", "fier"),
    (9, "catrice", "quer"), (8, "cateur", "quer"), (8, "atrice", "er"), (7, "ateur", "er"),
)  # fmt: skip
_FRENCH_LATER = step(
    (5, "ième", ""), (7, "teuse", "ter"), (6, "teur", "ter"), (5, "euse", "eu"), (8, "ère", "er"),
    (7, "ive", "if"), (4, "([fm]o)lle", r"\1u"), (9, "nnelle", "n"), (9, "nnel", "n"),
)  # fmt: skip
_FRENCH_LAST = step(
    (8, "esse", "e"), (7, "inage", "in"), (9, "(?<=.{3})ualisation", "uel"), (9, "isation", ""),
    (9, "isateur", ""), (8, "[ai]tion", ""),
)  # fmt: skip
_FRENCH_PLURAL = chain(step((5, "([^e])aux", r"\1al"), (5, "x", "")), step((3, "x", "")), step((3, "s", "")))
_FRENCH_LETTERS = _letters(a="àáâ", o="ô", e="èéê", u="ùû", i="î", c="ç")
_DOUBLED = re.compile(r"([^\W\d_])\1+")


def _french_form(word: str) -> str:
    """Without marks and doubled letters, and without what is left of an ending."""
    if len(word) > 4:
        word = _DOUBLED.sub(r"\1", _FRENCH_LETTERS(word))
    if len(word) > 4 and word.endswith("ie"):
        word = word[:-2]
    if len(word) > 4:
        word = word.removesuffix("r").removesuffix("e").removesuffix("e")
        if word[-1] == word[-2] and word[-1].isalpha():
            word = word[:-1]
    return word


def _french_light(word: str) -> str:
    word = _FRENCH_PLURAL(word)
    shorter = _FRENCH_ENDING(word)
    if shorter == word:
        word = _FRENCH_TRICE(word)
        shorter = _FRENCH_LATER(word)
    if shorter == word:
        shorter = _FRENCH_LAST(_FRENCH_MIDDLE(word))
    return _french_form(shorter)


_FRENCH_TRICE = step((6, "trice", "teur"))
_FRENCH_MIDDLE = chain(step((4, "ète", "et")), step((8, "ique", "")))
_FRENCH_MINIMAL_PLURAL = step((0, "aux", "al"), (0, "x", ""))


def _french_minimal(word: str) -> str:
    if len(word) < 6:
        return word
    if word.endswith("x"):
        return _FRENCH_MINIMAL_PLURAL(word)
    word = word.removesuffix("s").removesuffix("r").removesuffix("e").removesuffix("é")
    return word[:-1] if word[-1] == word[-2] and word[-1].isalpha() else word


# Spanish, Italian, Portuguese.

_SPANISH_LIGHT = chain(
    _UNMARKED,
    step((4, "[oae]", ""), (4, "eses", "es"), (4, "ces", "z"), (4, "[oae]s", "")),
    length=5,
)
_ITALIAN_LIGHT = chain(_UNMARKED, step((5, "[ih][ei]|i[ao]", ""), (5, "[eiao]", "")), length=6)
_PORTUGUESE_LIGHT = chain(
    step(
        (4, "(?<=[rslz])es", ""), (3, "ns", "m"), (4, "[eé]is", "el"), (4, "ais", "al"), (4, "óis", "ol"),
        (4, "is", "il"), (3, "[õã]es", "ão"), (6, "mente", ""), (3, "s", ""),
    ),
    step(
        (7, "(inh|iac|eir)a", r"\1o"), (6, "(os|ic|id|ad|iv|am)a", r"\1o"), (6, "ona", "ão"),
        (6, "ora", "or"), (6, "esa", "ês"), (6, "na", "no"),
    ),
    step((4, "[eao]", "")),
    _letters(a="àáâäã", o="òóôöõ", e="èéêë", u="ùúûü", i="ìíîï", c="ç"),
    length=4,
)  # fmt: skip

# Russian, Czech, Bulgarian.

_RUSSIAN_LIGHT = chain(
    step(
        (6, "[ио]ями", ""),
        (5, "иям|иях|оях|ями|оям|оьв|ами|его|ему|ери|ими|ого|ому|ыми|оев", ""),
        (4, "ая|яя|ях|юю|ах|ею|их|ия|ию|ьв|ою|ую|ям|ых|ея|ам|ем|ей|ём|ев|ий|им|ое|ой|ом|ов|ые|ый|ым|ми", ""),
        (3, "[аеиоуйыяь]", ""),
    ),
    step((3, "[ьи]", ""), (3, "нн", "н")),
)
_CZECH = chain(
    step(
        (7, "atech", ""),
        (6, "ětem|etem|atům", ""),
        (5, "[eií]ch|ách|ých|[éí]ho|iho|[ěeíaý]mi|[éíi]mu|[ěe]t[ei]|ata|aty|ama|ové|ovi", ""),
        (4, "[eéíůáý]m|at|[eou]s|mi|ou", ""),
        (3, "[aeiouůyáéíýě]", ""),
    ),
    step((5, "ov|in|ův", "")),
    step(
        (0, "čt", "ck"), (0, "št", "sk"), (0, "[cč]", "k"), (0, "[zž]", "h"), (1, "e(.)", r"\1"),
        (2, "ů(.)", r"o\1"),
    ),
)  # fmt: skip
_BULGARIAN = chain(
    step((6, "ият", ""), (5, "ът|то|те|та|ия", ""), (4, "ят", "")),
    step(
        (6, "овци", "о"), (6, "ове", ""), (6, "еве", "й"), (5, "ища", ""), (5, "та", ""), (5, "ци", "к"),
        (5, "зи", "г"), (5, "е(.)и", r"я\1"), (4, "си", "х"), (4, "и", ""),
    ),
    step((3, "[аое]я|[аоея]", "")),
    step((4, "ен", "н")),
    step((5, "ъ(.)", r"\1")),
    length=4,
)  # fmt: skip
_BULGARIAN_PLURAL = "ища"


def _bulgarian(word: str) -> str:
    return word[:-3] if len(word) > 5 and word.endswith(_BULGARIAN_PLURAL) else _BULGARIAN(word)


# Swedish, Norwegian, Finnish, Hungarian.

_SWEDISH_LIGHT = chain(
    step((4, "s", "")),
    step(
        (7, "elser|heten", ""), (6, "arne|erna|ande|else|aste|orna|aren", ""), (5, "are|ast|het", ""),
        (4, "[aeo]r|en|at|te|et", ""), (3, "[taen]", ""),
    ),
)  # fmt: skip
_NORWEGIAN_LIGHT = chain(
    step((4, "s", "")),
    step(
        (7, "hete[rn]", ""), (5, "dom|het", ""), (7, "else[rn]", ""), (6, "ende|else|este|eren", ""),
        (5, "ere|est|ene", ""), (4, "er|en|et|st|te", ""), (3, "[aen]", ""),
    ),
)  # fmt: skip
_NYNORSK_LIGHT = chain(
    step((4, "s", "")),
    step(
        (7, "heita", ""), (8, "heiter|leike[n]|leikar", ""), (5, "dom", ""), (6, "heit|semd|leik", ""),
        (7, "else[rn]", ""), (6, "ande|else|aste|aren", ""), (5, "are|ast|ene|ane", ""),
        (4, "er|en|et|ar|te", ""), (3, "[aen]", ""),
    ),
)  # fmt: skip
_NORWEGIAN_MINIMAL = chain(step((4, "s", "")), step((5, "ene", ""), (4, "er|en|et", ""), (3, "[ae]", "")))
_NYNORSK_MINIMAL = chain(
    step((4, "s", "")), step((5, "ene|ane", ""), (4, "er|en|et|ar", ""), (3, "[ae]", ""))
)
_FINNISH_PARTICLE = step((8, "kin|ko", ""))
_FINNISH_ENDINGS = chain(
    step((11, "dellinen|dellisuus", "")),
    step((5, "lla|tse|sti", ""), (5, "ni", ""), (5, "aa", "a")),
    step(
        (8, "nnen", "s"), (8, "ntena", "s"), (8, "tten", ""), (8, "eiden", ""),
        (6, "neen|niin|seen|teen|inen", ""), (6, "h[aeiouy]n", ""), (6, "den", "s"), (6, "ksen", "s"),
        (6, "ssa|sta|lla|lta|tta|ksi|lle", ""), (5, "n[ae]", ""), (5, "nei", ""), (4, "[jt]a", ""),
        (4, "a", ""), (4, "[aeiouy]n", ""), (4, "n", ""),
    ),
    step((5, "hde", "ksi")),
    step((4, "ei|at", ""), (3, "[tsjeai]", "")),
    step((8, "[eou]", "")),
)  # fmt: skip
_FINNISH_DOUBLED = re.compile(r"([kpt])\1+")


def _finnish_light(word: str) -> str:
    if len(word) < 4:
        return word
    word = word.translate(_FINNISH_LETTERS)
    while (shorter := _FINNISH_PARTICLE(word)) != word:
        word = shorter
    word = _FINNISH_ENDINGS(word)
    if len(word) > 4:
        word = word.removesuffix("i")
        word = _FINNISH_DOUBLED.sub(r"\1", word) if len(word) > 4 else word
    return word


_FINNISH_LETTERS = str.maketrans("äåö", "aao")
_V, _C = "(?<=[aeiouy])", "(?<=[^aeiouy])"
_HUNGARIAN_LIGHT = chain(
    _letters(a="á", e="ëé", i="í", o="óőõö", u="úűũûü"),
    step(
        (6, "kent", ""), (5, "nak|nek|val|vel|ert|rol|ban|ben|bol|nal|nel|hoz|hez|tol", ""),
        (5, r"([^aeiouy])\1[ae]l", r"\1"), (4, "at|et|ot|va|ve|ra|re|ba|be|ul|ig", ""), (4, f"{_C}[oe]n", ""),
        (4, "[tn]", ""), (4, r"([^aeiouy])\1[ae]", r"\1"),
    ),
    step(
        (6, f"{_C}(?:atok|otok|etek)", ""), (6, "itek|itok", ""), (5, f"{_C}(?:unk|tok|tek)", ""),
        (5, f"{_V}juk", ""), (5, "ink", ""), (4, f"{_C}(?:[aeo][md]|uk)", ""), (4, f"{_V}(?:nk|j[ae])", ""),
        (4, "i[mdk]", ""), (3, f"{_C}[ae]", ""), (3, f"{_V}[md]", ""), (3, "i", ""),
    ),
    step((4, "[aoe]k", ""), (3, "k", "")),
    step((3, "[aeio]", "")),
)  # fmt: skip

# Latvian: an ending goes if a vowel is left beside those of the ending.

# An ending, how many vowels it may have, and + where the consonant before it becomes hard again.
_LATVIAN_ENDINGS = """
    ajiem 3, ajai 3, ajam 2, ajām 2, ajos 2, ajās 2, iem 2+, ajā 2, ais 2, ai 2, ei 2, ām 1, am 1, ēm 1, īm 1,
    im 1, um 1, us 1+, as 1, ās 1, es 1, os 1+, ij 1, īs 1, ēs 1, is 1, ie 1, u 1+, a 1+, i 1+, e 1, ā 1, ē 1,
    ī 1, ū 1, o 1, s 0, š 0"""
_LATVIAN_RULES = [
    (end, int(number.rstrip("+")), number.endswith("+"))
    for end, number in (rule.split() for rule in _LATVIAN_ENDINGS.split(","))
]
_LATVIAN_SOFT = step(
    (0, "([pbmv])j", r"\1"), (0, "šņ", "sn"), (0, "žņ", "zn"), (0, "šļ", "sl"), (0, "žļ", "zl"),
    (0, "ļņ", "ln"), (0, "ļļ", "ll"), (0, "č", "c"), (0, "ļ", "l"), (0, "ņ", "n"),
)  # fmt: skip
_LATVIAN_SOFT_PLURAL = step((0, "kš", "kst"), (0, "ņņ", "nn"))


def _latvian(word: str) -> str:
    vowels = sum(char in "aeiouāīēū" for char in word)
    for end, of_end, softens in _LATVIAN_RULES:
        if vowels > of_end and len(word) >= len(end) + 3 and word.endswith(end):
            stem = word[: -len(end)]
            if not softens:
                return stem
            hard = _LATVIAN_SOFT_PLURAL(stem) if end.startswith("u") else stem
            return hard if hard != stem else _LATVIAN_SOFT(stem)
    return word


LIGHT_STEMMERS: dict[str, Stem] = {
    "bulgarian": _bulgarian,
    "czech": _CZECH,
    "latvian": _latvian,
    "light_finnish": _finnish_light,
    "light_french": _french_light,
    "light_german": _GERMAN_LIGHT,
    "light_hungarian": _HUNGARIAN_LIGHT,
    "light_italian": _ITALIAN_LIGHT,
    "light_norwegian": _NORWEGIAN_LIGHT,
    "light_nynorsk": _NYNORSK_LIGHT,
    "light_portuguese": _PORTUGUESE_LIGHT,
    "light_russian": _RUSSIAN_LIGHT,
    "light_spanish": _SPANISH_LIGHT,
    "light_swedish": _SWEDISH_LIGHT,
    "minimal_french": _french_minimal,
    "minimal_german": _GERMAN_MINIMAL,
    "minimal_norwegian": _NORWEGIAN_MINIMAL,
    "minimal_nynorsk": _NYNORSK_MINIMAL,
}
"""By the names that the filter `stemmer` takes."""
