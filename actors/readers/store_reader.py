"""`StoreReader`: owns the node's evaluators, the processes for queries that may take long.

It is reached over a Unix domain socket (`ReaderClient`). One thread runs its event loop: the socket, the
queue, deadlines, memory, kills. It never evaluates anything itself, so it always answers.
"""

from actors.egress.service_forwarder import ServiceForwarder, service_fetch
from actors.loop_thread import LoopThread
from actors.readers.evaluator_pool import EvaluatorPool
from actors.readers.server import reader_server
from graphdb.config import Settings

__all__ = ["StoreReader"]


class StoreReader:
    """The readers as a service. Methods block until done and may be called on any thread.

    Every query ends, by its answer, an error, its deadline, the memory limit or its client's leaving, and
    with it whatever it took: an evaluator that does not finish is killed and replaced. The evaluators end
    with this object, and with its process however that ends.
    """

    def __init__(self, settings: Settings, *, socket_directory: str | None = None) -> None:
        """Start the evaluators and begin to listen.

        socket_directory is for tests; by default a private one is made under the system's directory for
        temporary files.
        """
        self._pool = EvaluatorPool(settings.readers)
        self._forwarder = ServiceForwarder(
            service_fetch(settings.security), settings.server.query_timeout_seconds
        )
        self._server = reader_server(
            self._pool, self._forwarder, str(settings.server.data_dir), socket_directory
        )
        self._thread = LoopThread("readers")
        self._thread.run(self._start())

    def endpoint(self) -> str:
        """The path of the socket, for `ReaderClient`."""
        return self._server.path

    def close(self) -> None:
        """End what runs, stop listening, end the evaluators."""
        self._thread.run(self._close())
        self._thread.close()

    async def _start(self) -> None:
        self._pool.start()
        await self._forwarder.start()
        await self._server.start()

    async def _close(self) -> None:
        await self._server.close()
        await self._forwarder.close()
        await self._pool.close()
