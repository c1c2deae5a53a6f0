"""Token filters that need no configuration of their own: stemming, stop words, n-grams and shingles."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import Stemmer  # type: ignore[import-not-found]  # a compiled module without stubs

from graphdb.search.analysis.token import Token
from graphdb.search.errors import illegal_argument

__all__ = [
    "ENGLISH",
    "Stream",
    "fingerprint",
    "gram_filter",
    "limit",
    "porter",
    "possessive",
    "shingles",
    "snowball",
    "stemmer",
    "stop_words",
    "unique",
]

# Stemmers by the names that settings use: those that Snowball has as Lucene has them.

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


# Lists of stop words by the names that settings use.

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET
_ENGLISH_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with"""
ENGLISH = frozenset(_ENGLISH_WORDS.split())
_LISTS: dict[str, frozenset[str]] = {"_english_": ENGLISH, "_none_": frozenset()}
# Elasticsearch has these; without their lists a wrong answer would be the only other one.
_LANGUAGES = """
    arabic armenian basque bengali brazilian bulgarian catalan cjk czech danish dutch estonian finnish
    french galician german greek hindi hungarian indonesian irish italian latvian lithuanian norwegian
    persian portuguese romanian russian serbian sorani spanish swedish thai turkish"""
_NOT_HERE = frozenset(f"_{language}_" for language in _LANGUAGES.split())


def stop_words(names: Sequence[str] | None, default: frozenset[str] = ENGLISH) -> frozenset[str]:
    """The words that a list names: words, and `_english_` for that language's."""
    if names is None:
        return default
    missing = sorted(_NOT_HERE.intersection(names))
    if missing:
        raise illegal_argument(f"stop words [{missing[0]}] are not supported, list the words")
    return frozenset().union(*(_LISTS.get(name, {name}) for name in names))


# Filters that make shorter or longer tokens of tokens: n-grams, shingles, fingerprints.

Stream = Callable[[list[Token]], list[Token]]


_GRAMS_MAX = 5_000_000  # of one text, which take about a gigabyte


def gram_filter(low: int, high: int, edges_only: bool, preserve_original: bool) -> Stream:
    """All of low to high characters of each token, where it stands, with its offsets. The filter raises an
    illegal argument for a text of too many.
    """

    def cut(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        for token in tokens:
            if len(result) > _GRAMS_MAX:
                raise illegal_argument(f"The n-grams of one text are more than [{_GRAMS_MAX}]")
            term = token.term
            starts = range(1 if edges_only else len(term))
            parts = [
                term[start : start + length]
                for start in starts
                for length in range(low, min(high, len(term) - start) + 1)
            ]
            if preserve_original and not low <= len(term) <= high:
                parts.append(term)
            result += [replace(token, term=part) for part in parts]
        return result

    return cut


def shingles(
    low: int, high: int, unigrams: bool, unigrams_if_none: bool, separator: str, filler: str
) -> Stream:
    """Tokens side by side joined to one, low to high of them; filler stands in a hole of the positions."""

    def join(tokens: list[Token]) -> list[Token]:
        slots = _slots(tokens)
        alone = unigrams or (unigrams_if_none and len(slots) < low)
        result = []
        for at, slot in enumerate(slots):
            if alone and slot is not None:
                result.append(slot)
            for length in range(low, high + 1):
                shingle = _shingle(slots[at : at + length], length, separator, filler)
                if shingle is not None:
                    span = length if unigrams else length - low + 1
                    result.append(replace(shingle, position=at, position_length=span))
        return result

    return join


def _slots(tokens: list[Token]) -> list[Token | None]:
    """One for each position up to the last token's; None in a hole."""
    slots: list[Token | None] = [None] * (tokens[-1].position + 1 if tokens else 0)
    for token in tokens:
        if slots[token.position] is None:
            slots[token.position] = token
    return slots


def _shingle(part: list[Token | None], length: int, separator: str, filler: str) -> Token | None:
    present = [token for token in part if token is not None]
    if len(part) < length or not present:
        return None
    term = separator.join(filler if token is None else token.term for token in part)
    return Token(term, present[0].start_offset, present[-1].end_offset, "shingle")


def fingerprint(separator: str, length_max: int) -> Stream:
    """One token of all terms, sorted and each once; none where it would be longer than length_max."""

    def join(tokens: list[Token]) -> list[Token]:
        if not tokens:
            return []
        term = separator.join(sorted({token.term for token in tokens}))
        if len(term) > length_max:
            return []
        return [Token(term, 0, tokens[-1].end_offset, "fingerprint")]

    return join


def unique(only_on_same_position: bool) -> Stream:
    """Each term once. Where a term goes for good its position closes up, as in Elasticsearch."""

    def filter_same(tokens: list[Token]) -> list[Token]:
        seen: set[tuple[str, int]] = set()
        kept = []
        for token in tokens:
            if (token.term, token.position) not in seen:
                seen.add((token.term, token.position))
                kept.append(token)
        return kept

    def filter_all(tokens: list[Token]) -> list[Token]:
        seen: set[str] = set()
        kept: list[Token] = []
        position = -1
        before = -1
        for token in tokens:
            increment, before = token.position - before, token.position
            if token.term in seen:
                continue
            seen.add(token.term)
            position += increment
            kept.append(replace(token, position=position))
        return kept

    return filter_same if only_on_same_position else filter_all


def limit(count_max: int) -> Stream:
    return lambda tokens: tokens[:count_max]
