"""Scripts that change documents: those of `_update`, `_update_by_query` and `_reindex`.

`ctx` is a map: `_source` and what is known of the document; the script says in `op` what is to be done. The
member that says who sees a document is not in `_source`, and stays, unless the script sets another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.search.errors import SearchError, document_missing, illegal_argument
from graphdb.search.protection import ALLOW_SIDS
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.results import json_value
from graphdb.search.scripts.script import UPDATE, Script, parse_script
from graphdb.search.scripts.values import check_extent

__all__ = ["Changed", "ScriptedUpdate", "run_on"]

# Clients send their defaults too: `doc_as_upsert` is false beside a script.
_MEMBERS = {"script", "upsert", "scripted_upsert", "doc_as_upsert", "_source", "detect_noop", "doc"}
_LARGEST = 200_000_000  # characters and entries of a document, which may have been large before


@dataclass(frozen=True, slots=True)
class Changed:
    """What a script has made of a document. op: `index`, `create`, `delete` or `noop`. meta: of `ctx`."""

    op: str
    source: bytes
    meta: Mapping[str, Any]


def run_on(script: Script, source: bytes, meta: Mapping[str, Any]) -> Changed:
    """meta: what `ctx` has beside `_source`, `op` among it. Raises SearchError."""
    document = orjson.loads(source)
    kept = {name: document.pop(name) for name in (ALLOW_SIDS,) if name in document}
    ctx = {**meta, "_source": document}
    script.run({"ctx": ctx})
    changed = ctx.pop("_source", None)
    try:
        check_extent(changed, len(source) + _LARGEST)
        value = json_value(changed)
    except ScriptFault as fault:
        raise script.error(fault) from None
    if not isinstance(value, dict):
        raise illegal_argument("the script has to leave an object in [ctx._source]")
    try:
        written = orjson.dumps({**kept, **value})
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from None
    return Changed(str(ctx.get("op")), written, ctx)


@dataclass(frozen=True, slots=True)
class ScriptedUpdate:
    """The request of an `_update` with a script."""

    script: Script
    upsert: dict[str, Any] | None
    scripted_upsert: bool

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> "ScriptedUpdate | None":
        """None for one without a script. Its stored script has been put in its place. Raises SearchError."""
        if request.get("script") is None:
            return None
        for name in request.keys() - _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[UpdateRequest] unknown field [{name[:100]}]")
        if request.get("doc") is not None:
            raise SearchError(
                "action_request_validation_exception",
                "Validation Failed: 1: can't provide both script and doc;",
            )
        if request.get("doc_as_upsert", False) not in (False, "false"):
            raise SearchError(
                "action_request_validation_exception",
                "Validation Failed: 1: doc must be specified if doc_as_upsert is enabled;",
            )
        upsert, scripted = request.get("upsert"), request.get("scripted_upsert", False)
        if upsert is not None and not isinstance(upsert, dict):
            raise SearchError(
                "x_content_parse_exception", "[UpdateRequest] upsert doesn't support values of type: VALUE"
            )
        if scripted not in (True, False, "true", "false"):
            raise SearchError(
                "x_content_parse_exception", "[UpdateRequest] failed to parse field [scripted_upsert]"
            )
        return cls(_parsed(request["script"]), upsert, scripted in (True, "true"))

    def on_missing(self, shard: int, meta: Mapping[str, Any]) -> Changed:
        """Where there is no document; shard: where it would be. Errors: document_missing_exception, what the
        script raises.
        """
        if self.upsert is None:
            raise document_missing(meta["_index"], shard, meta["_id"])
        given = orjson.dumps(self.upsert)
        if not self.scripted_upsert:
            return Changed("create", given, {})
        changed = self._run(given, {**meta, "op": "create"})
        return changed if changed.op == "create" else Changed("noop", given, {})

    def on_found(self, source: bytes, meta: Mapping[str, Any]) -> Changed:
        """Raises what the script raises."""
        changed = self._run(source, {**meta, "op": "index"})
        if changed.op in ("index", "delete"):
            return changed
        return Changed("noop", source, {})  # `none`, and whatever is no operation

    def _run(self, source: bytes, meta: Mapping[str, Any]) -> Changed:
        try:
            return run_on(self.script, source, meta)
        except SearchError as error:
            raise _failed(error) from None


def _parsed(body: Any) -> Script:
    try:
        return parse_script(body, UPDATE)
    except SearchError as error:
        raise (_failed(error) if error.kind == "script_exception" else error) from None


def _failed(error: SearchError) -> SearchError:
    return illegal_argument("failed to execute script", error)
