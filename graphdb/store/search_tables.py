"""`Table`: what a search in a query found, as the evaluation of the rest is given it.

A blank node of the store has no name in a query's text: there it is the key `_:label`, of which a function of
the engine makes it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from pyoxigraph import BlankNode, Literal, NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results

__all__ = ["BLANK_FUNCTIONS", "SearchReport", "Stale", "Table", "patterns_of"]

_BLANK: Final = "urn:graphdb:search:blank"
_MARK: Final = "_:"
_UNBOUND: Final = "UNDEF"


class Stale(Exception):
    """The state that is asked for is too old to be searched: a later one has to be asked for."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What `explain` shows of a search."""

    index: str
    query: str
    hits: int  # all that match
    rows: int  # that are joined with the rest of the query
    log_index: int  # of the state that was searched
    plan: str  # how the hits are joined
    seconds: float = 0.0


@dataclass(frozen=True)
class Table:
    """Rows of terms in N-Triples, None where a variable is unbound; names are those of the variables."""

    names: tuple[str, ...]
    rows: Sequence[tuple[str | None, ...]]
    report: SearchReport

    @cached_property
    def has_blank_nodes(self) -> bool:
        """Whether a blank node of the store is among the terms."""
        return any(_is_blank(cell) for row in self.rows for cell in row)

    @property
    def pattern(self) -> str:
        """In SPARQL, as a part of a group for the engine."""
        if not self.names:  # a search that binds nothing says how often there is a solution
            return f"VALUES () {{ {' '.join(['()'] * len(self.rows))} }}"
        if not self.has_blank_nodes:
            return _values(self.names, self.rows)
        keys = tuple(f"{name}_key" for name in self.names)
        rows = ([f'"{cell}"' if _is_blank(cell) else cell for cell in row] for row in self.rows)
        columns = " ".join(
            f"(COALESCE(<{_BLANK}>(?{key}), ?{key}) AS ?{name})"
            for key, name in zip(keys, self.names, strict=True)
        )
        return f"{{ SELECT {columns} WHERE {{ {_values(keys, rows)} }} }}"

    @cached_property
    def solutions(self) -> list[tuple[Any, ...]]:
        """The rows as terms of the engine."""
        if not self.rows or not self.names:
            return [()] * len(self.rows)
        lines = ["\t".join([f"?{name}" for name in self.names])]
        lines += ["\t".join([cell or "" for cell in row]) for row in self.rows]
        table = "\n".join([*lines, ""]).encode()
        found = cast(QuerySolutions, parse_query_results(table, format=QueryResultsFormat.TSV))
        return list(map(tuple, found))


def patterns_of(tables: Mapping[str, Table]) -> dict[str, str]:
    """The pattern of each table, by the name of its search."""
    return {name: table.pattern for name, table in tables.items()}


def _values(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    heads = " ".join([f"?{name}" for name in names])
    if len(names) == 1:
        return f"VALUES {heads} {{ {' '.join([row[0] or _UNBOUND for row in rows])} }}"
    written = " ".join([f"({' '.join([cell or _UNBOUND for cell in row])})" for row in rows])
    return f"VALUES ({heads}) {{ {written} }}"


def _is_blank(cell: str | None) -> bool:
    return cell is not None and cell.startswith(_MARK)


def _blank(key: Any) -> BlankNode | None:
    """None, an error of the expression, for what is no key."""
    if isinstance(key, Literal) and key.language is None and key.value.startswith(_MARK):
        return BlankNode(key.value.removeprefix(_MARK))
    return None


BLANK_FUNCTIONS: Final = {NamedNode(_BLANK): _blank}
"""What the engine has to know for the text of a table."""
