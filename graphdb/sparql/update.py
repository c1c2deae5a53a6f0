"""Update planning: a parsed update and a state of the store in, the ChangeSet that it makes out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, QuerySolutions

from graphdb.errors import EvaluationFailed, HostNotAllowed, InvalidParameter, RequestError
from graphdb.model import ChangeSet, NamedGraph
from graphdb.sparql import graph_operations
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.engine_text import engine_pattern
from graphdb.sparql.gate import check_services
from graphdb.sparql.graph_operations import change_of
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
    Iri,
    Load,
    Modify,
    MoveGraph,
    Operation,
    Prologue,
    QuadPattern,
    Update,
)
from graphdb.sparql.templates import Template, variables_of
from graphdb.store.engine_errors import request_failures
from graphdb.store.overlay import Overlay

__all__ = ["UpdateContext", "plan_update"]


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """What planning may not find out by itself.

    fresh_blank_node gives a blank node that was never given before, on any node or run. load fetches the
    document of LOAD and yields its quads (RequestError where it cannot); None: LOAD is HostNotAllowed.
    load_allowed and service_allowed say whether LOAD may read this IRI and SERVICE call it.
    """

    fresh_blank_node: Callable[[], BlankNode]
    load: Callable[[str], Iterable[Quad]] | None = None
    load_allowed: Callable[[str], bool] = lambda source: True
    service_allowed: Callable[[str], bool] = lambda endpoint: False


def plan_update(update: Update, overlay: Overlay, using: Dataset, context: UpdateContext) -> ChangeSet:
    """Evaluate a whole update request against the overlay, once, and return its net effect.

    The overlay is left as it was: the caller pushes or applies the result. `using` is the protocol's dataset.
    Raises EvaluationFailed, UnknownGraph, AlreadyExists, HostNotAllowed, InvalidParameter (`using` beside
    WITH or USING in the text); and BaseNotApplied, which asks the caller to apply what is pending and to plan
    again.
    """
    check_services(update, context.service_allowed)
    _check_loads(update, context)
    if using:
        _check_using(update)
    if len(update.operations) == 1:
        return _Planner(update, overlay, using, context).plan(update.operations[0])
    with overlay.request() as state:
        planner = _Planner(update, state, using, context)
        for operation in update.operations:
            state.push(planner.plan(operation))
        return state.pending


class _Planner:
    """Plans one operation at a time against one state, which its caller moves on between them."""

    def __init__(self, update: Update, state: Overlay, using: Dataset, context: UpdateContext) -> None:
        self._update, self._state, self._using, self._context = update, state, using, context

    def plan(self, operation: Operation) -> ChangeSet:
        """The change of one operation; one that is SILENT and fails makes none."""
        try:
            return self._plan(operation)
        except RequestError:
            if getattr(operation, "silent", False):
                return ChangeSet()
            raise

    def _plan(self, operation: Operation) -> ChangeSet:
        state = self._state
        match operation:
            case InsertData():
                return change_of(
                    state, (), ground_quads(self._update, operation, self._context.fresh_blank_node)
                )
            case DeleteData():
                return change_of(state, ground_quads(self._update, operation), ())
            case DeleteWhere():
                return self._delete_where(operation)
            case Modify():
                return self._modify(operation)
            case Load(source, into):
                return self._load(source, into)
            case ClearGraph(target):
                return graph_operations.clear(state, self._graphs(target))
            case DropGraph(target):
                return graph_operations.drop(state, self._graphs(target))
            case CreateGraph(graph):
                return graph_operations.create(state, NamedNode(graph.value))
            case CopyGraph(source, target):
                return graph_operations.copy(state, _graph(source), _graph(target))
            case MoveGraph(source, target):
                return graph_operations.move(state, _graph(source), _graph(target))
            case AddGraph(source, target):
                return graph_operations.add(state, _graph(source), _graph(target))

    def _graphs(self, target: GraphTarget) -> Iterator[NamedGraph | None]:
        """The graphs that CLEAR or DROP addresses; None is the default graph."""
        if target.kind in ("graph", "default"):
            yield _graph(target)
            return
        if target.kind == "all":
            yield None
        yield from self._state.named_graphs()

    def _delete_where(self, operation: DeleteWhere) -> ChangeSet:
        where = engine_pattern(self._update.text, operation.block)
        return self._replace(operation.prologue, where, operation.pattern, (), None, self._using)

    def _modify(self, operation: Modify) -> ChangeSet:
        return self._replace(
            operation.prologue,
            engine_pattern(self._update.text, operation.where, operation.pattern),
            operation.delete or (),
            operation.insert or (),
            operation.with_graph,
            self._using or _dataset(operation.using),
        )

    def _replace(
        self,
        prologue: Prologue,
        where: str,
        delete: tuple[QuadPattern, ...],
        insert: tuple[QuadPattern, ...],
        with_graph: Iri | None,
        dataset: Dataset,
    ) -> ChangeSet:
        """Evaluate the pattern once, fill both templates with its solutions, keep what is a real change.

        where is the pattern as the engine reads it, with its braces.
        """
        variables = variables_of(delete + insert)
        graph = NamedNode(with_graph.value) if with_graph else None
        fresh = self._context.fresh_blank_node
        removing = Template(delete, variables, graph or DefaultGraph(), fresh)
        adding = Template(insert, variables, graph or DefaultGraph(), fresh)
        removed: dict[Quad, None] = {}
        added: dict[Quad, None] = {}
        with request_failures():
            for solution in self._solutions(prologue, where, variables, dataset, graph):
                for quad in removing.fill(solution):
                    removed[quad] = None
                for quad in adding.fill(solution):
                    added[quad] = None
        return change_of(self._state, removed, added)

    def _solutions(
        self, prologue: Prologue, where: str, variables: list[str], dataset: Dataset, graph: NamedNode | None
    ) -> QuerySolutions:
        """The solutions of a WHERE clause, cut down to the variables of its templates."""
        projection = " ".join(f"?{name}" for name in variables) or "*"
        text = f"{_prologue_text(prologue)}SELECT {projection} WHERE {where}"
        answer = self._state.query_text(text, dataset, default_graph=graph)
        assert isinstance(answer, QuerySolutions)
        return answer

    def _load(self, source: Iri, into: Iri | None) -> ChangeSet:
        if self._context.load is None:
            raise HostNotAllowed("LOAD", source.value)
        quads = self._context.load(source.value)
        if into is not None:
            quads = _into(NamedNode(into.value), quads)
        return change_of(self._state, (), quads)


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


def _prologue_text(prologue: Prologue) -> str:
    base = f"BASE <{prologue.base}>\n" if prologue.base is not None else ""
    return base + "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prologue.prefixes)


def _check_loads(update: Update, context: UpdateContext) -> None:
    """Refuse LOAD from a host that is not allowed, before anything is evaluated.

    SILENT does not help: it is for failures, and this is a rule. What names no host that could be called,
    such as an IRI of another scheme, fails to load as a missing document does, so there SILENT holds.
    """
    for operation in update.operations:
        if not isinstance(operation, Load):
            continue
        source = operation.source.value
        if context.load is not None and context.load_allowed(source):
            continue
        if not operation.silent or source.lower().startswith(("http:", "https:")):
            raise HostNotAllowed("LOAD", source)


def _check_using(update: Update) -> None:
    """The protocol's dataset excludes WITH and USING (SPARQL 1.1 Protocol, section 2.2.3)."""
    for operation in update.operations:
        if isinstance(operation, Modify) and (operation.using or operation.with_graph is not None):
            raise InvalidParameter("using-graph-uri", "the update has a WITH or USING clause of its own")
