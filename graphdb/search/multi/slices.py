"""`slice`: one of several disjoint parts of what a search finds, so that several clients can read it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.results.selection import Found

__all__ = ["Slice", "parse_slice"]

SLICES_MAX = 1_024  # index.max_slices_per_scroll


@dataclass(frozen=True, slots=True)
class Slice:
    """Part `number` of `count`. By sequence numbers, which stay through refreshes and merges: the parts are
    disjoint although each client opens its own search.
    """

    number: int
    count: int

    def of(self, found: Found, scope: Scope) -> Found:
        seq_nos = [leaf.segment.seq_nos for leaf in scope.columns.leaves]
        own = np.concatenate([np.zeros(0, np.int64), *seq_nos])[found.docs]
        return found.kept(np.asarray(own % self.count == self.number))


def parse_slice(body: Any) -> Slice | None:
    """`{"id": 0, "max": 2}`; field is accepted. Errors: SearchError."""
    if body is None:
        return None
    options = Options("slice", body)
    number, count = options.integer("id", -1), options.integer("max", -1)
    options.ignore("field")
    options.done()
    if count <= 1:
        raise illegal_request("max must be greater than 1")
    if number < 0:
        raise illegal_request("id must be greater than or equal to 0")
    if number >= count:
        raise illegal_request("max must be greater than id")
    if count > SLICES_MAX:
        raise illegal_argument(
            f"The number of slices [{count}] is too large. It must be less than [{SLICES_MAX}]. This limit "
            "can be set by changing the [index.max_slices_per_scroll] index level setting."
        )
    return Slice(number, count)
