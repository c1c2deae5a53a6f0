"""Aggregations: from the JSON of a request to the answer, over the documents that a query has matched."""

from graphdb.search.aggregations.aggregation import MAX_BUCKETS, Scope, answers_below, run
from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.parsing import parse

__all__ = ["MAX_BUCKETS", "Columns", "Scope", "answers_below", "parse", "run"]
