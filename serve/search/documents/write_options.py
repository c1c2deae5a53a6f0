"""Options of writes: versions, routing, refresh, ids, and the documents that they carry."""

import asyncio
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any, NamedTuple

from graphdb.search.document_texts import LongNumbers
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.operations import Action, Operation
from serve.search.frame.exchange import LONG_BYTES, parse_json
from serve.search.frame.parameters import Parameters, java_integer

__all__ = [
    "WRITE_PARAMETERS",
    "Conditions",
    "check_document",
    "generated_id",
    "read_document",
    "refresh_of",
    "simple_text",
]

# Ids for documents that come without one.


def generated_id() -> str:
    """20 characters that need no escaping in a URL."""
    return token_urlsafe(15)


# Documents as they are given: text that has to be one JSON object, kept as it is.


async def check_document(text: bytes) -> None:
    """Raises if it is invalid."""
    if not text:
        raise SearchError("parse_exception", "request body is required")
    if len(text) >= LONG_BYTES:
        await asyncio.to_thread(read_document, text)
    else:
        read_document(text)


def read_document(text: bytes) -> dict[str, Any]:
    """The parsed document. Raises document_parsing_exception for text that cannot be stored."""
    try:
        value = parse_json(text)
    except SearchError as error:
        where = error.reason.partition("]")[0] + "]" if error.reason.startswith("[") else "[1:1]"
        raise _unparsable(f"{where} failed to parse: {error.reason}", error) from None
    if isinstance(value, dict):
        return value
    reason = "malformed content, must start with an object"
    raise _unparsable(f"[1:1] failed to parse: {reason}", SearchError("not_x_content_exception", reason))


def _unparsable(reason: str, cause: SearchError) -> SearchError:
    return SearchError("document_parsing_exception", reason, 400, None, cause)


# The parameters of all writes: `refresh`, `routing`, versions and conditions.

WRITE_PARAMETERS = "refresh routing timeout wait_for_active_shards"
_REFRESH = {"": "true", "true": "true", "false": "false", "wait_for": "wait_for"}
_VERSION_TYPES = {"internal": "internal", "external": "external", "external_gt": "external"}
_VERSION_TYPES["external_gte"] = "external_gte"


def refresh_of(parameters: Parameters) -> str:
    """false, true or wait_for; and refuses what cannot be of the parameters that change nothing here."""
    parameters.time_ms("timeout", None)
    copies = parameters.text("wait_for_active_shards")
    if copies not in (None, "all") and java_integer(copies) is None:
        raise illegal_argument(f"cannot parse ActiveShardCount[{copies}]")
    given = parameters.text("refresh")
    if given is None:
        return "false"
    if given not in _REFRESH:
        raise illegal_argument(f"Unknown value for refresh: [{given}].")
    return _REFRESH[given]


class Conditions(NamedTuple):
    """The conditions of a write on the existing document, and the version of the new one."""

    routing: str | None = None
    if_seq_no: int | None = None
    if_primary_term: int | None = None
    version: int | None = None
    version_type: str = "internal"

    @classmethod
    def of(cls, parameters: Parameters) -> "Conditions":
        """From the query string."""
        return cls.checked(
            parameters.text("routing"),
            parameters.long("if_seq_no", None),
            parameters.long("if_primary_term", None),
            parameters.long("version", None),
            parameters.text("version_type"),
        )

    @classmethod
    def of_line(cls, metadata: Mapping[str, Any]) -> "Conditions":
        """From an action line of a bulk request, whose values are simple."""
        routing = metadata.get("routing")
        return cls.checked(
            None if routing is None else simple_text(routing),
            _number(metadata, "if_seq_no"),
            _number(metadata, "if_primary_term"),
            _number(metadata, "version"),
            metadata.get("version_type"),
        )

    @classmethod
    def checked(
        cls,
        routing: str | None,
        if_seq_no: int | None,
        if_primary_term: int | None,
        version: int | None,
        version_type: Any,
    ) -> "Conditions":
        if if_seq_no is not None and if_seq_no < 0:
            raise illegal_argument(f"sequence numbers must be non negative. got [{if_seq_no}].")
        if if_primary_term is not None and if_primary_term < 0:
            raise illegal_argument(f"primary term must be non negative. got [{if_primary_term}]")
        kind = "internal" if version_type is None else str(version_type).lower()
        if kind not in _VERSION_TYPES:
            raise illegal_argument(f"No version type match [{str(version_type)[:100]}]")
        return cls(routing or None, if_seq_no, if_primary_term, version, _VERSION_TYPES[kind])

    def operation(
        self,
        action: Action,
        doc_id: str,
        body: bytes = b"",
        value: dict[str, Any] | None = None,
        numbers: LongNumbers | None = None,
    ) -> Operation:
        """value and numbers: of the body, if it has been parsed and is kept."""
        return Operation(
            action,
            doc_id,
            body,
            self.routing,
            self.if_seq_no,
            self.if_primary_term,
            self.version,
            self.version_type,
            value,
            numbers=numbers,
        )


def simple_text(value: Any) -> str:
    """A simple JSON value as the text that it was written as."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _number(metadata: Mapping[str, Any], name: str) -> int | None:
    value = metadata.get(name)
    if value is None:
        return None
    number = java_integer(simple_text(value))
    if number is None or not -(2**63) <= number < 2**63:
        raise illegal_argument(f"Failed to parse [{name}] with value [{simple_text(value)[:100]}]")
    return number
