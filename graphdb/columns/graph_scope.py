"""Which graphs a pattern is matched in, and where the quads of a predicate are read."""

from collections.abc import Iterable
from dataclasses import dataclass

from graphdb.columns.blocks import Block, Names
from graphdb.columns.term_ids import DEFAULT_GRAPH, Tag
from graphdb.columns.values import Rep, Value

__all__ = ["GraphScope", "Graphs", "quads"]

_NAMES = frozenset((Tag.IRI, Tag.BLANK_NODE))


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
        block.columns[scope.hidden] = Value(f"{alias}.g", Rep.ID, _NAMES, nullable=False)
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
