"""Articles that stand before a word with an apostrophe (`l'avion`), by language."""

from collections.abc import Callable, Sequence

from graphdb.search.analysis.case import java_lower

__all__ = ["ARTICLES", "before_apostrophe", "elision"]

_ARTICLES = {
    "catalan": "d l m n s t",
    "french": "l m t qu n s j d c jusqu quoiqu lorsqu puisqu",
    "irish": "d m b",
    "italian": "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d",
}
ARTICLES = {language: words.split() for language, words in _ARTICLES.items()}
"""Source: the articles of Lucene's analyzers of these languages."""


def elision(articles: Sequence[str], ignore_case: bool) -> Callable[[str], str]:
    """A term without one of the articles at its beginning."""
    known = frozenset(map(java_lower, articles) if ignore_case else articles)

    def elide(term: str) -> str:
        at = _apostrophe_at(term)
        if at < 0:
            return term
        article = term[:at]
        return term[at + 1 :] if (java_lower(article) if ignore_case else article) in known else term

    return elide


def before_apostrophe(term: str) -> str:
    """What stands before the first apostrophe: of a Turkish name what is no suffix."""
    at = _apostrophe_at(term)
    return term if at < 0 else term[:at]


def _apostrophe_at(term: str) -> int:
    return next((place for place, char in enumerate(term) if char in "'\u2019"), -1)
