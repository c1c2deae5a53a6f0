"""Update planning: a parsed update and a state of the store in, the ChangeSet that it makes out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, QuerySolution, QuerySolutions

from graphdb.errors import EvaluationFailed, Forbidden, HostNotAllowed, InvalidParameter, RequestError
from graphdb.geo.function_calls import calls_functions
from graphdb.model import ChangeSet, NamedGraph
from graphdb.planning.engine_text import where_text
from graphdb.planning.gate import check_services
from graphdb.planning.graph_variables import may_list_graphs
from graphdb.sparql.algebra import Algebra
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import ground_quads
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DatasetClause,
    DeleteData,
    DeleteWhere,
    DropGraph,
    GraphTarget,
    InsertData,
    Load,
    Modify,
    MoveGraph,
    Operation,
    QuadPattern,
    Update,
)
from graphdb.sparql.translation import pattern_of_group, pattern_of_quads
from graphdb.sparql.tree_walk import nodes_below
from graphdb.store.engine_errors import request_failures
from graphdb.store.overlay import GraphsInRemoval, Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import SmallJoin, is_one_scan
from graphdb.updates import graph_operations
from graphdb.updates.graph_operations import change_of
from graphdb.updates.templates import ScannedQuads, Template, scanned_by, variables_of

__all__ = ["UpdateContext", "WhereClause", "check_calls", "names_a_host", "plan_update"]

_SMALL = 2_000  # index entries, a few milliseconds


def _no_document(load: Load) -> Iterable[Quad]:
    raise HostNotAllowed("LOAD", load.source.value)


@dataclass(frozen=True, slots=True)
class WhereClause:
    """The WHERE clause of one operation: a SELECT as the engine reads it, and the dataset it is asked of.

    services tells what the placeholders in the text stand for. graph stands in for the default graph where
    the dataset names no graph. calls_geometry: it needs the functions of GeoSPARQL.
    """

    text: str
    services: Mapping[str, str]
    dataset: Dataset
    graph: NamedNode | None
    calls_geometry: bool = False


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """What planning may not find out by itself.

    fresh_blank_node gives a blank node that was never given before, on any node or run, and that nobody can
    guess. load gives the quads of the document that a LOAD names (RequestError where there are none).
    load_allowed and service_allowed say whether LOAD may read this IRI and SERVICE call it. evaluate_apart
    evaluates what may take long, within limits of its own; None: there is no such place, so nothing limits
    it, and there is no SERVICE. check is called for each solution, and ends the planning by what it raises.
    """

    fresh_blank_node: Callable[[], BlankNode]
    load: Callable[[Load], Iterable[Quad]] = _no_document
    load_allowed: Callable[[str], bool] = lambda source: False
    service_allowed: Callable[[str], bool] = lambda endpoint: False
    evaluate_apart: Callable[[QuadStore, WhereClause], Iterable[QuerySolution]] | None = None
    check: Callable[[], None] = lambda: None


def plan_update(update: Update, overlay: Overlay, using: Dataset, context: UpdateContext) -> ChangeSet:
    """Evaluate a whole update request against the overlay, once, and return its net effect.

    The overlay is left as it was: the caller pushes or applies the result. `using` is the protocol's dataset.
    Raises EvaluationFailed, UnknownGraph, AlreadyExists, HostNotAllowed, InvalidParameter (`using` beside
    WITH or USING in the text), what `check` raises, Forbidden where the overlay does; and BaseNotApplied,
    which asks the caller to apply what is pending and to plan again.
    """
    if len(update.operations) == 1 and isinstance(update.operations[0], InsertData | DeleteData):
        return _plan_data(update, update.operations[0], overlay, context)  # which calls and reads nothing
    check_calls(update, context)
    if using:
        _check_using(update)
    if len(update.operations) == 1:
        return _Planner(update, overlay, using, context).plan(update.operations[0])
    with overlay.request() as state:
        planner = _Planner(update, state, using, context)
        for operation in update.operations:
            state.push(planner.plan(operation))
        return state.pending


def _plan_data(
    update: Update, operation: InsertData | DeleteData, state: Overlay, context: UpdateContext
) -> ChangeSet:
    if isinstance(operation, DeleteData):
        return change_of(state, ground_quads(update, operation), ())
    return change_of(state, (), ground_quads(update, operation, context.fresh_blank_node))


class _Planner:
    """Plans one operation at a time against one state, which its caller moves on between them."""

    def __init__(self, update: Update, state: Overlay, using: Dataset, context: UpdateContext) -> None:
        self._update, self._state, self._using, self._context = update, state, using, context

    def plan(self, operation: Operation) -> ChangeSet:
        """The change of one operation; none of one that is SILENT and fails, but for what is Forbidden."""
        try:
            return self._plan(operation)
        except Forbidden:
            raise
        except RequestError:
            if getattr(operation, "silent", False):
                return ChangeSet()
            raise

    def _plan(self, operation: Operation) -> ChangeSet:
        state = self._state
        match operation:
            case InsertData() | DeleteData():
                return _plan_data(self._update, operation, state, self._context)
            case DeleteWhere():
                return self._delete_where(operation)
            case Modify():
                return self._modify(operation)
            case Load():
                return self._load(operation)
            case ClearGraph(target):
                return graph_operations.clear(state, self._graphs(target))
            case DropGraph(target):
                return graph_operations.drop(state, self._graphs(target))
            case CreateGraph(graph):
                return graph_operations.create(state, NamedNode(graph.value))
            case CopyGraph(source, target):
                return self._copied(source, graph_operations.copy(state, _graph(source), _graph(target)))
            case MoveGraph(source, target):
                return self._copied(source, graph_operations.move(state, _graph(source), _graph(target)))
            case AddGraph(source, target):
                return self._copied(source, graph_operations.add(state, _graph(source), _graph(target)))

    def _copied(self, source: GraphTarget, change: ChangeSet) -> ChangeSet:
        self._state.note_copied(_graph(source), change)
        return change

    def _graphs(self, target: GraphTarget) -> Iterator[NamedGraph | None]:
        """The graphs that CLEAR or DROP addresses; None is the default graph."""
        if target.kind in ("graph", "default"):
            yield _graph(target)
            return
        if target.kind == "all" and self._state.has_default_graph:
            yield None
        yield from self._state.named_graphs()

    def _delete_where(self, operation: DeleteWhere) -> ChangeSet:
        scanned = None if self._using else scanned_by(operation.pattern)
        if scanned is not None:
            return self._delete_scanned(scanned)
        variables = variables_of(operation.pattern)
        pattern = pattern_of_quads(operation.pattern)
        text, _ = where_text(pattern, variables, operation.prologue, is_stated=True)
        where = WhereClause(text, {}, self._using, None)
        solutions = self._solutions(where, pattern, is_stated=True)
        return self._replace(solutions, variables, operation.pattern, (), None)

    def _delete_scanned(self, scanned: ScannedQuads) -> ChangeSet:
        """The quads that one pattern matches, as the store has them: half the time of filling its template
        with solutions, and of looking each quad up.
        """
        removed = []
        with request_failures():
            for quad in self._state.quads_matching(*scanned):
                self._context.check()
                removed.append(quad)
        return ChangeSet(tuple(removed))

    def _modify(self, operation: Modify) -> ChangeSet:
        delete, insert = operation.delete or (), operation.insert or ()
        graph = NamedNode(operation.with_graph.value) if operation.with_graph else None
        variables = variables_of(delete + insert)
        pattern = pattern_of_group(operation.pattern)
        text, services = where_text(pattern, variables, operation.prologue, self._token())
        dataset = self._using or _dataset(operation.using)
        where = WhereClause(text, services, dataset, graph, calls_functions(operation.pattern))
        return self._replace(self._solutions(where, pattern), variables, delete, insert, graph)

    def _replace(
        self,
        solutions: Iterable[QuerySolution],
        variables: list[str],
        delete: tuple[QuadPattern, ...],
        insert: tuple[QuadPattern, ...],
        graph: NamedNode | None,
    ) -> ChangeSet:
        """Fill both templates with each solution, keep what is a real change. graph is what WITH names."""
        fresh = self._context.fresh_blank_node
        removing = Template(delete, variables, graph or DefaultGraph(), fresh)
        adding = Template(insert, variables, graph or DefaultGraph(), fresh)
        removed: dict[Quad, None] = {}
        added: dict[Quad, None] = {}
        with request_failures():
            try:
                for solution in solutions:
                    self._context.check()
                    for quad in removing.fill(solution):
                        removed[quad] = None
                    for quad in adding.fill(solution):
                        added[quad] = None
            finally:
                del solutions  # on this thread, as the engine wants it: an error's traceback would keep them
        return change_of(self._state, removed, added)

    def _solutions(
        self, where: WhereClause, pattern: Algebra, *, is_stated: bool = False
    ) -> Iterable[QuerySolution]:
        """The solutions of a WHERE clause, evaluated here only where that is sure not to run away.

        is_stated as in `SmallJoin.of_pattern`. Raises GraphsInRemoval.
        """
        store = self._state.applied_store()
        if store.is_removing and may_list_graphs(nodes_below(pattern)):
            raise GraphsInRemoval
        apart = self._context.evaluate_apart
        if apart is not None and not _is_bounded(store, where, pattern, is_stated):
            return apart(store, where)
        if where.services:
            raise EvaluationFailed("SERVICE is evaluated by a reader only")
        answer = store.query_text(
            where.text, where.dataset, default_graph=where.graph, calls_geometry=where.calls_geometry
        )
        assert isinstance(answer, QuerySolutions)
        return answer

    def _token(self) -> str | None:
        """See `where_text`."""
        return self._context.fresh_blank_node().value if self._update.service_hosts else None

    def _load(self, operation: Load) -> ChangeSet:
        quads = self._context.load(operation)
        if operation.into is not None:
            quads = _into(NamedNode(operation.into.value), quads)
        return change_of(self._state, (), quads)


def _is_bounded(store: QuadStore, where: WhereClause, pattern: Algebra, is_stated: bool) -> bool:
    if is_one_scan(pattern, is_stated=is_stated):
        return True
    if where.dataset:
        return False
    join = SmallJoin.of_pattern(pattern, where.graph, is_stated=is_stated)
    return join is not None and join.fits(store, _SMALL)


def _into(graph: NamedNode, quads: Iterable[Quad]) -> Iterator[Quad]:
    """The triples of a loaded document as quads of the graph that LOAD names."""
    for quad in quads:
        if not isinstance(quad.graph_name, DefaultGraph):
            raise EvaluationFailed(f"LOAD INTO GRAPH {graph}: the document has named graphs of its own")
        yield Quad(quad.subject, quad.predicate, quad.object, graph)


def _graph(target: GraphTarget) -> NamedNode | None:
    return NamedNode(target.graph.value) if target.graph is not None else None


def _dataset(clauses: Iterable[DatasetClause]) -> Dataset:
    """USING and USING NAMED as a dataset."""
    clauses = tuple(clauses)
    return Dataset(
        tuple(NamedNode(clause.graph.value) for clause in clauses if not clause.named),
        tuple(NamedNode(clause.graph.value) for clause in clauses if clause.named),
    )


def check_calls(update: Update, context: UpdateContext) -> None:
    """Raise HostNotAllowed for SERVICE and LOAD where they are not allowed, before anything is evaluated.

    SILENT does not help: it is for failures, and this is a rule. But what names no host that could be called,
    such as an IRI of another scheme, fails to load as a missing document does, so LOAD SILENT passes it over.
    """
    check_services(update, context.service_allowed)
    for operation in update.operations:
        if not isinstance(operation, Load):
            continue
        source = operation.source.value
        if not context.load_allowed(source) and (not operation.silent or names_a_host(operation)):
            raise HostNotAllowed("LOAD", source)


def names_a_host(load: Load) -> bool:
    """Whether LOAD would call somebody."""
    return load.source.value.lower().startswith(("http:", "https:"))


def _check_using(update: Update) -> None:
    """The protocol's dataset excludes WITH and USING (SPARQL 1.1 Protocol, section 2.2.3)."""
    for operation in update.operations:
        if isinstance(operation, Modify) and (operation.using or operation.with_graph is not None):
            raise InvalidParameter("using-graph-uri", "the update has a WITH or USING clause of its own")
