"""`_update`: the document that a partial one makes of the one that is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.operations import Operation
from graphdb.search.segments.versioning import Current

__all__ = ["read_object", "updated_source"]

_MEMBERS = {"doc", "upsert", "doc_as_upsert", "detect_noop", "_source"}


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from error
    if not isinstance(value, dict):
        raise SearchError(
            "document_parsing_exception", "failed to parse: malformed content, must start with an object"
        )
    return value


@dataclass(frozen=True, slots=True)
class _Request:
    doc: dict[str, Any] | None
    upsert: dict[str, Any] | None
    doc_as_upsert: bool
    detect_noop: bool

    @classmethod
    def of(cls, body: bytes) -> "_Request":
        request = read_object(body)
        if "script" in request or "scripted_upsert" in request:
            raise illegal_argument("cannot execute scripts: scripting is not supported")
        for name in request.keys() - _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[UpdateRequest] unknown field [{name}]")
        doc, upsert = _object(request, "doc"), _object(request, "upsert")
        as_upsert, noop = _flag(request, "doc_as_upsert", False), _flag(request, "detect_noop", True)
        if doc is None:
            missing = (
                "doc must be specified if doc_as_upsert is enabled"
                if as_upsert
                else "script or doc is missing"
            )
            raise SearchError("action_request_validation_exception", f"Validation Failed: 1: {missing};")
        return cls(doc, upsert, as_upsert, noop)


def updated_source(index: str, operation: Operation, current: Current) -> bytes | None:
    """The new document, None where nothing would change. Raises where there is none to update."""
    request = _Request.of(operation.body)
    if not current.found:
        return _inserted(operation, request)
    source = orjson.loads(current.source)
    changed = _merge(source, request.doc or {})
    if request.detect_noop and not changed:
        return None
    return _dump(source)


def _inserted(operation: Operation, request: _Request) -> bytes:
    inserted = request.doc if request.doc_as_upsert else request.upsert
    if inserted is None:
        raise SearchError("document_missing_exception", f"[{operation.doc_id}]: document missing", 404)
    return _dump(inserted)


def _object(request: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = request.get(name)
    if value is not None and not isinstance(value, dict):
        raise SearchError(
            "x_content_parse_exception",
            f"[UpdateRequest] {name} doesn't support values of type: "
            f"{'START_ARRAY' if isinstance(value, list) else 'VALUE'}",
        )
    return value


def _flag(request: Mapping[str, Any], name: str, default: bool) -> bool:
    value = request.get(name, default)
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise SearchError("x_content_parse_exception", f"[UpdateRequest] failed to parse field [{name}]")
    return value


def _merge(target: dict[str, Any], changes: Mapping[str, Any]) -> bool:
    """Put changes into target, objects into objects; whether anything is different now.

    Not recursive, for the depth is the client's.
    """
    changed = False
    pending = [(target, changes)]
    while pending:
        into, new = pending.pop()
        for name, value in new.items():
            old = into.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                pending.append((old, value))
            else:
                changed = changed or name not in into or not _same(old, value)
                into[name] = value
    return changed


def _same(old: Any, new: Any) -> bool:
    """Equal, also in type: 1 is not 1.0 and not true."""
    return _dump(old, orjson.OPT_SORT_KEYS) == _dump(new, orjson.OPT_SORT_KEYS)


def _dump(value: Any, option: int = 0) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError as error:  # deeper than orjson writes
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from error
