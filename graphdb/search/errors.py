"""Errors of the search API, as Elasticsearch names them."""

from collections.abc import Mapping
from typing import Any

from graphdb.errors import RequestError
from graphdb.public_text import without_paths

__all__ = [
    "SearchError",
    "document_missing",
    "illegal_argument",
    "illegal_request",
    "index_closed",
    "index_not_found",
    "mapper_parsing",
    "parsing",
    "routing_missing",
    "unexpected",
    "version_conflict",
]


class SearchError(RequestError):
    """kind is Elasticsearch's type of the error, status its HTTP status; metadata stands beside both in the
    answer (`index`, `line`, `col`, `resource.id` and so on); cause is what led to it; of_request says that
    the kind of error, which may be one index's, is here the request's: every index would refuse it so.
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        status: int = 400,
        metadata: Mapping[str, Any] | None = None,
        cause: "SearchError | None" = None,
        of_request: bool = False,
    ) -> None:
        super().__init__(kind, reason, status, metadata, cause, of_request)
        self.kind, self.reason, self.status, self.metadata, self.cause = (
            kind,
            reason,
            status,
            metadata or {},
            cause,
        )
        self.of_request = of_request

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def parsing(reason: str, **metadata: Any) -> SearchError:
    """A body that means nothing: unknown clause, wrong shape."""
    return SearchError("parsing_exception", reason, 400, metadata)


def illegal_argument(reason: str, cause: SearchError | None = None) -> SearchError:
    """A value that cannot be."""
    return SearchError("illegal_argument_exception", reason, 400, None, cause)


def illegal_request(reason: str) -> SearchError:
    """A value in a search that cannot be, whatever mapping, settings and documents an index has."""
    return SearchError("illegal_argument_exception", reason, of_request=True)


def mapper_parsing(reason: str, cause: SearchError | None = None) -> SearchError:
    """A mapping that cannot be made. (For a document that does not fit its mapping see
    `document_parsing_exception`, Elasticsearch's name for that since 8.9.)
    """
    return SearchError("mapper_parsing_exception", reason, 400, None, cause)


def index_not_found(name: str) -> SearchError:
    """An index that is not there."""
    metadata = {
        "resource.type": "index_or_alias",
        "resource.id": name,
        "index_uuid": "_na_",
        "index": name,
    }
    return SearchError("index_not_found_exception", f"no such index [{name}]", 404, metadata)


def index_closed(name: str, uuid: str) -> SearchError:
    """An index that is there, and is to be opened before its documents are read or written."""
    return SearchError("index_closed_exception", "closed", 400, {"index_uuid": uuid, "index": name})


def routing_missing(index: str, doc_id: str) -> SearchError:
    """A document whose shard is not known: its index wants a routing with every request."""
    reason = f"routing is required for [{index}]/[{doc_id}]"
    return SearchError("routing_missing_exception", reason, 400, {"index": index})


def document_missing(index: str, shard: int, doc_id: str) -> SearchError:
    """Of an update of a document that is not there, without `upsert`."""
    metadata = {"shard": str(shard), "index": index}
    return SearchError("document_missing_exception", f"[{doc_id}]: document missing", 404, metadata)


def version_conflict(index: str, shard: int, doc_id: str, reason: str) -> SearchError:
    """A document that is not in the state that the request supposes."""
    metadata = {"shard": str(shard), "index": index}
    return SearchError("version_conflict_engine_exception", f"[{doc_id}]: {reason}", 409, metadata)


def unexpected(error: Exception) -> SearchError:
    """A mistake of ours in one operation: an error of that operation alone."""
    return SearchError("exception", f"{type(error).__name__}: {without_paths(str(error))}"[:1000], 500)
