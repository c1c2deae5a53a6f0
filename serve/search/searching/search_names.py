"""The indexes that a search names, the shards of them that it asks, and lookups of terms in documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.cluster_settings import allows_expensive
from graphdb.search.catalog.index_blocks import check_reads
from graphdb.search.catalog.index_names import Resolved, ResolveOptions
from graphdb.search.catalog.index_settings import analyzers_of
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.visible_catalog import VisibleIndex
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping import Mapping as FieldMapping
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.multi import SHARDS_MAX, Searchers, Target, prepare
from graphdb.search.query import QueryContext
from graphdb.search.query.clause import TermsLookup
from graphdb.search.results import SearchOptions
from graphdb.search.results.field_values import values_at
from graphdb.search.sharded import IndexPart, LookedUp, SearchTask, SeveralTask
from serve.search.backend import HeldIndex, SearchBackend
from serve.search.documents.reading import one_document
from serve.search.frame.parameters import Parameters, java_integer

__all__ = [
    "EVERY_SHARD",
    "NAME_PARAMETERS",
    "ShardChoice",
    "TermsOfDocuments",
    "check_boosts",
    "context_of_none",
    "held_of",
    "is_limited",
    "looks_up",
    "names_found",
    "search_context",
    "sids_of",
    "targets_of",
    "task_of",
    "task_of_several",
    "whole_index",
]

# The values of a `terms` query that another document holds, of whatever index.


class TermsOfDocuments:
    """A `TermsLookup` over all indexes of a node."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self, index: str, doc_id: str, path: str, routing: str | None) -> list[Any]:
        """The terms in the document now; none without the document. Errors: index_not_found_exception.

        An empty path means the document itself.
        """
        its_index, routing = one_document(self._catalog, index, routing)
        document = its_index.shards.get(doc_id, routing)
        its_index.shards.counters.note_read(document is not None)
        if document is None:
            return []
        source = orjson.loads(document.source)
        return list(values_at(source, path)) if path else [source]


class RecordedTerms:
    """A `TermsLookup` that notes what another one gives."""

    def __init__(self, lookup: TermsLookup) -> None:
        self._lookup = lookup
        self.found: LookedUp = {}

    def __call__(self, index: str, doc_id: str, path: str, routing: str | None) -> Sequence[Any]:
        key = index, doc_id, path, routing
        if key not in self.found:
            self.found[key] = self._lookup(*key)
        return self.found[key]


# A search for others to make: who makes it need not have the documents that it looks up.

_LOOKUPS = (b'"index"', b'"indexed_shape"', b'"more_like_this"', b'"percolate"')


def is_limited(index: Index, target: Target) -> bool:
    """Whether only some of its shards are searched."""
    return len(target.shards) < len(index.shards)


def task_of(index: Index, target: Target, body: Mapping[str, Any], options: SearchOptions) -> SearchTask:
    """The search of one index, for others to make. Errors: SearchError, AllFailed."""
    return SearchTask(
        body,
        target.context.now_ms,
        options,
        target.filter,
        target.boost,
        target.window,
        target.context.allow_expensive,
        _looked_up(target, body, options),
        frozenset(target.shards) if is_limited(index, target) else None,
    )


def task_of_several(
    targets: Sequence[Target], body: Mapping[str, Any], options: SearchOptions, shared_statistics: bool
) -> SeveralTask | None:
    """The same of several indexes; None where some of them cannot read the request."""
    first = targets[0].context
    lookup, recorded = first.terms_lookup, None
    if lookup is not None:
        recorded = RecordedTerms(lookup)
        targets = [replace(one, context=replace(one.context, terms_lookup=recorded)) for one in targets]
    if prepare(body, targets, Searchers(), options, shared_statistics).failures:
        return None
    return SeveralTask(
        body,
        tuple(IndexPart(b"", len(one.shards), one.filter, one.boost, one.window) for one in targets),
        first.now_ms,
        options,
        first.allow_expensive,
        {} if recorded is None else recorded.found,
        shared_statistics,
    )


def _looked_up(target: Target, body: Mapping[str, Any], options: SearchOptions) -> LookedUp:
    """All that a search looks up in documents. Errors: SearchError, AllFailed."""
    text = orjson.dumps([body, target.filter])
    lookup = target.context.terms_lookup
    if lookup is None or not looks_up(text):
        return {}
    recorded = RecordedTerms(lookup)
    recording = replace(target, context=replace(target.context, terms_lookup=recorded))
    prepare(body, [recording], Searchers(), options)
    return recorded.found


def looks_up(text: bytes) -> bool:
    """Whether a search, as JSON without escapes, may read documents that it names."""
    return any(word in text for word in _LOOKUPS)


# Which shards of an index a request asks: `routing` and `preference`.

_PREFERENCES = ("_local", "_only_local", "_only_nodes", "_prefer_nodes")  # this node has all that there is


@dataclass(frozen=True, slots=True)
class ShardChoice:
    """routings: of documents, any of them; none: all. numbers: of shards, None: all."""

    routings: frozenset[str] = frozenset()
    numbers: frozenset[int] | None = None

    @classmethod
    def of(cls, parameters: Parameters) -> "ShardChoice":
        """Errors: illegal_argument_exception, number_format_exception."""
        return cls(frozenset(parameters.strings("routing")), _preferred(parameters.text("preference") or ""))

    def of_index(self, found: Resolved) -> frozenset[int]:
        """The numbers of the shards. Where aliases name routings, too, those count that both name."""
        index, of_aliases = found.index, frozenset(one for text in found.routing for one in text.split(","))
        chosen = frozenset(range(len(index.shards)))
        if of_aliases or self.routings:
            both = of_aliases & self.routings if of_aliases and self.routings else of_aliases | self.routings
            chosen = index.shards.routing.shards_of(both)
        return chosen if self.numbers is None else chosen & self.numbers


EVERY_SHARD = ShardChoice()


def _preferred(preference: str) -> frozenset[int] | None:
    """The shards of `_shards:0,2` or `_shards:0,2|_local`; None where any will do."""
    if not preference.startswith("_"):
        return None
    kind, _, rest = preference.partition(":")
    if kind != "_shards":
        if kind not in _PREFERENCES:
            raise illegal_argument(f"no Preference for [{kind[:100]}]")
        return None
    listed, _, also = rest.partition("|")
    _preferred(also)
    numbers = [java_integer(part) for part in listed.split(",")]
    if None in numbers:
        raise SearchError("number_format_exception", f'For input string: "{listed[:100]}"')
    return frozenset(number for number in numbers if number is not None)


# The indexes of a search, and the visible part of each.

NAME_PARAMETERS = "ignore_unavailable ignore_throttled allow_no_indices expand_wildcards"


def names_found(node: SearchBackend, names: str | None, parameters: Parameters) -> list[Resolved]:
    """The indexes that are named, by name; all for no names.

    Errors: index_not_found_exception, illegal_argument_exception, cluster_block_exception.
    """
    options = ResolveOptions.of(
        parameters.text("expand_wildcards") or "open",
        parameters.boolean("ignore_unavailable", False),
        parameters.boolean("allow_no_indices", True),
    )
    found = node.catalog.resolve(names or "_all", options, node.now_ms())
    for one in found:
        check_reads(one.index)
    return found


def check_boosts(node: SearchBackend, boosts: Any, parameters: Parameters) -> None:
    """Every name in `indices_boost` must be there, unless the request does without missing ones.

    Errors: index_not_found_exception, illegal_argument_exception.
    """
    for name, _ in _boosts(boosts):
        if "*" not in name:
            names_found(node, name, parameters)


def search_context(node: SearchBackend, index: Index) -> QueryContext:
    """How queries read an index now."""
    return index.context(
        node.now_ms(), TermsOfDocuments(node.catalog), allows_expensive(node.catalog.cluster_settings)
    )


def context_of_none(node: SearchBackend) -> QueryContext:
    """How queries would read an index without fields."""
    analyzers = analyzers_of({})
    return QueryContext(FieldMapping.of({}, analyzers), analyzers, node.now_ms())


def targets_of(
    node: SearchBackend, found: Sequence[Resolved], boosts: Any = None, choice: ShardChoice = EVERY_SHARD
) -> list[Target]:
    """As of this moment. boosts: `indices_boost` of a request, by name, alias or pattern: the first to fit.

    Errors: illegal_argument_exception.
    """
    if len(found) == 1 and boosts is None and choice is EVERY_SHARD and not found[0].routing:
        return [_whole_target(node, found[0])]
    chosen = [choice.of_index(one) for one in found]
    count = sum(map(len, chosen))
    if count > SHARDS_MAX:
        raise _too_many(count)
    rated = _boosts(boosts)
    aliases = _aliases(node) if rated else {}
    return [
        Target(
            one.index.searcher(numbers),
            search_context(node, one.index),
            _any_of(one.filters),
            _boost_of(one.index.name, aliases.get(one.index.name, ()), rated),
            one.index.number("max_result_window"),
            tuple(sorted(numbers)),
        )
        for one, numbers in zip(found, chosen, strict=True)
    ]


def _too_many(count: int) -> SearchError:
    return illegal_argument(
        f"Trying to query {count} shards, which is over the limit of {SHARDS_MAX}. This limit "
        "exists because querying many shards at the same time can make the job of the coordinating node "
        "very CPU and/or memory intensive. It is usually a better idea to have a smaller number of "
        "larger shards. Update [action.search.shard_count.limit] to a greater value if you really want "
        "to query that many shards at the same time."
    )


def _whole_target(node: SearchBackend, one: Resolved) -> Target:
    """What most searches are of: all shards of one index."""
    index, filters = one.index, _any_of(one.filters)
    count = len(index.shards)
    if count > SHARDS_MAX:
        raise _too_many(count)
    window = index.number("max_result_window")
    return Target(index.searcher(), search_context(node, index), filters, 1.0, window, tuple(range(count)))


def _any_of(filters: Sequence[Any]) -> Any:
    if not filters:
        return None
    return filters[0] if len(filters) == 1 else {"bool": {"should": list(filters)}}


def _boosts(given: Any) -> list[tuple[str, float]]:
    entries = given if isinstance(given, list) else [] if given is None else [given]
    rated = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise illegal_argument("Expected [START_OBJECT] in [indices_boost]")
        for name, boost in entry.items():
            if isinstance(boost, bool) or not isinstance(boost, int | float) or not 0 <= boost < 1e30:
                raise illegal_argument(
                    f"[indices_boost] of [{name[:100]}] must be a number that is not negative"
                )
            rated.append((name, float(boost)))
    return rated


def _aliases(node: SearchBackend) -> dict[str, list[str]]:
    """By the name of an index."""
    found: dict[str, list[str]] = {}
    for alias, members in node.catalog.aliases.items():
        for index in members:
            found.setdefault(index, []).append(alias)
    return found


def _boost_of(index: str, aliases: Sequence[str], rated: Sequence[tuple[str, float]]) -> float:
    for pattern, boost in rated:
        if any(wildcard_match(pattern, name) for name in (index, *aliases)):
            return boost
    return 1.0


def whole_index(
    node: SearchBackend, target: Target, held: HeldIndex | None = None, *, knows_sids: bool = False
) -> tuple[Index | None, str]:
    """The index that others can search for this process, or None and why they cannot. held: the moment that
    the target is of, where it is not now. knows_sids: others show nothing but what `sids_of` the index show.
    """
    index = node.catalog.find(target.name)
    if index is None or not (
        index.searcher(frozenset(target.shards)) is target.searcher if held is None else held.is_of(index)
    ):
        return None, "it is of an earlier moment"
    if isinstance(index, VisibleIndex) and not knows_sids:
        return None, "not all of it is visible"
    return index, ""


def sids_of(index: Index) -> frozenset[str] | None:
    """By which documents of an index are shown; None where all are."""
    return index.sids if isinstance(index, VisibleIndex) else None


def held_of(
    node: SearchBackend, targets: Sequence[Target], found: Sequence[Resolved]
) -> tuple[HeldIndex, ...]:
    """The moment of the targets, on the shards; none where these are on this node, or cannot be asked."""
    if node.shards is None or any(isinstance(one.index, VisibleIndex) for one in found):
        return ()
    held = tuple(node.shards.hold(one.index) for one in found)
    is_now = all(
        one.index.searcher(frozenset(target.shards)) is target.searcher
        for one, target in zip(found, targets, strict=True)
    )
    return held if is_now else ()
