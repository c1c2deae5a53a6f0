"""Aggregations: from the JSON of a request to the answer, over the documents that a query has matched."""

from graphdb.search.aggregations.base import answers_below
from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.parsing import parse
from graphdb.search.aggregations.running import run
from graphdb.search.aggregations.scope import MAX_BUCKETS, Scope

__all__ = ["MAX_BUCKETS", "Columns", "Scope", "answers_below", "parse", "run"]
