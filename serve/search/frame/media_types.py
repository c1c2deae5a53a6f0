"""Content-Type and Accept as Elasticsearch 8 reads them, its own types with a version among them."""

import re
from dataclasses import dataclass
from functools import lru_cache

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["MediaType", "accepted", "content_type"]

VERSIONS = ("7", "8")
_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+)/([!#$%&'*+.^_`|~0-9a-z-]+)\s*", re.ASCII)
_PARAMETER = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+)=\"?([^\s;\"]+)\"?\s*", re.ASCII)
_VENDOR = "vnd.elasticsearch+"


@dataclass(frozen=True, slots=True)
class MediaType:
    """name is without Elasticsearch's own prefix; version is what that asked to be compatible with."""

    name: str
    version: str | None = None

    def of_answer(self) -> str:
        """The Content-Type of an answer in this type."""
        if self.version is None:
            return self.name
        kind, _, subtype = self.name.partition("/")
        return f"{kind}/{_VENDOR}{subtype};compatible-with={self.version}"


@lru_cache(maxsize=512)
def content_type(header: str) -> MediaType:
    """Of a body. Raises media_type_header_exception for what is no media type."""
    return _parsed(header, "Content-Type")


@lru_cache(maxsize=512)
def accepted(header: str) -> MediaType | None:
    """What an answer is to be; None where the client leaves it to us, as browsers do with their lists."""
    if not header or "," in header:
        return None
    found = _parsed(header, "Accept")
    return None if "*" in found.name else found


def _parsed(header: str, which: str) -> MediaType:
    first, *rest = header.lower().split(";")
    kind = _TYPE.fullmatch(first)
    parameters = [_PARAMETER.fullmatch(part) for part in rest if part.strip()]
    if kind is None or None in parameters:
        cause = illegal_argument(f"invalid media-type [{header[:200]}]")
        raise _header_error(f"Invalid media-type value on headers [{which}]", cause)
    given = {found[1]: found[2] for found in parameters if found is not None}
    if not kind[2].startswith(_VENDOR):
        return MediaType(f"{kind[1]}/{kind[2]}")
    version = given.get("compatible-with", VERSIONS[-1])
    if version not in VERSIONS:
        reason = f"{which} version must be either version 8 or 7, but found {version[:20]}."
        raise _header_error(f"{reason} {which}={header[:200]}")
    return MediaType(f"{kind[1]}/{kind[2].removeprefix(_VENDOR)}", version)


def _header_error(reason: str, cause: SearchError | None = None) -> SearchError:
    return SearchError("media_type_header_exception", reason, 400, None, cause)
