"""The outermost SELECT: numbers of terms, which `results` makes text of, and computed values as text.

A computed cell is the term in the form of N-Triples, NULL for unbound, or, marked by `MARK`, what Python
writes as the engine does: D and a decimal times 10^18, E and a double, F and a float.
"""

from collections.abc import Sequence
from typing import Final

from graphdb.columns.blocks import Block, Names
from graphdb.columns.term_ids import Tag
from graphdb.columns.values import NotExact, Rep, Value

__all__ = ["MARK", "rendered"]

MARK: Final = "\x01"
_MARK = f"chr({ord(MARK)})"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def rendered(
    names: Names, block: Block, columns: Sequence[str], keys: Sequence[str] = (), suffix: str = ""
) -> str:
    """The SQL of a whole query: its columns in this order, sorted by the keys, cut by suffix."""
    if not columns:
        raise NotExact("a result without columns")
    cells = []
    for number, name in enumerate(columns):
        value = block.columns.get(name)
        if value is not None and Tag.TRIPLE in value.tags:
            raise NotExact("a result that may hold triple terms")
        cells.append(f"{'NULL::VARCHAR' if value is None else _cell(value)} AS v{number}")
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    return f"{names.with_clause()}SELECT {', '.join(cells)}{block.rest()}{order}{suffix}"


def _cell(value: Value) -> str:
    """The number of a term, or the text of a computed one."""
    match value.rep:
        case Rep.ID:
            return value.sql
        case Rep.INTEGER:
            return _typed(f"({value.sql})::VARCHAR", "integer")
        case Rep.BOOLEAN:
            return _typed(f"({value.sql})::VARCHAR", "boolean")
        case Rep.DECIMAL:
            scaled = (
                f"(({value.sql})::HUGEINT * {10 ** (18 - value.scale)}::HUGEINT)"
                if value.scale < 18
                else value.sql
            )
            return f"{_MARK} || 'D' || ({scaled})::VARCHAR"
        case Rep.DOUBLE:
            return f"{_MARK} || 'E' || ({value.sql})::VARCHAR"
        case Rep.FLOAT:
            return f"{_MARK} || 'F' || ({value.sql})::VARCHAR"
        case Rep.STRING:
            return f"'\"' || {_escaped(value.sql)} || '\"'"


def _typed(text: str, datatype: str) -> str:
    return f"'\"' || {text} || '\"^^<{_XSD}{datatype}>'"


def _escaped(sql: str) -> str:
    """As N-Triples has it; a tab too, which ends a cell."""
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        sql = f"replace({sql}, chr({ord(character)}), '{written}')"
    return sql
