"""What a service keeps beside its data: the lock, the run file, and the names that follow from the directory.

Nothing here knows Ray, so that a second start on the same data is refused before Ray is even imported.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from graphdb.errors import UnavailableError

__all__ = ["RunFile", "ServiceFiles"]

_LOCK = "service.lock"
_RUN_FILE = "service.json"
_RUNTIME_DIR_LENGTH_MAX = 40  # Ray's sockets add 64 bytes, and a socket's path has 107 at most


@dataclass(frozen=True, slots=True)
class RunFile:
    """How to find a running service; `service.json` in the data directory while it runs."""

    pid: int
    ray_address: str  # host:port of Ray's control store
    own_runtime: bool  # False where RAY_ADDRESS named the runtime
    namespace: str  # of the service's actors
    token_file: str  # Ray's authentication token; readable by the service's user alone
    url: str  # of the graph port


class ServiceFiles:
    """The service's files for one data directory. Names follow from its real path, so none collide."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:12]
        self.name = f"graphdb-{digest}"
        self.marker = f"{self.name}-{secrets.token_hex(8)}"
        self.runtime_dir = _short_temporary_directory() / f"gdb-{os.getuid()}-{digest}"
        self._token = secrets.token_hex(32)  # one for all of this process, as Ray's library keeps it
        self._lock: IO[bytes] | None = None

    @property
    def token_file(self) -> Path:
        return self.runtime_dir / "token"

    def acquire(self) -> None:
        """Make the directory this service's own. Raises UnavailableError where that cannot be."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            lock = (self.data_dir / _LOCK).open("ab")
        except OSError as error:
            raise UnavailableError(f"cannot use {self.data_dir}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise UnavailableError(f"another service uses {self.data_dir}{self._whose()}") from None
        self._lock = lock

    def release(self) -> None:
        """Let another service have the directory."""
        if self._lock is not None:
            (self.data_dir / _RUN_FILE).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def make_runtime_dir(self) -> None:
        """An empty directory for the runtime, for this user alone, with this start's token in it."""
        self.remove_runtime_dir()
        try:
            self.runtime_dir.mkdir(mode=0o700)
            descriptor = os.open(self.token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise UnavailableError(f"cannot use {self.runtime_dir}: {error.strerror}") from error
        with os.fdopen(descriptor, "w") as file:
            file.write(self._token)

    def remove_runtime_dir(self) -> None:
        """Remove what this or an earlier, killed service on the same data has left; another user's stays."""
        with contextlib.suppress(FileNotFoundError):
            found = self.runtime_dir.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                shutil.rmtree(self.runtime_dir, ignore_errors=True)

    def write_run_file(self, run_file: RunFile) -> None:
        """Tell clients where the service is. A reader sees the old file or the new one, whole.

        Raises UnavailableError where the disk refuses: there is none then.
        """
        path = self.data_dir / _RUN_FILE
        draft = path.with_suffix(".json.new")
        try:
            draft.write_text(json.dumps(asdict(run_file), indent=2) + "\n")
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise UnavailableError(f"cannot write {path}: {error.strerror}") from error

    def read_run_file(self) -> RunFile:
        """Where the running service is. Raises UnavailableError where none runs on this directory."""
        try:
            run_file = RunFile(**json.loads((self.data_dir / _RUN_FILE).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise UnavailableError(f"no service runs on {self.data_dir}; start one: graphdb serve") from error
        if not _is_alive(run_file.pid):
            raise UnavailableError(f"the service on {self.data_dir} is gone; start it again: graphdb serve")
        return run_file

    def _whose(self) -> str:
        with contextlib.suppress(UnavailableError):
            running = self.read_run_file()
            return f" (process {running.pid}, {running.url})"
        return ""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _short_temporary_directory() -> Path:
    directory = Path(tempfile.gettempdir())
    return directory if len(os.fsencode(directory)) <= _RUNTIME_DIR_LENGTH_MAX - 28 else Path("/tmp")
