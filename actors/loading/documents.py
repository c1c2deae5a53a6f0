"""RDF documents that every machine of a Ray cluster can read: files at one path, and objects of a store."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from graphdb.content_coding import is_compressed
from graphdb.errors import InvalidParameter, UnavailableError
from graphdb.rdf.formats import RdfSyntax

__all__ = ["Document", "find_objects", "is_remote"]

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Document:
    """One document; address is a path, or the URL of an object (`s3://bucket/key`)."""

    address: str
    syntax: RdfSyntax

    def __str__(self) -> str:
        return self.address

    def open(self) -> IO[bytes]:
        """Its bytes, where they can be sought in. Raises OSError, UnavailableError."""
        if not is_remote(self.address):
            return Path(self.address).open("rb", buffering=0)
        folder, _, name = self.address.rpartition("/")
        with _object_errors() as library:
            opened = library.open_reader(_store(folder), name, buffer_size=_READ_BYTES)
        return cast(IO[bytes], _ObjectFile(opened))

    def measure(self) -> tuple[int, bool]:
        """Its size in bytes, and whether it is compressed. Raises as open()."""
        with self.open() as file:
            beginning = file.read(4)
            return file.seek(0, 2), is_compressed(beginning)


class _ObjectFile(io.RawIOBase):
    """An object as files are: the library's reader lacks `with`, and its own kind of bytes is not `bytes`."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # a buffer is a memoryview here
        with _object_errors():
            chunk = memoryview(self._reader.read(len(buffer)))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._reader.seek(place, whence))


def is_remote(address: str) -> bool:
    """Whether it is the URL of an object, or of a folder of them."""
    return "://" in address


def find_objects(address: str, syntax: RdfSyntax | None) -> list[Document]:
    """An object, or all below a folder whose endings are known; syntax is theirs where it is given.

    Raises InvalidParameter, UnavailableError.
    """
    bucket_and_key = address.partition("://")[2]
    if not address.endswith("/") and "/" in bucket_and_key and _ending(address) is not None:
        return [Document(address, syntax or _syntax_of(address))]
    folder = address.rstrip("/")
    with _object_errors() as library:
        pages = [*library.list(_store(folder))]
    names = sorted(str(found["path"]) for page in pages for found in page)
    known = [(name, ending) for name in names if (ending := _ending(name)) is not None]
    return [Document(f"{folder}/{name}", syntax or ending) for name, ending in known]


def _ending(address: str) -> RdfSyntax | None:
    try:
        return _syntax_of(address)
    except InvalidParameter:
        return None


def _syntax_of(address: str) -> RdfSyntax:
    return RdfSyntax.from_path(Path(address.rpartition("/")[2]))


def _store(folder: str) -> Any:
    """Region, endpoint and credentials are those of the machine: its environment (AWS_...) or its role."""
    from obstore.store import from_url

    return from_url(folder)


@contextmanager
def _object_errors() -> Iterator[Any]:
    """The library of object stores, whose errors are raised as UnavailableError."""
    try:
        import obstore
        import obstore.exceptions
    except ImportError:
        raise UnavailableError(
            "URLs need the extra `distributed`: pip install 'graphdb[distributed]'"
        ) from None
    try:
        yield obstore
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise UnavailableError(str(error).strip().partition("\n")[0] or type(error).__name__) from error
