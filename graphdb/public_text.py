"""What a client may be told of an error: never where the files of the server are.

The texts of the operating system, of the storage engine, of DuckDB and of Ray name them. Whoever makes an
error of ours from another one uses `fault_text`; whatever tells an error to a client uses `public_text`,
should a path be in it all the same. Logs get errors as they are.
"""

import re

from graphdb.errors import GraphDBError, RequestError

__all__ = ["fault_text", "public_text", "without_paths"]

# An absolute path of two names or more, with what follows a blank in one of its names: not what follows the
# scheme or host of a URL, or stands in an IRI. In quotation marks, all up to the closing one.
_NAME = r"[^\s/:;,'\"<>()\[\]]+"
_QUOTED = r"(?<=['\"])/[^'\"\n/]+/[^'\"\n]*(?=['\"])"
_BARE = rf"(?<![\w:/<.%~-])/(?:{_NAME}/)+(?:{_NAME})?(?: (?:{_NAME}/)+(?:{_NAME})?)*"
_PATH = re.compile(f"{_QUOTED}|{_BARE}")


def fault_text(error: BaseException) -> str:
    """The text of an exception that need not be ours, to stand in an error of ours."""
    if isinstance(error, GraphDBError):
        return public_text(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return without_paths(repr(error))


def public_text(error: BaseException) -> str:
    """What a client is told of an error. What is the caller's move quotes what they have sent, and stays."""
    return str(error) if isinstance(error, RequestError) else without_paths(str(error))


def without_paths(text: str) -> str:
    """A text without the absolute paths of files in it; URLs and IRIs stay."""
    return _PATH.sub("(a file of the server)", text)
