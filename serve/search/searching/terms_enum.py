"""`_terms_enum`: the terms of a field that begin with a text, as completions want them."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from graphdb.search.aggregations.options import Options
from graphdb.search.catalog.state import Index
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import TermDictionary
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_names import NAME_PARAMETERS, names_found

__all__ = ["endpoints"]

_SIZE_MAX = 10_000
_SCANNED_MAX = 200_000  # terms of a field that are met to find those alike but for their case
_CHUNK = 256


def endpoints() -> list[Endpoint]:
    return endpoint("GET POST", "/{index}/_terms_enum", _terms_enum, NAME_PARAMETERS, Body.JSON)


async def _terms_enum(exchange: Exchange) -> Any:
    options = Options("terms_enum", await exchange.json() or {})
    field, size = options.text("field"), options.integer("size", 10, 1)
    start, after = options.text("string", "") or "", options.text("search_after")
    fold = options.flag("case_insensitive")
    options.ignore("timeout", "index_filter")
    options.done()
    if not field:
        raise illegal_argument("field cannot be null")
    if size > _SIZE_MAX:
        raise illegal_argument(f"[size] must be at most [{_SIZE_MAX}]")
    indexes = [one.index for one in names_found(exchange.node, exchange["index"], exchange.parameters)]

    def found() -> list[str]:
        held = [one for index in indexes for one in _held(index, field)]
        return list(islice(_distinct(_matching(held, start, after, fold)), size))

    terms = await exchange.work.run(found)
    shards = {"total": len(indexes), "successful": len(indexes), "failed": 0}
    return {"_shards": shards, "terms": terms, "complete": True}


def _held(index: Index, field: str) -> list[TermDictionary]:
    """The terms of each segment."""
    spec = index.mapping.field(field)
    if spec is None or spec.storage is not Storage.TERMS or spec.type == "ip":
        return []
    return [
        terms.dictionary
        for leaf in index.searcher().leaves
        if (terms := leaf.segment.terms(spec.path)) is not None
    ]


def _matching(held: Sequence[TermDictionary], start: str, after: str | None, fold: bool) -> Iterator[str]:
    """Ascending, with doubles."""
    return merge(*(_of_one(dictionary, start, after, fold) for dictionary in held))


def _of_one(dictionary: TermDictionary, start: str, after: str | None, fold: bool) -> Iterator[str]:
    wanted = start.lower()
    first = dictionary.lower_bound(max(after or "", "" if fold else start))
    last = min(len(dictionary), first + _SCANNED_MAX) if fold else len(dictionary)
    for low in range(first, last, _CHUNK):
        for term in dictionary.terms(low, min(last, low + _CHUNK)):
            if after is not None and term <= after:
                continue
            if fold and not term.lower().startswith(wanted):
                continue
            if not fold and not term.startswith(start):
                return
            yield term


def _distinct(terms: Iterator[str]) -> Iterator[str]:
    last = None
    for term in terms:
        if term != last:
            yield term
        last = term
