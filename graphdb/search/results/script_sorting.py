"""`_script` of a sort: by what a script returns for each document."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.scripted import leaf_scripts
from graphdb.search.aggregations.value_sources import json_number
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.query import QueryContext
from graphdb.search.results.sort_keys import MODES, SortColumn, SortKey, TermColumn
from graphdb.search.scripts.script import SORT, LeafScript, Script, parse_script

__all__ = ["ByScript", "parse_script_sort"]


@dataclass(frozen=True, slots=True)
class ByScript(SortKey):
    """is_text: by strings, else by numbers."""

    script: Script
    is_text: bool
    descending: bool
    path: str = "_script"

    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        return self._texts(scope, docs, scores) if self.is_text else self._numbers(scope, docs, scores)

    def _numbers(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        values = np.zeros(len(docs))
        for part, leaf_script, local, own in self._parts(scope, docs, scores):
            values[part] = leaf_script.numbers(local, own)
        sign = -1.0 if self.descending else 1.0
        # what is not a number comes last if ascending, as Java compares
        order = np.where(np.isnan(values), np.inf, values) * sign

        def place(value: Any) -> float:
            try:
                return float(value) * sign
            except (TypeError, ValueError):
                raise illegal_argument("Failed to parse search_after value for field [_script].") from None

        return SortColumn(order, lambda row: json_number(float(values[row])), place)

    def _texts(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        texts: list[str] = []
        for _, leaf_script, local, own in self._parts(scope, docs, scores):
            texts += leaf_script.texts(local, own)
        terms = sorted(set(texts))
        places = {term: place for place, term in enumerate(terms)}
        sign = -1 if self.descending else 1
        order = np.array([2 * places[text] * sign for text in texts], np.int64)

        def place(value: Any) -> float:
            number = bisect_left(terms, str(value))
            is_there = number < len(terms) and terms[number] == value
            return (2 * number if is_there else 2 * number - 1) * sign

        def term(row: int) -> str:
            return texts[row]

        return TermColumn(order, term, place, term, self.descending, 2 * len(terms) + 1)

    def _parts(
        self, scope: Scope, docs: Longs, scores: Floats | None
    ) -> "Iterator[tuple[slice, LeafScript, Longs, Floats]]":
        """By leaf: which of the documents, the script there, their numbers there, scores by document."""
        for part, script, leaf, local in leaf_scripts(scope, self.script, docs):
            own = np.zeros(leaf.segment.size, np.float32)
            if scores is not None:
                own[local] = scores[part]
            yield part, script, local, own


def parse_script_sort(body: Any, context: QueryContext) -> SortKey:
    """The object under `_script`."""
    options = Options("_script", body)
    order, kind, mode = options.text("order", "asc"), options.text("type"), options.text("mode")
    script = options.take("script")
    if options.take("nested") is not None:
        raise illegal_request("[nested] is not supported in a sort by [_script]")
    options.done()
    if script is None or kind is None:
        raise illegal_request(f"Required [{'script' if script is None else 'type'}]")
    if kind not in ("number", "string"):
        raise illegal_request(f"Unknown ScriptSortType [{kind[:100]}]")
    if order not in ("asc", "desc"):
        raise illegal_request(f"Unknown SortOrder [{str(order)[:100]}]")
    if mode is not None and mode not in MODES:
        raise illegal_request(f"Unknown SortMode [{mode[:100]}]")
    return ByScript(parse_script(script, SORT), kind == "string", order == "desc")
