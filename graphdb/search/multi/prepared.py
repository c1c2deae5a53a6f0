"""`Prepared`: a search that has been parsed for every index it is of, to be run in one go or step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import SearchError
from graphdb.search.hybrid import Scorer
from graphdb.search.multi.failures import is_of_request
from graphdb.search.multi.slices import Slice, parse_slice
from graphdb.search.multi.targets import Failure, Searchers, Target, union_context
from graphdb.search.query import Matches, Query, parse_query
from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.ranked import RankedQuery
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.tree import MatchAllQuery, boosted
from graphdb.search.results.request import SearchRequest, parse_request
from graphdb.search.results.search import SearchOptions, answered, find, plain_answer, scope_of
from graphdb.search.results.selection import Found

__all__ = ["AllFailed", "Prepared", "prepare"]


DEFAULT_OPTIONS = SearchOptions()


class AllFailed(Exception):
    """No index could be searched. Whoever answers says so in its words."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(failures)
        self.failures = failures


@dataclass(frozen=True, slots=True)
class Prepared:
    """targets are those that are searched, failures the others. Run it once, on one thread at a time.

    run()                        the whole; the short way where it may be taken
    find() ─► Found ─► finish()  candidates that somebody else narrows or scores in between
    """

    request: SearchRequest
    scope: Scope
    options: SearchOptions
    targets: tuple[Target, ...]
    failures: tuple[Failure, ...] = ()
    slice: Slice | None = None

    def run(self, matches: Sequence[Matches] | None = None) -> dict[str, Any]:
        """The answer without `took` and `_shards`. matches, one for each leaf, stand for the query's."""
        if matches is None and self.slice is None and self.request.is_plain and not self._hides:
            return plain_answer(self.request, self.scope, self.options)
        return self.finish(self.find(matches))

    def find(self, matches: Sequence[Matches] | None = None) -> Found:
        """All documents that match, with their scores."""
        found = find(self.request, self.scope, matches)
        if self._hides:
            assert self.scope.visible is not None
            found = found.kept(self.scope.matching(self.scope.visible)[found.docs])
        return found if self.slice is None else self.slice.of(found, self.scope)

    @property
    def _hides(self) -> bool:
        """Whether aliases hide some of what the query finds."""
        return self.scope.visible is not None and isinstance(self.request.query, RankedQuery)

    def finish(self, found: Found) -> dict[str, Any]:
        """The answer for these candidates."""
        return answered(self.request, self.scope, found, self.options)


def prepare(
    body: Mapping[str, Any],
    targets: Sequence[Target],
    searchers: Searchers,
    options: SearchOptions = DEFAULT_OPTIONS,
    shared_statistics: bool = False,
) -> Prepared:
    """Parse a search. At least one target, in the order in which equal hits are to come.

    Raises SearchError for what no index could answer, AllFailed where each fails for itself.
    """
    usable, failures = _usable(body, targets, options.hybrid)
    if not usable:
        raise AllFailed(failures)
    searcher = searchers.of(usable, shared_statistics)
    contexts = [target.context for target in usable]
    context = contexts[0] if len(contexts) == 1 else union_context(contexts)
    window = min(target.window for target in usable)
    try:
        request = parse_request(_nearest_shown(body, usable), context, window, options.hybrid)
    except SearchError as error:
        if is_of_request(error):
            raise
        raise AllFailed([Failure(target.name, error) for target in usable]) from error
    filters = [_filter_of(target) for target in usable]
    scope = scope_of(searcher, context, options)
    if any(filters):
        shown = [one or MatchAllQuery() for one in filters]
        scope.visible = shown[0] if len(shown) == 1 else PerIndexQuery(queries=tuple(shown))
    request = replace(request, query=_narrowed(request.query, usable, filters))
    part = parse_slice(body.get("slice"))
    return Prepared(request, scope, options, tuple(usable), tuple(failures), part)


def _usable(
    body: Mapping[str, Any], targets: Sequence[Target], hybrid: Scorer
) -> tuple[list[Target], list[Failure]]:
    """Which of several indexes can read the request. (One alone is read when it is its turn.)"""
    if len(targets) == 1:
        return list(targets), []
    usable, failures = [], []
    for target in targets:
        try:
            parse_request(body, target.context, target.window, hybrid)
            usable.append(target)
        except SearchError as error:
            if is_of_request(error):
                raise
            failures.append(Failure(target.name, error))
    return usable, failures


def _filter_of(target: Target) -> Query | None:
    return None if target.filter is None else parse_query(target.filter, target.context)


def _narrowed(query: Query, targets: Sequence[Target], filters: Sequence[Query | None]) -> Query:
    """With what aliases show and `indices_boost` put in.

    A ranking over all indexes stays whole: what aliases hide is taken out of what it finds (`Prepared.find`).
    """
    if not any(filters) and all(target.boost == 1.0 for target in targets):
        return query
    if isinstance(query, RankedQuery):
        return query
    parts = []
    for number, (target, narrowed_by) in enumerate(zip(targets, filters, strict=True)):
        part = query.part(number)
        if narrowed_by is not None:
            part = BoolQuery(must=(part,), filter=(narrowed_by,))
        parts.append(boosted(part, target.boost))
    return parts[0] if len(parts) == 1 else PerIndexQuery(queries=tuple(parts))


def _nearest_shown(body: Mapping[str, Any], targets: Sequence[Target]) -> Mapping[str, Any]:
    """The request with an alias's filter in each `knn`, so that as many are found as are asked for."""
    knn = body.get("knn")
    if knn is None or len(targets) > 1 or targets[0].filter is None:
        return body
    clauses = knn if isinstance(knn, list) else [knn]
    if not all(isinstance(clause, Mapping) for clause in clauses):
        return body  # refused where it is parsed
    filtered = []
    for clause in clauses:
        own = clause.get("filter", [])
        filters = [*own, targets[0].filter] if isinstance(own, list) else [own, targets[0].filter]
        filtered.append({**clause, "filter": filters})
    return {**body, "knn": filtered}
