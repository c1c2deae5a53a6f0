"""Runs a tree of aggregations over the documents that a search has matched."""

import numpy as np

from graphdb.search.aggregations.base import Answer, Common, answers_below
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.segment import Longs

__all__ = ["run"]


def run(aggregations: Common, scope: Scope, docs: Longs) -> Answer:
    """What stands under `aggregations` in the answer. docs ascend."""
    (answers,) = answers_below(scope, aggregations, Rows(docs, np.zeros(len(docs), np.int64), 1))
    return answers
