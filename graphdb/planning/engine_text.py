"""What the engine is asked: the algebra of a query rewritten where pyoxigraph reads SPARQL otherwise than the
specification has it, and written as text.

    text ─► parser ─► translation ─► passes ─► printing

The passes, in their order; each comes only where the query has something for it:

- variables and blank nodes get names that the engine reads: `engine_names`;
- filters and an order that a spatial index can narrow get slots: `graphdb/geo/narrowing_filters.py`;
- operators and aggregates that the engine evaluates otherwise: `operators`;
- alternatives and negated sets in paths become unions: `paths`;
- groups that the engine accepts in a sub-select only are made one: `grouping`;
- GRAPH with a variable: `graph_variables`;
- a path of length zero from or to a constant that the graph does not hold: here;
- triple patterns that match more than is stated: `graphdb/geo/derived_triples.py`;
- searches come first, and what is beside them is looked up for each hit: `search_joins`;
- ORDER BY, MIN and MAX go by the order of terms: `ordering`;
- endpoints of SERVICE get placeholders: here. The engine calls what its text names, and checks nothing.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from graphdb.bounded_cache import BoundedCache
from graphdb.errors import EvaluationFailed, HostNotAllowed
from graphdb.geo.derived_triples import with_derived_triples
from graphdb.geo.entailment import is_derived
from graphdb.geo.function_calls import calls_functions
from graphdb.geo.lookups import EngineText
from graphdb.geo.narrowing_filters import Narrowing
from graphdb.planning.engine_names import with_engine_names
from graphdb.planning.graph_variables import GraphVariables, needs_graph_variables
from graphdb.planning.grouping import grouped_apart, grouped_below, uses_its_columns
from graphdb.planning.operators import needs_operators, with_operators
from graphdb.planning.ordering import chooses, choosing_by_keys, ordered_by_keys, sorting_by_keys
from graphdb.planning.paths import needs_unions, with_unions
from graphdb.planning.search_joins import SearchesFirst
from graphdb.sparql.algebra import (
    EMPTY,
    AbstractQuery,
    Algebra,
    Bgp,
    Distinct,
    Exists,
    Extend,
    Filter,
    Group,
    OrderBy,
    Path,
    Project,
    Service,
    Slice,
    TextSearch,
    Union,
    operands_of,
)
from graphdb.sparql.patterns import RepeatedPath
from graphdb.sparql.printing import written_expression, written_pieces
from graphdb.sparql.rewriting import GroupPass
from graphdb.sparql.search_requests import Part
from graphdb.sparql.syntax import Prologue, Query
from graphdb.sparql.terms import Iri, Variable
from graphdb.sparql.translation import FreshNames, abstract_query, beside, select_of
from graphdb.sparql.tree_walk import nodes_below, nodes_of, rewritten

__all__ = [
    "engine_text",
    "engine_text_and_services",
    "engine_text_of",
    "entities_text",
    "is_silent",
    "where_text",
]

_PLACEHOLDER = "urn:graphdb:service:"
_SILENT = "silent:"

_texts: BoundedCache[EngineText] = BoundedCache(entries_max=2048, chars_max=8_000_000)


def engine_text(query: Query) -> EngineText:
    """The text that asks the engine what the query asks. Kept, for a query may come again.

    Raises EvaluationFailed for SERVICE: the engine would call by itself whatever endpoint the text names.
    """
    _check_no_service(query)
    text = _texts.get(query.text, query.base_iri)
    if text is None:
        text = _slotted(query, abstract_query(query))
        _texts.put(query.text, query.base_iri, text)
    return text


def engine_text_and_services(query: Query, token: str) -> tuple[EngineText, dict[str, str]]:
    """`engine_text` with a placeholder for each endpoint that the engine would call, and what they stand for.

    See `_with_placeholders`, also for token and for what is raised.
    """
    if not query.service_hosts:
        return engine_text(query), {}
    asked = abstract_query(query)
    pattern, services = _with_placeholders(asked.pattern, token)
    return _slotted(query, replace(asked, pattern=pattern)), services


def engine_text_of(asked: AbstractQuery) -> str:
    """The text of a query that was made of another's algebra, without slots."""
    return _pieces(asked)[0]


def entities_text(asked: AbstractQuery, search: TextSearch, candidates: str | None, count: int) -> str:
    """The text of a query for so many entities of the pattern that a search of `asked` is within; among
    those that the pattern candidates binds, where it is given.
    """
    assert search.within is not None
    assert search.entity is not None
    pattern = search.within
    tables = {}
    if candidates is not None:
        found = replace(search, columns=((Part.SUBJECT, search.entity),), fixed=(), within=None)
        pattern, condition = beside(found, pattern)
        pattern = pattern if condition is None else Filter(condition, pattern)
        tables[search.name] = candidates
    pattern = Slice(Distinct(Project(pattern, (search.entity,))), None, count)
    made = AbstractQuery("SELECT", pattern, base=asked.base)
    return EngineText(_pieces(made)).with_tables(tables).text


def where_text(
    pattern: Algebra,
    names: Iterable[str],
    prologue: Prologue,
    token: str | None = None,
    *,
    is_stated: bool = False,
) -> tuple[str, dict[str, str]]:
    """A SELECT of these variables over the WHERE of an update.

    With placeholders for endpoints, as `engine_text_and_services`; token is None where there is no SERVICE.
    is_stated: triple patterns match stated triples only, as those of DELETE WHERE do.
    """
    if any(isinstance(node, TextSearch) for node in nodes_below(pattern)):
        raise EvaluationFailed("searches are not evaluated in the WHERE of an update: query first")
    services: dict[str, str] = {}
    if token is not None:
        pattern, services = _with_placeholders(pattern, token)
    return _pieces(select_of(pattern, names, prologue), is_stated=is_stated)[0], services


def _check_no_service(query: Query) -> None:
    if query.service_hosts:
        raise EvaluationFailed("SERVICE is evaluated by a reader only")


def _slotted(query: Query, asked: AbstractQuery) -> EngineText:
    searches = tuple([node for node in nodes_of(asked) if isinstance(node, TextSearch)])
    if not (searches or query.text.isascii()):
        asked = with_engine_names(asked)
    if not calls_functions(query):
        pieces, fillings = written_pieces(_passed(asked, None))
        return EngineText(pieces, fillings=fillings, searches=searches)
    narrowing = Narrowing()
    pieces, fillings = written_pieces(_passed(asked, narrowing))
    nearest = narrowing.nearest
    call = written_expression(nearest.call) if nearest is not None else ""
    return EngineText(pieces, True, tuple(narrowing.lookups), nearest, call, fillings, searches)


def _pieces(asked: AbstractQuery, *, is_stated: bool = False) -> tuple[str, ...]:
    pieces, _ = written_pieces(_passed(asked, None, is_stated=is_stated))
    return pieces


def _passed(asked: AbstractQuery, narrowing: Narrowing | None, *, is_stated: bool = False) -> AbstractQuery:
    """A query after all passes; is_stated: triple patterns match what is stated, and no more."""
    fresh = FreshNames(asked)
    pattern = asked.pattern
    if narrowing is not None:
        pattern = narrowing.of_query(pattern)
    nodes = nodes_of(asked) if pattern is asked.pattern else tuple(nodes_below(pattern))
    if any(map(needs_operators, nodes)):
        pattern = with_operators(pattern, fresh)
        nodes = tuple(nodes_below(pattern))
    if any(map(needs_unions, nodes)):
        pattern = with_unions(pattern, fresh)
        nodes = tuple(nodes_below(pattern))
    if asked.form != "SELECT" and any(isinstance(node, Group) for node in nodes):
        pattern = grouped_below(pattern)
    if any(map(uses_its_columns, nodes)):
        pattern = rewritten(pattern, grouped_apart)
    if any(map(needs_graph_variables, nodes)):
        pattern = GraphVariables(fresh).group(pattern)
    if any(isinstance(node, Path) and _may_be_missed(node) for node in nodes):
        pattern = _ZeroLengthPaths().group(pattern)
    if not is_stated and any(isinstance(node, Bgp) and any(map(is_derived, node.triples)) for node in nodes):
        pattern = with_derived_triples(pattern, fresh, narrowing.new_slot if narrowing is not None else None)
    if any(isinstance(node, TextSearch) for node in nodes):
        pattern = SearchesFirst(fresh).group(pattern)
    if any(map(chooses, nodes)):
        pattern = rewritten(pattern, choosing_by_keys)
    orders = sum(isinstance(node, OrderBy) for node in nodes)
    if orders:
        return _sorted(replace(asked, pattern=pattern), fresh, orders)
    return asked if pattern is asked.pattern else replace(asked, pattern=pattern)


def _sorted(asked: AbstractQuery, fresh: FreshNames, orders: int) -> AbstractQuery:
    """A query with so many ORDER BY in it, sorted by keys."""
    if orders > 1 or not asked.select.order:
        asked = replace(asked, pattern=sorting_by_keys(asked.pattern, fresh))
        if asked.form == "SELECT":
            return asked
    select = asked.select
    made = ordered_by_keys(select, fresh)
    if made is select:
        return asked
    # an answer of one word has no order
    return replace(asked, pattern=(made if asked.form != "ASK" else replace(select, order=())).pattern())


def _with_placeholders(pattern: Algebra, token: str) -> tuple[Algebra, dict[str, str]]:
    """A pattern with a placeholder for each endpoint that the engine would call; what each stands for.

    What stands in a SERVICE is another endpoint's to read: the engine sends it as it is, a SERVICE in it too.
    So only the outer one of two is named anew.

    A placeholder is an IRI made with token; where nobody can guess that, it stands nowhere else in the text.
    Raises HostNotAllowed for a variable, which only the evaluation would know.
    """
    placeholders: dict[tuple[str, bool], str] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, Service):
            return node
        if not isinstance(node.endpoint, Iri):
            raise HostNotAllowed("SERVICE", f"?{node.endpoint.name}")
        new = f"{_PLACEHOLDER}{_SILENT if node.silent else ''}{token}:{len(placeholders)}"
        name = placeholders.setdefault((node.endpoint.value, node.silent), new)
        return replace(node, endpoint=Iri(name))

    made = rewritten(pattern, change)
    return made, {name: endpoint for (endpoint, _), name in placeholders.items()}


def is_silent(placeholder: str) -> bool:
    """Whether a placeholder stands for an endpoint behind SERVICE SILENT."""
    return placeholder.startswith(_PLACEHOLDER + _SILENT)


class _ZeroLengthPaths(GroupPass):
    """Adds the solution of length zero that the engine misses from or to a constant that the graph lacks.

    Where a triple pattern beside has the path's other end as subject or object, that solution would find
    nothing anyway, and the engine plans such a join better without.
    """

    def __init__(self) -> None:
        self._missed: set[int] = set()  # the identities of the paths that get one

    def group(self, node: Algebra, graph: Variable | None = None) -> Algebra:
        """See `GroupPass`."""
        operands = operands_of(node)
        for path in operands:
            if isinstance(path, Path) and _may_be_missed(path):
                end = path.object if isinstance(path.subject, Iri) else path.subject
                is_held = any(_holds(other, end) for other in operands if other is not path)
                if end != graph and not is_held:
                    self._missed.add(id(path))
        return super().group(node, graph)

    def operand(self, node: Any, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if not isinstance(node, Path) or id(node) not in self._missed:
            return super().operand(node, graph)
        given: Algebra = EMPTY
        match node.subject, node.object:
            case (Iri() as iri, Variable() as variable) | (Variable() as variable, Iri() as iri):
                given = Extend(EMPTY, variable, iri)
        return Union((node, Filter(Exists(node, negated=True), given)))


def _may_be_missed(path: Path) -> bool:
    if not isinstance(path.predicate, RepeatedPath) or path.predicate.modifier == "+":
        return False
    match path.subject, path.object:
        case Iri(value=start), Iri(value=end):
            return start == end
        case (Iri(), Variable()) | (Variable(), Iri()):
            return True
    return False


def _holds(operand: Algebra, end: Any) -> bool:
    """Whether what is joined has a term only where the graph has it as a subject or an object."""
    match operand:
        case Bgp(triples=triples):
            return any(end in (triple.subject, triple.object) for triple in triples)
        case Path(subject=Variable() as one, object=Variable() as other):
            return end in (one, other)
    return False
