"""Where an actor's Unix domain socket lies: in a directory that this user alone can enter."""

import hashlib
import os
import stat
import tempfile

__all__ = ["private_directory"]


def private_directory(owned_directory: str) -> str:
    """A directory for the sockets of whoever serves this one. Its path is short: a socket's has 107 bytes at
    most.

    It is the same for every process that does so in turn, so that killed ones leave nothing behind.
    """
    digest = hashlib.sha256(os.path.realpath(owned_directory).encode()).hexdigest()[:16]
    path = os.path.join(tempfile.gettempdir(), f"graphdb-{os.getuid()}-{digest}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
        if not private or found.st_uid != os.getuid():  # somebody else was there first
            return tempfile.mkdtemp(prefix="graphdb-")
    return path
