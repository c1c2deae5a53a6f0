"""`QueryKeeper`: the actor that keeps the processes of long queries: the readers, and the column view."""

from collections.abc import Awaitable, Callable

from actors.columns.column_view import ColumnView
from actors.columns.protocol import RayAt
from actors.readers.store_reader import StoreReader
from graphdb.config import Settings
from graphdb.errors import UnavailableError

__all__ = ["QueryKeeper"]


class QueryKeeper:
    """The readers, and the column view where there is one. Methods may be called on any thread.

    Both only start, watch and kill processes of their own, so one process is enough for both: each that Ray
    starts takes 28 MB and 0.15 % of a core for nothing. Their processes end with this one. Meanwhile point
    queries and updates go on, and whoever asks for more waits for the readers.
    """

    def __init__(self, settings: Settings, find_log: Callable[[], Awaitable[str]], ray_at: RayAt) -> None:
        """Start the first processes and begin to listen. find_log is `LogClient`'s; ray_at is for column
        shards.
        """
        self._readers = StoreReader(settings)
        self._columns = None
        if settings.columns.enabled:
            self._columns = ColumnView(settings, find_log, ray_at=ray_at)

    def readers_endpoint(self) -> str:
        """The path of the socket, for `ReaderClient`."""
        return self._readers.endpoint()

    def columns_endpoint(self) -> str:
        """The path of the socket, for `ColumnClient`. Raises UnavailableError where there are no columns."""
        if self._columns is None:
            raise UnavailableError("the column view is switched off")
        return self._columns.endpoint()

    def close(self) -> None:
        """End what runs, stop listening, close the view."""
        if self._columns is not None:
            self._columns.close()
        self._readers.close()
