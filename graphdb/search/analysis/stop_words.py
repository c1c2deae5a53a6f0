"""Lists of stop words by the names that settings use."""

from collections.abc import Sequence

from graphdb.search.errors import illegal_argument

__all__ = ["ENGLISH", "stop_words"]

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
