"""Triple patterns and property paths as joined tables, in the graphs where they are matched."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from graphdb.columns.blocks import Block, Names, joined, united
from graphdb.columns.expressions import literal_of
from graphdb.columns.term_ids import DEFAULT_GRAPH, Tag
from graphdb.columns.values import NotExact, Rep, Tags, Value
from graphdb.sparql.algebra import Bgp
from graphdb.sparql.algebra import Path as PathPattern
from graphdb.sparql.patterns import (
    AlternativePath,
    InversePath,
    NegatedPropertySet,
    Path,
    RepeatedPath,
    SequencePath,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, TripleTerm, Variable

__all__ = ["GraphScope", "Graphs", "column_name", "match_triples", "quads"]

_NAMES = frozenset((Tag.IRI, Tag.BLANK_NODE))
End: TypeAlias = str | Value
"""The name of a variable, or a constant."""
_IRI = frozenset((Tag.IRI,))


@dataclass(frozen=True, slots=True)
class Graphs:
    """The dataset: numbers of the graphs that make up the default graph, and of those that GRAPH reaches;
    None stands for all named ones.
    """

    default: tuple[int, ...] = (DEFAULT_GRAPH,)
    named: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraphScope:
    """Outside of GRAPH, within GRAPH of one graph (fixed), or within GRAPH of a variable: hidden is then the
    column of the graph's number, of which no variable of a query has the name.
    """

    graphs: Graphs
    fixed: int | None = None
    hidden: str | None = None

    def condition(self, names: Names, column: str) -> str | None:
        """Of quads that match here; None where all do."""
        if self.fixed is not None:
            return f"{column} = {self.fixed}"
        if self.hidden is not None:
            if self.graphs.named is None:
                return f"{column} <> {DEFAULT_GRAPH}"
            return _one_of(column, self.graphs.named)
        if self.graphs.default == (DEFAULT_GRAPH,) and not names.catalog.named_graphs:
            return None
        return _one_of(column, self.graphs.default)


def quads(names: Names, scope: GraphScope, predicate: int | None) -> tuple[Block, str]:
    """The quads of a predicate (None: of all) that match here, and their alias. s and o are columns of it, p
    where the predicate is None, and the hidden column is set.
    """
    alias = names.alias("e")
    block = Block(names)
    entry = None if predicate is None else names.catalog.predicates.get(predicate)
    if predicate is None:
        block.add(f"({_all_quads(names)}) {alias}")
    elif entry is None:
        block.add(f"(SELECT NULL::BIGINT AS s, NULL::BIGINT AS o, NULL::BIGINT AS g WHERE FALSE) {alias}")
    else:
        block.add(f"{entry.table} {alias}")
        if entry.table == "rest":
            block.conditions.append(f"{alias}.p = {predicate}")
    if condition := scope.condition(names, f"{alias}.g"):
        block.conditions.append(condition)
    if scope.hidden is not None:
        block.columns[scope.hidden] = Value(f"{alias}.g", Rep.ID, _NAMES, nullable=False, is_local=True)
    return block, alias


def _all_quads(names: Names) -> str:
    tables = {entry.table: predicate for predicate, entry in names.catalog.predicates.items()}
    selects = [
        f"SELECT s, {predicate}::BIGINT AS p, o, g FROM {table}"
        for table, predicate in tables.items()
        if table != "rest"
    ]
    return " UNION ALL ".join([*selects, "SELECT s, p, o, g FROM rest"])


def _one_of(column: str, graphs: Iterable[int]) -> str:
    listed = list(graphs)
    if not listed:
        return "FALSE"
    return f"{column} = {listed[0]}" if len(listed) == 1 else f"{column} IN ({', '.join(map(str, listed))})"


def column_name(term: object) -> str | None:
    """The name of the column that a variable or a blank node of a pattern has; None of constants."""
    match term:
        case Variable(name=name):
            return name
        case BlankNodeLabel(label=label):
            return f"_:{label}"  # a variable that no expression can name
    return None


def match_triples(names: Names, scope: GraphScope, patterns: Sequence[Bgp | PathPattern]) -> Block:
    """The join of triple patterns and paths, paths last. Raises NotExact."""
    block, ends = Block(names), set[str]()
    for triple in (triple for each in patterns if isinstance(each, Bgp) for triple in each.triples):
        subject, object_ = _end(names, triple.subject), _end(names, triple.object)
        block = joined(block, _match(names, scope, subject, triple.predicate, object_))
        ends.update(end for end in (subject, object_) if isinstance(end, str))
    for path in (each for each in patterns if isinstance(each, PathPattern)):
        matcher = _PathMatcher(names, scope, block, frozenset(ends))
        found = matcher.match(_end(names, path.subject), path.predicate, _end(names, path.object))
        block = joined(matcher.seeded, found)
    return block


def _end(names: Names, term: PatternTerm) -> End:
    name = column_name(term)
    if name is not None:
        return name
    match term:
        case Iri(value=iri):
            return names.constant(NamedNode(iri))
        case RdfLiteral():
            return names.constant(literal_of(term))
        case TripleTerm():
            raise NotExact("a triple term in a pattern")
    raise AssertionError(term)


def _match(names: Names, scope: GraphScope, subject: End, verb: Any, object_: End) -> Block:
    predicate = _end(names, verb)
    if isinstance(predicate, Value):
        return _edges(names, scope, subject, predicate.constant, object_)
    block, alias = quads(names, scope, None)
    catalog = names.catalog
    for column, end, kinds in (
        ("s", subject, catalog.tags(None, "s")),
        ("p", predicate, _IRI),
        ("o", object_, catalog.tags(None, "o")),
    ):
        _bind(block, end, Value(f"{alias}.{column}", Rep.ID, kinds, nullable=False, is_local=True))
    return block


def _edges(names: Names, scope: GraphScope, subject: End, predicate: int | None, object_: End) -> Block:
    assert predicate is not None
    block, alias = quads(names, scope, predicate)
    catalog = names.catalog
    for column, end in (("s", subject), ("o", object_)):
        kinds = catalog.tags(predicate, column)
        _bind(block, end, Value(f"{alias}.{column}", Rep.ID, kinds, nullable=False, is_local=True))
    return block


def _bind(block: Block, end: End, value: Value) -> None:
    """Have a column be a constant, or stand for a variable."""
    if isinstance(end, Value):
        block.conditions.append(f"{value.sql} = {end.sql}")
    elif end in block.columns:
        block.conditions.append(f"{value.sql} = {block.columns[end].sql}")
    else:
        block.columns[end] = value


class _PathMatcher:
    """Matches one path beside a block whose solutions may bind its ends.

    `seeded` is that block, which a path may have made a table of.
    """

    def __init__(self, names: Names, scope: GraphScope, seeded: Block, ends: frozenset[str]) -> None:
        self._names, self._scope, self._ends = names, scope, ends
        self.seeded = seeded

    def match(self, subject: End, path: Path, object_: End) -> Block:
        """Duplicates as SPARQL counts them: paths of any length have none."""
        match path:
            case Iri(value=iri):
                predicate = self._names.constant(NamedNode(iri)).constant
                return _edges(self._names, self._scope, subject, predicate, object_)
            case InversePath(path=inner):
                return self.match(object_, inner, subject)
            case SequencePath(steps=steps):
                return self._sequence(subject, steps, object_)
            case AlternativePath(choices=choices):
                return united(
                    self._names,
                    [self._match_apart(subject, each, object_) for each in choices],
                )
            case NegatedPropertySet():
                return self._negated(subject, path, object_)
            case RepeatedPath():
                return self._repeated(subject, path, object_)

    def _match_apart(self, subject: End, path: Path, object_: End) -> Block:
        """Without what the block beside it binds."""
        matcher = _PathMatcher(self._names, self._scope, Block(self._names), frozenset())
        return matcher.match(subject, path, object_)

    def _sequence(self, subject: End, steps: tuple[Path, ...], object_: End) -> Block:
        block = Block(self._names)
        inner: list[End] = [self._names.alias("_:path") for _ in steps[1:]]
        ends: list[End] = [subject, *inner, object_]
        for start, step, end in zip(ends, steps, ends[1:], strict=False):
            block = joined(block, self.match(start, step, end))
        for name in inner:
            if isinstance(name, str):
                block.columns.pop(name)
        return block

    def _negated(self, subject: End, path: NegatedPropertySet, object_: End) -> Block:
        forward = [member for member in path.members if isinstance(member, Iri)]
        backward = [
            member.path
            for member in path.members
            if isinstance(member, InversePath) and isinstance(member.path, Iri)
        ]
        if not path.members:
            raise NotExact("a negated property set of nothing")
        branches = []
        if forward:
            branches.append(self._without(subject, forward, object_))
        if backward:
            branches.append(self._without(object_, backward, subject))
        if len(branches) > 1:
            return united(self._names, branches)
        return branches[0]

    def _without(self, subject: End, excluded: list[Iri], object_: End) -> Block:
        block, alias = quads(self._names, self._scope, None)
        catalog = self._names.catalog
        for column, end in (("s", subject), ("o", object_)):
            kinds = catalog.tags(None, column)
            _bind(block, end, Value(f"{alias}.{column}", Rep.ID, kinds, nullable=False, is_local=True))
        if excluded:
            numbers = [self._names.constant(NamedNode(iri.value)).sql for iri in excluded]
            block.conditions.append(f"{alias}.p NOT IN ({', '.join(numbers)})")
        return block

    def _repeated(self, subject: End, path: RepeatedPath, object_: End) -> Block:
        """The pairs that the path joins in any number of steps, each once."""
        if self._scope.hidden is not None:
            raise NotExact("a path of any length within GRAPH of a variable")
        edges, tags = self._steps(path.path)
        reached = self._names.alias("r")
        if isinstance(subject, Value) or (isinstance(object_, Value)):
            forward = isinstance(subject, Value)
            start, end = (subject, object_) if forward else (object_, subject)
            assert isinstance(start, Value)
            return self._from_constant(reached, edges, path.modifier, start, end, forward, tags)
        seeds, is_start = self._seeds(subject, object_)
        near, far = ("s", "o") if is_start else ("o", "s")
        zero = "" if path.modifier == "+" else self._identity(seeds)
        first = f"SELECT e.{near} AS a, e.{far} AS b FROM {edges} e"
        if seeds is not None:
            first += f" WHERE e.{near} IN (SELECT x FROM {seeds})"
        if path.modifier == "?":
            sql = f"{first} UNION {zero}"
        else:
            first = f"{first} UNION {zero}" if zero else first
            sql = (
                f"SELECT * FROM ({first}) UNION "
                f"SELECT r.a, e.{far} FROM {reached} r JOIN {edges} e ON e.{near} = r.b"
            )
        self._names.tables.append(f"{reached}(a, b) AS ({sql})")
        alias = self._names.alias("e")
        block = Block(self._names, [f"{reached} {alias}"])
        if path.modifier != "+":
            seed = subject if is_start else object_
            tags |= self.seeded.columns[seed].tags if seeds is not None else self._node_tags()
        for end, column in ((subject, "a" if is_start else "b"), (object_, "b" if is_start else "a")):
            _bind(block, end, Value(f"{alias}.{column}", Rep.ID, tags, nullable=False))
        return block

    def _from_constant(
        self,
        reached: str,
        edges: str,
        modifier: str,
        start: Value,
        end: End,
        forward: bool,
        tags: Tags,
    ) -> Block:
        near, far = ("s", "o") if forward else ("o", "s")
        first = f"SELECT e.{far} AS b FROM {edges} e WHERE e.{near} = {start.sql}"
        if modifier != "+":
            block, quad = quads(self._names, self._scope, None)
            block.conditions.append(f"({quad}.s = {start.sql} OR {quad}.o = {start.sql})")
            if not self._names.catalog.holds(f"SELECT 1{block.rest()}"):
                raise NotExact("a path of length zero from a constant that the graph does not hold")
            first = f"SELECT {start.sql}::BIGINT AS b UNION {first}"
        sql = first
        if modifier != "?":
            step = f"SELECT e.{far} FROM {reached} r JOIN {edges} e ON e.{near} = r.b"
            sql = f"SELECT * FROM ({first}) UNION {step}"
        self._names.tables.append(f"{reached}(b) AS ({sql})")
        alias = self._names.alias("e")
        block = Block(self._names, [f"{reached} {alias}"])
        _bind(block, end, Value(f"{alias}.b", Rep.ID, tags | start.tags, nullable=False))
        return block

    def _steps(self, path: Path) -> tuple[str, Tags]:
        """The name of a table of the pairs (s, o) that one step joins, and the tags of both ends."""
        step = self._match_apart("s", path, "o")
        values = step.columns["s"], step.columns["o"]
        edges = self._names.alias("r")
        select = f"SELECT DISTINCT {values[0].sql} AS s, {values[1].sql} AS o{step.rest()}"
        self._names.tables.append(f"{edges} AS MATERIALIZED ({select})")
        return edges, values[0].tags | values[1].tags

    def _seeds(self, subject: str, object_: str) -> tuple[str | None, bool]:
        """A table of what the block binds one end to (None: nothing), and whether that is the subject.

        Only ends of triple patterns in the same graph: those are nodes of it, as a path of length zero needs.
        """
        block = self.seeded
        for end, is_start in ((subject, True), (object_, False)):
            if end in self._ends and end in block.columns:
                table = self._names.alias("r")
                kept = block.wrapped()
                self._names.tables.append(f"{table} AS MATERIALIZED {kept.tables[0].rpartition(' ')[0]}")
                alias = kept.tables[0].rpartition(" ")[2]
                kept.tables[0] = f"{table} {alias}"
                self.seeded = kept
                column = kept.columns[end].sql.partition(".")[2]
                seeds = self._names.alias("r")
                self._names.tables.append(
                    f"{seeds} AS MATERIALIZED (SELECT DISTINCT {column} AS x FROM {table})"
                )
                return seeds, is_start
        return None, True

    def _identity(self, seeds: str | None) -> str:
        if seeds is not None:
            return f"SELECT x, x FROM {seeds}"
        block, alias = quads(self._names, self._scope, None)
        ends = " UNION ".join(f"SELECT {alias}.{column} AS x{block.rest()}" for column in ("s", "o"))
        return f"SELECT x, x FROM ({ends})"

    def _node_tags(self) -> Tags:
        catalog = self._names.catalog
        return catalog.tags(None, "s") | catalog.tags(None, "o")
