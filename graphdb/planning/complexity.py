"""How large a parsed request is in the ways that tell on the engine: its nesting, its joins, its expressions.

The engine makes a left-deep tree of what stands side by side in the text, and plans joins in time that grows
with the fourth power of their number; so what counts here is what it makes of the text, not the text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.geo.derived_triples import REWRITTEN
from graphdb.geo.entailment import is_derived
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    And,
    Arithmetic,
    Bind,
    BuiltInCall,
    Comparison,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    GroupGraphPattern,
    In,
    InlineData,
    InversePath,
    MinusPattern,
    Not,
    OptionalPattern,
    Or,
    RepeatedPath,
    SelectClause,
    SequencePath,
    ServicePattern,
    Signed,
    SolutionModifiers,
    SubSelect,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.syntax import DeleteData, DeleteWhere, InsertData, Modify, Operation, Query, Update

__all__ = ["Complexity", "measure"]


@dataclass(frozen=True, slots=True)
class Complexity:
    """Each is the figure of a whole query, or the largest of an update's operations; operations counts those
    that are not INSERT DATA or DELETE DATA. `graphdb.planning.gate.GateLimits` says what is counted.
    """

    nesting: int = 0
    patterns_per_group: int = 0
    patterns: int = 0
    optionals: int = 0
    unions: int = 0
    binds: int = 0
    filters: int = 0
    expression_depth: int = 0
    expression_size: int = 0
    path_depth: int = 0
    path_length: int = 0
    operations: int = 0


def measure(request: Query | Update) -> Complexity:
    """Walk a request once. Takes some microseconds for a usual one, and never recurses."""
    if isinstance(request, Query):
        return _measure_query(request)
    figures = [_measure_operation(operation) for operation in request.operations]
    names = [name for name in Complexity.__slots__ if name != "operations"]
    largest = {name: max((getattr(each, name) for each in figures), default=0) for name in names}
    return Complexity(**largest, operations=sum(each.operations for each in figures))


def _measure_query(query: Query) -> Complexity:
    walk = _Walk()
    scope = _Scope()
    if query.where is not None:
        walk.enter(query.where, 0, 0, scope)
    walk.clauses(query.select, query.modifiers, query.values, _Place(0, 0, scope))
    walk.binds += len(query.described or ())
    return walk.finish(operations=0)


def _measure_operation(operation: Operation) -> Complexity:
    walk = _Walk()
    match operation:
        case InsertData() | DeleteData():
            return _NOTHING
        case Modify(pattern=pattern):
            walk.enter(pattern, 0, 0, _Scope())
        case DeleteWhere(pattern=quads):
            scope = _Scope()
            scope.operands = walk.patterns = len(quads)
            walk.scopes.append(scope)
    return walk.finish(operations=1)


_NOTHING = Complexity()


class _Scope:
    """What the engine joins together: patterns of one group, and of the plain groups and GRAPHs in it."""

    __slots__ = ("operands",)

    def __init__(self) -> None:
        self.operands = 0


@dataclass(slots=True)
class _Place:
    """Where a node stands: levels of groups and of expressions around it, and its scope."""

    nesting: int
    depth: int
    scope: _Scope


_Task: TypeAlias = tuple[Any, _Place]


class _Walk:
    """Counts everything below the nodes that are entered."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.patterns = self.binds = 0
        self._optionals = self._unions = self._filters = 0
        self._nesting = self._depth = self._size = 0
        self._path_depth = self._path_length = 0
        self._waiting: list[_Task] = []

    def finish(self, operations: int) -> Complexity:
        """Walk what was entered, and give the figures."""
        waiting = self._waiting
        while waiting:
            node, place = waiting.pop()
            visit = _VISITS.get(type(node))
            if visit is not None:  # a term has nothing below it that counts
                visit(self, node, place)
        return Complexity(
            nesting=self._nesting,
            patterns_per_group=max((scope.operands for scope in self.scopes), default=0),
            patterns=self.patterns,
            optionals=self._optionals,
            unions=self._unions,
            binds=self.binds,
            filters=self._filters,
            expression_depth=self._depth,
            expression_size=self._size,
            path_depth=self._path_depth,
            path_length=self._path_length,
            operations=operations,
        )

    def enter(self, group: GroupGraphPattern, nesting: int, depth: int, scope: _Scope | None = None) -> None:
        """A group within so many others; without a scope it begins one."""
        if scope is None:
            scope = _Scope()
        self.scopes.append(scope)
        self._waiting.append((group, _Place(nesting + 1, depth, scope)))

    def clauses(
        self,
        select: SelectClause | None,
        modifiers: SolutionModifiers,
        values: InlineData | None,
        place: _Place,
    ) -> None:
        """What stands around the WHERE of a query or sub-select, whose scope place has."""
        if values is not None:
            place.scope.operands += 1
        columns = select.projections if select is not None else None
        computed = [column.expression for column in columns or () if column.expression is not None]
        keys = [key.expression for key in modifiers.group_by]
        keys += [key.expression for key in modifiers.order_by]
        self.binds += len(computed) + len(keys)
        self._filters += len(modifiers.having)
        self._expressions((*computed, *keys, *modifiers.having), place, 0)

    # Graph patterns

    def _group(self, group: GroupGraphPattern, place: _Place) -> None:
        self._nesting = max(self._nesting, place.nesting)
        for element in group.elements:
            if isinstance(element, GroupGraphPattern):
                self.enter(element, place.nesting, place.depth, place.scope)
            else:
                self._waiting.append((element, place))

    def _triples(self, block: TriplesBlock, place: _Place) -> None:
        for triple in block.triples:
            if type(triple.predicate) in _PATHS:
                self._path(triple.predicate, place.scope)
            elif is_derived(triple):
                self._topology(place)
            else:
                place.scope.operands += 1
                self.patterns += 1

    def _topology(self, place: _Place) -> None:
        """A pattern that becomes several, in a sub-select."""
        place.scope.operands += 1
        self.patterns += REWRITTEN["patterns"]
        self._unions += REWRITTEN["unions"]
        self._filters += REWRITTEN["filters"]
        self._nesting = max(self._nesting, place.nesting + REWRITTEN["nesting"])

    def _union(self, union: UnionPattern, place: _Place) -> None:
        place.scope.operands += 2  # it costs the join about twice what a triple pattern does
        self._unions += len(union.branches)
        for branch in union.branches:
            self.enter(branch, place.nesting, place.depth)

    def _optional(self, optional: OptionalPattern, place: _Place) -> None:
        self._optionals += 1
        self.enter(optional.pattern, place.nesting, place.depth)

    def _minus(self, minus: MinusPattern, place: _Place) -> None:
        self._filters += 1
        self.enter(minus.pattern, place.nesting, place.depth)

    def _graph(self, graph: GraphPattern, place: _Place) -> None:
        self.enter(graph.pattern, place.nesting, place.depth, place.scope)

    def _service(self, service: ServicePattern, place: _Place) -> None:
        place.scope.operands += 1
        self.enter(service.pattern, place.nesting, place.depth)

    def _values(self, _values: InlineData, place: _Place) -> None:
        place.scope.operands += 1

    def _sub_select(self, select: SubSelect, place: _Place) -> None:
        place.scope.operands += 1
        scope = _Scope()
        self.enter(select.where, place.nesting, place.depth, scope)
        self.clauses(
            select.select, select.modifiers, select.values, _Place(place.nesting, place.depth, scope)
        )

    def _filter(self, pattern: Filter, place: _Place) -> None:
        self._filters += 1
        self._expressions((pattern.expression,), place, 0)

    def _bind(self, bind: Bind, place: _Place) -> None:
        self.binds += 1
        self._expressions((bind.expression,), place, 0)

    def _path(self, path: Any, scope: _Scope) -> None:
        """Sequences and alternatives become joins and unions; `p+` becomes p joined with p*."""
        operands = 0
        # a path, its depth, how often the engine copies it, and whether its leaves are joined by themselves
        waiting = [(path, 0, 1, True)]
        while waiting:
            node, depth, copies, joined = waiting.pop()
            below, parts = _PATHS.get(type(node), (0, None))
            self._path_depth = max(self._path_depth, depth + below)
            if parts is None:
                self._path_length += copies
                operands += joined
            elif isinstance(node, RepeatedPath):
                times = 2 if node.modifier == "+" else 1
                operands += times if joined else 0
                waiting.append((node.path, depth + 1, copies * times, False))
            else:
                waiting.extend([(part, depth + 1, copies, joined) for part in parts(node)])
        scope.operands += operands
        self.patterns += operands

    # Expressions

    def _expressions(self, expressions: tuple[Expression, ...], place: _Place, levels: int) -> None:
        """Expressions so many levels below a place."""
        below = _Place(place.nesting, place.depth + levels, place.scope)
        self._depth = max(self._depth, below.depth)
        self._waiting.extend([(each, below) for each in expressions if type(each) in _VISITS])

    def _chain(self, operands: tuple[Expression, ...], place: _Place) -> None:
        """a && b && c is (a && b) && c to the engine: the first operands are the deepest."""
        self._size += len(operands) - 1
        self._depth = max(self._depth, place.depth + len(operands) - 1)
        for number, operand in enumerate(operands):
            if type(operand) in _VISITS:
                self._expressions((operand,), place, len(operands) - max(number, 1))

    def _junction(self, node: Or | And, place: _Place) -> None:
        self._chain(node.operands, place)

    def _arithmetic(self, node: Arithmetic, place: _Place) -> None:
        self._chain((node.first, *(operand for _, operand in node.rest)), place)

    def _comparison(self, node: Comparison, place: _Place) -> None:
        self._operator((node.left, node.right), place)

    def _in(self, node: In, place: _Place) -> None:
        self._operator((node.expression, *node.options), place)

    def _unary(self, node: Not | Signed, place: _Place) -> None:
        self._operator((node.operand,), place)

    def _call(self, node: BuiltInCall | FunctionCall, place: _Place) -> None:
        self._operator(node.arguments, place)

    def _aggregate(self, node: Aggregate, place: _Place) -> None:
        self.binds += 1
        self._operator(() if node.expression is None else (node.expression,), place)

    def _exists(self, node: Exists, place: _Place) -> None:
        self._size += 1
        self._filters += 1
        self.enter(node.pattern, place.nesting, place.depth + 1)

    def _operator(self, operands: tuple[Expression, ...], place: _Place) -> None:
        self._size += 1
        self._expressions(operands, place, 1)


_VISITS: dict[type, Callable[[_Walk, Any, _Place], None]] = {
    GroupGraphPattern: _Walk._group,
    TriplesBlock: _Walk._triples,
    UnionPattern: _Walk._union,
    OptionalPattern: _Walk._optional,
    MinusPattern: _Walk._minus,
    GraphPattern: _Walk._graph,
    ServicePattern: _Walk._service,
    InlineData: _Walk._values,
    SubSelect: _Walk._sub_select,
    Filter: _Walk._filter,
    Bind: _Walk._bind,
    Or: _Walk._junction,
    And: _Walk._junction,
    Arithmetic: _Walk._arithmetic,
    Comparison: _Walk._comparison,
    In: _Walk._in,
    Not: _Walk._unary,
    Signed: _Walk._unary,
    BuiltInCall: _Walk._call,
    FunctionCall: _Walk._call,
    Aggregate: _Walk._aggregate,
    Exists: _Walk._exists,
}
_PATHS: dict[type, tuple[int, Callable[[Any], tuple[Any, ...]]]] = {
    InversePath: (1, lambda path: (path.path,)),
    SequencePath: (1, lambda path: path.steps),
    AlternativePath: (1, lambda path: path.choices),
    RepeatedPath: (1, lambda path: (path.path,)),
}
