"""A transaction on a view."""

from collections.abc import Iterator
from contextlib import contextmanager

from duckdb import DuckDBPyConnection

__all__ = ["transaction"]


@contextmanager
def transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """All of it or nothing; afterwards the connection is outside a transaction."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: DuckDBPyConnection) -> None:
    try:
        connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 the error before says what is wrong
        return
