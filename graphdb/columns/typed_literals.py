"""How literals of XML Schema that are not inline (durations, dates with other time zones) compare with a
constant: the engine is asked of each, as there are few.
"""

from typing import Final, TypeAlias

from duckdb import DuckDBPyConnection
from pyoxigraph import Literal, QuerySolutions, Store

from graphdb.columns.term_ids import XSD, Tag

__all__ = ["TERMS_MAX", "Truths", "compared_with_typed"]

TERMS_MAX: Final = 4_000  # whose numbers stand in the SQL
Truths: TypeAlias = dict[bool, tuple[int, ...]]
"""The numbers of the terms for which a comparison is true, and is false; for others it is an error."""


def compared_with_typed(connection: DuckDBPyConnection, operator: str, constant: Literal) -> Truths | None:
    """The truth of `term operator constant` for each such literal, also of those that no quad has any more.
    None where there are many.
    """
    rows = connection.execute(
        f"SELECT id, text FROM terms WHERE kind = {int(Tag.TYPED)} AND starts_with(datatype, '{XSD}') "
        f"LIMIT {TERMS_MAX + 1}"
    ).fetchall()
    if len(rows) > TERMS_MAX:
        return None
    values = " ".join(f"({number} {text})" for number, text in rows)
    found: dict[bool, list[int]] = {True: [], False: []}
    if rows:
        # FILTER would not tell false from an error
        text = f"SELECT ?n (?t {operator} {constant} AS ?is) {{ VALUES (?n ?t) {{ {values} }} }}"
        solutions = Store().query(text)
        assert isinstance(solutions, QuerySolutions)
        for solution in solutions:
            truth = solution["is"]
            if truth is not None:
                found[truth.value == "true"].append(int(solution["n"].value))
    return {truth: tuple(numbers) for truth, numbers in found.items()}
