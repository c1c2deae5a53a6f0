"""`WordSearch`: queries that differ in the plain words that they seek alone.

What stands before and behind such words in a text decides everything but what is found: none of their
characters ends a string, or means anything to what reads the text.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from graphdb.sparql.search_requests import LiteralSearch, Part
from graphdb.sparql.text_tables import CellFormat
from graphdb.store.query_plans import QueryPlan
from graphdb.store.small_joins import SearchedStar

__all__ = ["PROBES", "WORDS_MAX", "WordSearch", "star_of_any"]

WORDS_MAX = 256
"""Characters of words that are plain; they are no more words than a query may have clauses."""
PROBES = ("qzxw", "xwqz")
"""Words by which texts are tried, of one length: what stands behind them is at the same place in both."""

_SHOWN = {Part.SUBJECT, Part.SCORE}  # of the hits, beside what they are joined with


@dataclass(frozen=True, eq=False)
class WordSearch:
    """A search for words that each question gives, and the format of its answers."""

    star: SearchedStar  # for no words
    form: CellFormat


def star_of_any(plan: Callable[[str], QueryPlan | None]) -> SearchedStar | None:
    """The search for some best hits that a text is whatever its words; None where these are more than what is
    sought, or without such a search.

    plan makes the plan of the text with other words in the place of its own.
    """
    first, second = (_star_of(plan(words), words) for words in PROBES)
    return first if first is not None and first == second else None


def _star_of(plan: QueryPlan | None, words: str) -> SearchedStar | None:
    star = None if plan is None or plan.join is None else plan.join.star
    if star is None or not isinstance(star.search.request, LiteralSearch):
        return None
    request = star.search.request
    shown = {part for part, name in star.search.columns if f"?{name.name}" in star.columns}
    if request.text != words or request.limit is None or not shown <= _SHOWN:
        return None
    return replace(star, search=replace(star.search, request=replace(request, text="")))
