"""The query DSL: parsing, matching, BM25, explanations, highlighting. See DESIGN.md."""

from graphdb.search.query.clause import QueryContext
from graphdb.search.query.hit_explanation import (
    explain,
    matched_queries,
    named_queries,
    rewritten_text,
    with_inner_hits,
)
from graphdb.search.query.parse import parse_query
from graphdb.search.query.searcher import Searcher, ShardSearcher
from graphdb.search.query.top_hits import TopHits, collect, top_hits
from graphdb.search.query.tree import Matches, Query

__all__ = [
    "Matches",
    "Query",
    "QueryContext",
    "Searcher",
    "ShardSearcher",
    "TopHits",
    "collect",
    "explain",
    "matched_queries",
    "named_queries",
    "parse_query",
    "rewritten_text",
    "top_hits",
    "with_inner_hits",
]
