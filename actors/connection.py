"""`Connection`: a running service's actors from a notebook or a script, without HTTP."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from actors.python_values import Rows, rows_from_json
from actors.ray_environment import client_environment
from actors.service_files import RunFile, ServiceFiles
from graphdb.errors import GraphDBError, UnavailableError
from graphdb.model import Confirmation
from graphdb.public_text import fault_text

__all__ = ["Connection", "PurgedPast", "open_connection"]

_Moment: TypeAlias = int | str | datetime | None


def open_connection(data_dir: str | os.PathLike[str]) -> "Connection":
    """Connect to the service that runs on a data directory. Raises UnavailableError where none does.

    Ray's token guards this, not the service's credentials: whoever has it can run code in the service's own
    processes, for Ray unpickles, so nothing that a connection were asked for would hold them up.
    """
    run_file = ServiceFiles(Path(data_dir)).read_run_file()
    if run_file.own_runtime:
        if not os.access(run_file.token_file, os.R_OK):
            raise UnavailableError(
                f"only the user who runs the service at {run_file.url} connects so; others ask it over HTTP"
            )
        os.environ.update(client_environment(run_file.token_file))
    import ray

    from actors import cluster

    if ray.is_initialized() and ray.get_runtime_context().gcs_address != run_file.ray_address:
        raise UnavailableError("this process is connected to another Ray runtime; ray.shutdown() first")
    try:
        if not ray.is_initialized():
            cluster.connect(run_file.ray_address, run_file.namespace)
        port = ray.get_actor(cluster.GRAPH_PORT, namespace=run_file.namespace)
    except Exception as error:
        raise UnavailableError(
            f"the service at {run_file.url} cannot be reached: {fault_text(error)}"
        ) from error
    return Connection(run_file, port)


class PurgedPast(UserWarning):
    """The state of the past that was read lacks what was purged after it."""


class Connection:
    """A running service. Answers come whole, so they are for what fits in memory: 256 MB at most.

    Every method raises the service's own errors (`graphdb.errors`), and UnavailableError when it is gone.
    Answers of a state of the past that lacks what was purged since warn with `PurgedPast`.
    """

    def __init__(self, run_file: RunFile, port: Any) -> None:
        """port is the handle of the GraphPort actor."""
        self._run_file = run_file
        self._port = port

    def query(self, text: str, *, as_of: _Moment = None) -> Rows:
        """The rows of a SELECT query: a list of dicts of Python values; `.to_pandas()` makes a data frame.

        as_of, here and below: the state of the past that is read, by its log index or a time. A time without
        an offset is that of this machine's time zone.
        """
        return rows_from_json(self._read("answer", as_of, text, "SELECT"))

    def ask(self, text: str, *, as_of: _Moment = None) -> bool:
        """The answer to an ASK query."""
        return b"true" in self._read("answer", as_of, text, "ASK")

    def construct(self, text: str, *, as_of: _Moment = None) -> str:
        """The graph of a CONSTRUCT or DESCRIBE query, as N-Triples."""
        return self._read("answer", as_of, text, "CONSTRUCT").decode()

    def validate(
        self,
        shapes: str | None = None,
        *,
        shapes_graph: str | None = None,
        graph: str = "default",
        as_of: _Moment = None,
    ) -> dict[str, Any]:
        """The SHACL validation report of a graph: an IRI, "default", or "union" for all graphs together.

        shapes is Turtle; or else shapes_graph is the IRI of a graph of the service. The report is as
        `POST /shacl/validate` answers: `conforms`, `results`, `stats`.
        """
        report: dict[str, Any] = json.loads(self._read("report", as_of, shapes, shapes_graph, graph))
        return report

    def update(self, text: str) -> Confirmation:
        """Perform an update request, atomically; durable when this returns."""
        confirmation: Confirmation = self._call("update", text)
        return confirmation

    def status(self) -> dict[str, Any]:
        """How the node is: the fields of `/health` that are its own."""
        status: dict[str, Any] = self._call("status")
        return status

    def backup(self, directory: Path) -> int:
        """Write the present state to a directory that does not exist yet; the log index that it is of."""
        index: int = self._call("backup", str(directory.absolute()))
        return index

    def close(self) -> None:
        """Disconnect this process from the service's runtime. Other connections of this process end too."""
        import ray

        ray.shutdown()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graphdb connection to {self._run_file.url}, process {self._run_file.pid}>"

    def _read(self, method: str, as_of: _Moment, *arguments: object) -> bytes:
        found, purged_index = self._call(method, *arguments, _text_of(as_of))
        if purged_index is not None:
            warnings.warn(
                f"something was purged at log index {purged_index}: this state of the past lacks it",
                PurgedPast,
                stacklevel=3,
            )
        answer: bytes = found
        return answer

    def _call(self, method: str, *arguments: object) -> Any:
        import ray

        with _own_errors(self._run_file.url):
            return ray.get(getattr(self._port, method).remote(*arguments))


def _text_of(moment: _Moment) -> str | None:
    """See `graphdb.history.moments.read_moment`."""
    if isinstance(moment, datetime):
        return moment.astimezone(UTC).isoformat()
    return None if moment is None else str(moment)


@contextlib.contextmanager
def _own_errors(url: str) -> Iterator[None]:
    """Give the service's errors as themselves, without Ray's wrapping and the traces of another process."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        cause = error.cause if isinstance(error.cause, GraphDBError) else None
        raise (cause or UnavailableError(f"the service at {url} failed: {fault_text(error.cause)}")) from None
    except RayError as error:
        raise UnavailableError(f"the service at {url} is gone or starting again") from error
