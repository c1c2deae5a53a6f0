"""`_explain` for one document, and what `_validate` and `profile` show of a query."""

from graphdb.search.query.explanation import Explanation, matched
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Query
from graphdb.search.segment import Leaf

__all__ = ["explain", "rewritten_text"]


def explain(query: Query, leaf: Leaf, doc: int, searcher: Searcher) -> tuple[bool, Explanation]:
    """(whether a document of a leaf matches, the explanation of its score)."""
    explanation = query.explain(leaf, doc, searcher)
    return matched(explanation), explanation


def rewritten_text(query: Query) -> str:
    """A query as Lucene prints it: `title:foo`, `+a:b #c:d`."""
    return str(query)
