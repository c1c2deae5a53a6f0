"""The rows of the query, sorted by branch: what the answer is shaped from."""

from collections.abc import Iterable

from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, Refused, failure

__all__ = ["Cells", "Table", "tables"]

Cells = dict[str, None]  # cells of tab-separated values, each once, in the order in which they came
Table = dict[str, Cells]  # by the cell of the resource; "" where a row has none


def tables(answer: bytes | Iterable[bytes], branches: int, rows_max: int) -> list[Table]:
    """A table for each branch, of SPARQL's tab-separated values with the columns ?b, ?s and ?v.

    Cells stay as they are written: the same term is always the same text, and most are never read. Raises
    Refused with COMPLEXITY_EXCEEDED for more than rows_max rows.
    """
    whole = answer if isinstance(answer, bytes) else b"".join(answer)
    lines = whole.decode().split("\n")
    if len(lines) - 2 > rows_max:
        message = (
            f"The answer takes more than {rows_max} rows of the graph; ask for less, or filter nested lists."
        )
        raise Refused([failure(COMPLEXITY_EXCEEDED, message, details={"max_rows": rows_max})])
    found: list[Table] = [{} for _ in range(branches)]
    for line in lines[1:]:
        if line:
            branch, subject, value = line.split("\t")
            if branch:
                table = found[int(branch)]
                cells = table.get(subject)
                if cells is None:
                    table[subject] = {value: None}
                else:
                    cells[value] = None
    return found
