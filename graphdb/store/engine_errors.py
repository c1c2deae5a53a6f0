"""The engine's exceptions as ours: what pyoxigraph raises in answer to a request becomes a `GraphDBError`.

pyoxigraph tells failures apart by Python's built-in classes, and a bug in it arrives as pyo3's
PanicException, which is no `Exception` at all and would pass every ordinary handler on its way out.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

from graphdb.errors import CorruptionError, EvaluationFailed, GraphDBError, StorageFull
from graphdb.public_text import without_paths

__all__ = ["disk_failure", "request_failure", "request_failures", "storage_failures"]

NO_ROOM = ("No space left on device", "os error 28", "Disk quota exceeded")


@contextmanager
def request_failures() -> Iterator[None]:
    """Evaluate a request: what pyoxigraph raises leaves as EvaluationFailed, StorageFull or CorruptionError.

    What is no failure of the engine (KeyboardInterrupt, our own errors, broken invariants) passes unchanged.
    """
    try:
        yield
    except BaseException as error:
        ours = request_failure(error)
        if ours is None:
            raise
        raise ours from error


def request_failure(error: BaseException) -> GraphDBError | None:
    """The error to raise in place of one of pyoxigraph's; None where the error is not one of them."""
    if _is_panic(error):
        return EvaluationFailed(f"the engine broke down over this request: {without_paths(str(error))}")
    if (failure := disk_failure(error)) is not None:
        return failure
    if isinstance(error, OSError):
        return EvaluationFailed(f"the engine could not finish: {without_paths(str(error))}")
    if isinstance(error, RuntimeError | ValueError | SyntaxError):
        return EvaluationFailed(f"the engine refused the request: {error}")
    return None


def disk_failure(error: BaseException) -> GraphDBError | None:
    """The error to raise in place of one of pyoxigraph's that says that the disk is full, or damaged; None
    where it says nothing of the kind. Its iterators raise such errors wherever quads are taken.
    """
    # it says RuntimeError to some damage
    return _disk_failure(str(error)) if isinstance(error, OSError | RuntimeError) else None


class _StorageFailures:
    """See `storage_failures`. A class: every write enters it."""

    def __enter__(self) -> None:
        """Nothing has failed yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and (isinstance(error, OSError) or _is_panic(error)):
            raise _disk_failure(str(error)) or CorruptionError(str(error), "the quad store") from error


_STORAGE_FAILURES = _StorageFailures()


def storage_failures() -> AbstractContextManager[None]:
    """Change or copy the store: no request is to blame, so what fails is the disk's fault, or ours."""
    return _STORAGE_FAILURES


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def _disk_failure(reason: str) -> GraphDBError | None:
    if any(sign in reason for sign in NO_ROOM):
        return StorageFull("the disk of the data directory is full: the store has no room", 5)
    if "orruption" in reason:
        return CorruptionError(reason, "the quad store")
    return None
