"""Krovetz's stemmer: endings come off one at a time, until the form is a word of the lexicon.

The lexicon is that of lemminflect, made from the SPECIALIST lexicon of the National Library of Medicine.
Lucene's KStemFilter has a lexicon of its own, so it stems some words otherwise; `DESIGN.md` says how many.

Source: Krovetz, "Viewing Morphology as an Inference Process" (SIGIR 1993). What it leaves open follows what
Lucene's filter answers.
"""

import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from graphdb.search.analysis.stop_words import ENGLISH

__all__ = ["kstem"]

_WORD = re.compile(r"[a-z]{2,49}\Z")
_VOWEL = re.compile("[aeiouy]")
_TWO_CONSONANTS = re.compile(r".*(?:[^aeiouy]|(?<=[aeiou])y)[^aeiouy]\Z")
_DOUBLED = re.compile(r".+([^aeiou])\1\Z")

# What the lexicon lacks, as it has no pronouns, prepositions and the like.
_CLOSED_CLASSES = """
    across afterwards always anything besides during everything hence hers less minus nothing ours
    ourselves perhaps plus something theirs themselves thence towards unless us whence whereas yours
    yourselves"""

# People and languages, which count as forms of the country's name.
_DEMONYMS = """
    afghan:afghanistan african:africa albanian:albania algerian:algeria american:america angolan:angola
    armenian:armenia asian:asia australian:australia austrian:austria belgian:belgium bolivian:bolivia
    bosnian:bosnia brazilian:brazil bulgarian:bulgaria californian:california cambodian:cambodia
    canadian:canada chilean:chile chinese:china colombian:colombia cuban:cuba cypriot:cyprus
    danish:denmark egyptian:egypt estonian:estonia ethiopian:ethiopia european:europe fijian:fiji
    filipino:philippines georgian:georgia german:germany greek:greece guatemalan:guatemala haitian:haiti
    hungarian:hungary indonesian:indonesia iranian:iran iraqi:iraq israeli:israel italian:italy
    jamaican:jamaica japanese:japan jordanian:jordan kenyan:kenya korean:korea latvian:latvia
    lebanese:lebanon liberian:liberia libyan:libya lithuanian:lithuania malaysian:malaysia maltese:malta
    mauritanian:mauritania mexican:mexico mongolian:mongolia moroccan:morocco nepalese:nepal
    nicaraguan:nicaragua nigerian:nigeria norwegian:norway pakistani:pakistan panamanian:panama
    paraguayan:paraguay peruvian:peru portuguese:portugal romanian:romania russian:russia rwandan:rwanda
    serbian:serbia somali:somalia swedish:sweden swiss:switzerland syrian:syria taiwanese:taiwan
    tanzanian:tanzania texan:texas thai:thailand tunisian:tunisia turkish:turkey ugandan:uganda
    ukrainian:ukraine uruguayan:uruguay venezuelan:venezuela virginian:virginia zambian:zambia
    zimbabwean:zimbabwe"""


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a derivation ends with.

    instead: what to try in its place, in this order; the first that makes a word is taken.
    doubled: try first to leave out the second of two equal consonants too.
    otherwise: what stands in its place if nothing makes a word; None keeps the ending.
    letters_min: shorter words keep it.
    """

    end: str
    instead: Sequence[str]
    doubled: bool = False
    otherwise: str | None = None
    letters_min: int = 5

    def candidates(self, word: str) -> list[str]:
        stem = word[: -len(self.end)]
        undoubled = [stem[:-1]] if self.doubled and _DOUBLED.match(stem) else []
        return undoubled + [stem + one for one in self.instead]

    def default(self, word: str) -> str:
        return word if self.otherwise is None else word[: -len(self.end)] + self.otherwise


# One group after the other; of a group, the first whose ending the word has.
_DERIVATIONS: tuple[tuple[_Ending, ...], ...] = (
    (
        _Ending("ility", ("il", "ile"), otherwise="le"),
        _Ending("ivity", ("iv",), otherwise="ive"),
        _Ending("ity", ("", "e"), otherwise=""),
    ),
    (_Ending("iness", (), otherwise="y"), _Ending("ness", (), otherwise="")),
    (
        _Ending("ization", (), otherwise="ize"),
        _Ending("ition", ("e", "ite", "it")),
        _Ending("ication", ("icate", "ice", "ic", "y")),
        _Ending("ation", ("ate", "e", "")),
        _Ending("ion", ("e", "")),
    ),
    (
        _Ending("izer", (), otherwise="ize"),
        *(
            ending
            for end in ("er", "or")
            for ending in (_Ending(f"i{end}", ("y", "ie", "i")), _Ending(end, ("e", ""), doubled=True))
        ),
    ),
    (
        _Ending("ally", ("alle", "al", "", "all"), otherwise="al"),
        _Ending("ily", ("ile", "i", "y", "il"), otherwise="y"),
        _Ending("bly", ("ble", "b"), otherwise="ble"),
        _Ending("ly", ("le", "", "l"), otherwise=""),
    ),
    (
        _Ending("ical", ("ic", "ice", "icum", "", "y", "e"), otherwise="ic"),
        _Ending("ial", ("i", "ie", "ium", "", "e", "y")),
        _Ending("al", ("", "e", "um"), doubled=True),
    ),
    (_Ending("ative", ("at", "ate", "e", "", "ation")), _Ending("ive", ("", "e", "ion"))),
    (_Ending("ize", ("", "e"), doubled=True),),
    (_Ending("ment", ("",)),),
    tuple(_Ending(end, ("", "e", "ate"), doubled=True) for end in ("able", "ible")),
    (_Ending("ism", (), otherwise="", letters_min=6),),
    (_Ending("ic", ("ical", "y", "e", "")),),
    (_Ending("ncy", ("nt", "nce"), otherwise="nt"),),
    tuple(_Ending(end, ("e", ""), doubled=True) for end in ("ance", "ence")),
)
# Words with these endings are forms of others, though the lexicon lists them: Lucene stems most of them.
_FORMS_OF_OTHERS = re.compile(r".{3,}(?:ness|ability|ogical|isation|ization|izer)\Z")
_ADVERB = re.compile(r".{4,}ly\Z")


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """words: what stays as it is. bases: those of regular inflected forms."""

    words: set[str] = field(default_factory=set)
    bases: dict[str, list[str]] = field(default_factory=dict)

    def first(self, candidates: Iterable[str], otherwise: str) -> str:
        return next((one for one in candidates if one in self.words), otherwise)

    def base(self, form: str, candidates: Sequence[str], otherwise: str) -> str:
        known = self.bases.get(form, ())
        # The verb without an e where both are verbs: `develop`, not its other spelling `develope`.
        verb = next((one for one in reversed(candidates) if one in known), None)
        return verb or self.first(candidates, otherwise)


@cache
def _lexicon() -> _Lexicon:
    from lemminflect import config  # only where the stemmer is used: it takes a twelfth of a second

    lexicon = _Lexicon()
    words, parts_of_speech = lexicon.words, dict[str, set[str]]()
    with gzip.open(Path(config.inflection_lu_fn), "rt", encoding="utf-8") as lines:
        for line in lines:
            word, part_of_speech, *forms = line.strip().split(",")
            word = word.lower()
            if _WORD.match(word):
                words.add(word)
                parts_of_speech.setdefault(word, set()).add(part_of_speech)
                _add_forms(lexicon, word, part_of_speech, "/".join(forms).split("/"))
    words.update(ENGLISH, _CLOSED_CLASSES.split())
    _leave_forms_out(lexicon, {word for word, parts in parts_of_speech.items() if parts == {"adv"}})
    return lexicon


def _add_forms(lexicon: _Lexicon, word: str, part_of_speech: str, forms: Iterable[str]) -> None:
    """Irregular forms are words of their own."""
    for form in forms:
        if form == word or not _WORD.match(form):
            continue
        if not _is_regular(word, form):
            lexicon.words.add(form)
        elif part_of_speech == "verb":
            lexicon.bases.setdefault(form, []).append(word)


def _is_regular(word: str, form: str) -> bool:
    stems = {word, word + word[-1], word.removesuffix("e"), f"{word.removesuffix('y')}i"}
    if word.endswith("ie"):
        stems.add(f"{word[:-2]}y")
    return any(form == stem + end for stem in stems for end in ("s", "es", "d", "ed", "ing", "er", "est"))


def _leave_forms_out(lexicon: _Lexicon, adverbs: set[str]) -> None:
    words = lexicon.words
    forms = [
        word for word in words if _FORMS_OF_OTHERS.match(word) or (word in adverbs and _ADVERB.match(word))
    ]
    left_out = {word for word in forms if _without_endings(word, lexicon) in words}
    words -= left_out
    words -= {form for form in lexicon.bases if len(form) < 6 and form.endswith(("ed", "ing"))}


def kstem(term: str) -> str:
    """The term without endings of inflection and derivation.

    A term stays as it is if it has other characters than a to z, or one letter, or 50 and more.
    """
    if not _WORD.match(term):
        return term
    lexicon = _lexicon()
    stem = term if term in lexicon.words else _without_endings(term, lexicon)
    return _countries().get(stem, stem)


@cache
def _countries() -> dict[str, str]:
    return dict(pair.split(":") for pair in _DEMONYMS.split())


def _without_endings(word: str, lexicon: _Lexicon) -> str:
    for step in _INFLECTIONS:
        changed = step(word, lexicon)
        if changed != word and (changed in lexicon.words or changed in _countries()):
            return changed
        word = changed
    for group in _DERIVATIONS:
        ending = next((one for one in group if word.endswith(one.end)), None)
        if ending is None or len(word) < ending.letters_min:
            continue
        changed = lexicon.first(ending.candidates(word), ending.default(word))
        if changed != word and changed in lexicon.words:
            return changed
        word = changed
    return word


def _singular(word: str, lexicon: _Lexicon) -> str:
    if word.endswith("ies"):
        return lexicon.first([word[:-1]], f"{word[:-3]}y")
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("es"):
        return lexicon.first([word[:-1], word[:-2]], word[:-1])
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "ous")):
        return word[:-1]
    return word


def _present(word: str, lexicon: _Lexicon) -> str:
    """Without the -ed of the past tense."""
    stem = word[:-2]
    if not word.endswith("ed") or not _VOWEL.search(stem):
        return word
    if len(word) < 5:
        return next(iter(lexicon.bases.get(word, ())), word)
    if word.endswith("ied"):
        return lexicon.first([word[:-1]], f"{word[:-3]}y")
    otherwise = word if word.startswith("un") else stem if _DOUBLED.match(stem) else f"{stem}e"
    return lexicon.base(word, _bases(stem), otherwise)


def _infinitive(word: str, lexicon: _Lexicon) -> str:
    """Without the -ing of the progressive."""
    stem = word[:-3]
    if not word.endswith("ing") or not _VOWEL.search(stem):
        return word
    if len(word) < 6:
        return next(iter(lexicon.bases.get(word, ())), word)
    return lexicon.base(word, _bases(stem), stem if _TWO_CONSONANTS.match(stem) else f"{stem}e")


def _bases(stem: str) -> list[str]:
    return [f"{stem}e", stem, *([stem[:-1]] if _DOUBLED.match(stem) else [])]


_INFLECTIONS = (_singular, _present, _infinitive)
