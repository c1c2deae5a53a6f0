"""`Cursors`: the connections of one query."""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

__all__ = ["Cursors"]


@dataclass(slots=True)
class Cursors:
    """Those of one query: a cursor has one result at a time, and terms are looked up while rows are fetched.

    version is that of the state which a transaction that is open on `rows` sees; None where none is open, or
    where one is that no other query can use. search_path is where `rows` finds tables before those of the
    view, "" nowhere.
    """

    rows: DuckDBPyConnection
    terms: DuckDBPyConnection
    version: object | None = None
    is_open: bool = False
    search_path: str = ""

    def end(self) -> None:
        """The transaction, if there is one."""
        if self.is_open:
            self.rows.execute("ROLLBACK")
        self.version, self.is_open = None, False

    def interrupt(self) -> None:
        self.rows.interrupt()
        self.terms.interrupt()

    def close(self) -> None:
        self.rows.close()
        self.terms.close()
