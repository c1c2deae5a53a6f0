"""`_delete_by_query`, `_update_by_query` and `_reindex`: operations on every document that a query finds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import orjson

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.catalog.new_indexes import check_automatic
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.protection import ALLOW_SIDS
from graphdb.search.results.fetching import EVERYTHING, SourceFilter, parse_source_filter
from graphdb.search.scripts.script import UPDATE, Script, parse_script
from graphdb.search.scripts.stored import with_stored
from graphdb.search.scripts.updates import Changed, run_on
from graphdb.search.segments.operations import PRIMARY_TERM, Action, Operation
from serve.search.backend import SearchBackend
from serve.search.documents.remote_documents import RemoteDocuments, described_remote, remote_of
from serve.search.documents.rewriting import (
    BATCH_DOCUMENTS,
    REWRITE_PARAMETERS,
    Rewriting,
    Rewritten,
    Stored,
    found_documents,
    most_of,
    performed,
    refuse_reading,
)
from serve.search.documents.write_options import generated_id
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint, token_name
from serve.search.frame.parameters import java_integer
from serve.search.searching.search_body import QUERY_TEXT, query_of
from serve.search.searching.search_names import NAME_PARAMETERS, names_found

__all__ = ["routes"]

_PARAMETERS = (
    f"{REWRITE_PARAMETERS} {QUERY_TEXT} {NAME_PARAMETERS} conflicts from max_docs pipeline preference"
)
_PARAMETERS += (
    " request_cache routing scroll_size search_timeout search_type sort stats terminate_after version"
)
_MEMBERS = ("query", "slice", "sort", "max_docs", "conflicts", "script")

_REINDEX_PARAMETERS = f"{REWRITE_PARAMETERS} conflicts max_docs require_alias scroll_size"
_REINDEX_MEMBERS = {"source", "dest", "conflicts", "max_docs", "size", "script"}
_SOURCE_MEMBERS = {"index", "query", "remote", "size", "slice", "_source", "sort"}
_DEST_MEMBERS = {"index", "op_type", "version_type", "routing", "pipeline"}


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("POST", "/{index}/_delete_by_query", _delete_by_query, _PARAMETERS, Body.JSON),
        *endpoint("POST", "/{index}/_update_by_query", _update_by_query, _PARAMETERS, Body.JSON),
        *endpoint("POST", "/_reindex", _reindex, _REINDEX_PARAMETERS, Body.JSON),
    ]


async def _delete_by_query(exchange: Exchange) -> Answer:
    body = await _body(exchange)
    if "script" in body:
        raise parsing("Unknown key for a VALUE in [script].", line=1, col=1)
    if body.get("query") is None:
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: query is missing;")
    return await _rewritten(exchange, body, Action.DELETE, ("updated", "created"))


async def _update_by_query(exchange: Exchange) -> Answer:
    body = await _body(exchange)
    script = await _script_of(exchange, body)
    return await _rewritten(exchange, body, Action.INDEX, ("created",), script)


async def _body(exchange: Exchange) -> dict[str, Any]:
    """The body of the request, with its parameters. Raises for unsupported members."""
    body = dict(await exchange.json() or {})
    refuse_reading(body)
    for name in body:
        if name not in _MEMBERS:
            raise parsing(f"Unknown key for a VALUE in [{name[:100]}].", line=1, col=1)
    query = query_of(exchange.parameters)
    return body if query is None else {**body, "query": query}


async def _script_of(exchange: Exchange, body: Mapping[str, Any]) -> Script | None:
    """Compiled, with a stored one in its place. Raises SearchError."""
    if body.get("script") is None:
        return None
    whole, _ = with_stored({"script": body["script"]}, exchange.node.catalog.scripts)
    return await asyncio.to_thread(parse_script, whole["script"], UPDATE)


async def _rewritten(
    exchange: Exchange,
    body: Mapping[str, Any],
    action: Action,
    hidden: tuple[str, ...],
    script: Script | None = None,
) -> Answer:
    """hidden: counts that the answer is without."""
    kind, word = ("delete", "delete-by-query") if action is Action.DELETE else ("update", "update-by-query")
    task = exchange.begin_task(f"indices:data/write/{kind}/byquery", f"{word} [{exchange['index']}]")
    rewriting = Rewriting.of(exchange, task, body.get("conflicts"))
    rewriting.hidden = hidden
    rewriting.pipeline = exchange.parameters.text("pipeline") if action is Action.INDEX else None
    most = most_of(exchange, body.get("max_docs"))
    refreshed = exchange.parameters.boolean("refresh", False)
    indexes = names_found(exchange.node, exchange["index"], exchange.parameters)
    asked = {name: body[name] for name in ("query", "slice") if body.get(name) is not None}

    async def perform() -> Answer:
        found = await found_documents(exchange, indexes, asked)
        if script is None:
            answer = await rewriting.run(found, most, partial(_again, action))
        else:
            again = partial(_changed_by, script, exchange.node.now_ms())
            answer = await rewriting.run(found, most, again, runs_scripts=True)
        if refreshed:
            await exchange.node.refresh([one.index for one in indexes])
        return answer

    return await performed(exchange, task, perform)


def _again(action: Action, document: Stored) -> DocumentWrite:
    """Rewrite the document that was found; one that has changed since is a conflict."""
    source = b"" if action is Action.DELETE else document.source
    operation = Operation(action, document.doc_id, source, document.routing, document.seq_no, PRIMARY_TERM)
    return DocumentWrite(document.index, operation)


def _changed_by(script: Script, now_ms: int, document: Stored) -> DocumentWrite | None:
    """What a script makes of the document that was found. Raises SearchError."""
    meta = _meta(document, now_ms)
    changed = _checked(run_on(script, document.source, meta), meta, ("_id", "_index", "_routing", "_version"))
    if changed.op == "noop":
        return None
    action = Action.DELETE if changed.op == "delete" else Action.INDEX
    return _again(action, replace(document, source=changed.source))


def _meta(document: Stored, now_ms: int) -> dict[str, Any]:
    """What `ctx` has beside `_source`."""
    return {
        "_index": document.index,
        "_id": document.doc_id,
        "_version": document.version,
        "_routing": document.routing,
        "_now": now_ms,
        "op": "index",
    }


def _checked(changed: Changed, meta: Mapping[str, Any], fixed: Sequence[str]) -> Changed:
    """Errors: illegal_argument_exception for an operation that cannot be, a fixed member that was changed."""
    if changed.op not in ("index", "noop", "delete"):
        raise illegal_argument(
            f"Operation type [{changed.op[:100]}] not allowed, only [noop, index, delete] are allowed"
        )
    added = sorted(changed.meta.keys() - meta.keys())
    if added:
        raise illegal_argument(f"Invalid fields added to context [{','.join(added)[:100]}]")
    for name in fixed:
        if changed.meta.get(name) != meta[name]:
            raise illegal_argument(f"Modifying [{name}] not allowed")
    return changed


async def _reindex(exchange: Exchange) -> Answer:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    _check_members(body, _REINDEX_MEMBERS, "reindex")
    source = _source_of(body)
    task = exchange.begin_task("indices:data/write/reindex", _described(body))
    rewriting = Rewriting.of(exchange, task, body.get("conflicts"), _batch_of(source))
    into = _Destination.of(exchange, body)
    rewriting.pipeline = into.pipeline
    most = most_of(exchange, body.get("size"), body.get("max_docs"))
    refreshed = exchange.parameters.boolean("refresh", False)
    read = _reader(exchange, source, rewriting, into)
    state = exchange.node.catalog.state
    if into.index not in state.by_name and into.index not in state.by_alias:
        check_automatic(state, into.index)

    async def perform() -> Answer:
        script = await _script_of(exchange, body)
        if script is None:
            answer = await read(most, into.copy, False)
        else:
            answer = await read(most, partial(into.copy_by, script, exchange.node.now_ms()), True)
        if refreshed:  # a script may have sent copies to other indexes
            written = map(exchange.node.catalog.find, sorted(rewriting.written_to))
            await exchange.node.refresh([index for index in written if index is not None])
        return answer

    return await performed(exchange, task, perform)


# Writes what a script or a copy makes of at most so many documents of the source.
_Reader: TypeAlias = Callable[[int | None, Rewritten, bool], Awaitable[Answer]]


def _reader(
    exchange: Exchange, source: Mapping[str, Any], rewriting: Rewriting, into: "_Destination"
) -> _Reader:
    if source.get("remote") is not None:
        return _remote_reader(exchange, source, rewriting)
    indexes = names_found(exchange.node, ",".join(_names(source)), exchange.parameters)
    if any(one.index.name == into.index for one in indexes):
        reason = f"reindex cannot write into an index its reading from [{into.index}]"
        raise _invalid(reason)
    asked = {name: source[name] for name in ("query", "slice") if source.get(name) is not None}

    async def read(most: int | None, rewritten: Rewritten, runs_scripts: bool) -> Answer:
        found = await found_documents(exchange, indexes, asked)
        return await rewriting.run(found, most, rewritten, runs_scripts)

    return read


def _remote_reader(exchange: Exchange, source: Mapping[str, Any], rewriting: Rewriting) -> _Reader:
    if rewriting.slices != 1:
        slices = -1 if rewriting.slices is None else rewriting.slices
        raise _invalid(f"reindex from remote sources doesn't support slices > 1 but was [{slices}]")
    if source.get("slice") is not None:
        raise _invalid("reindex from remote sources doesn't support [slice]")
    remotes, names = exchange.node.remotes, _names(source)
    remote = remote_of(source, remotes)

    async def read(most: int | None, rewritten: Rewritten, runs_scripts: bool) -> Answer:
        size = rewriting.batch_documents if most is None else max(1, min(rewriting.batch_documents, most))
        documents = RemoteDocuments(remotes, remote, names, source, size)
        try:
            return await rewriting.run_pages(documents, most, rewritten, runs_scripts)
        finally:
            await documents.close()

    return read


def _described(body: Mapping[str, Any]) -> str:
    """Of a request that may still be refused."""
    dest = body.get("dest")
    into = dest.get("index") if isinstance(dest, Mapping) else None
    source = _source_of(body)
    given = source.get("index")
    names = given if isinstance(given, list) else [given]
    return f"reindex from {described_remote(source)}[{', '.join(map(str, names[:20]))}] to [{into}]"


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where the copies go, and how."""

    index: str
    action: Action
    version_type: str
    routing: str  # keep, discard, or `=` and a value
    shown: SourceFilter
    require_alias: bool
    pipeline: str | None

    @classmethod
    def of(cls, exchange: Exchange, body: Mapping[str, Any]) -> "_Destination":
        source, dest = _source_of(body), _dest_of(body)
        index = dest.get("index")
        if not isinstance(index, str) or not index:
            raise _invalid("index must be specified")
        action = dest.get("op_type", "index")
        if action not in ("index", "create"):
            raise illegal_argument(f"opType must be 'create' or 'index', found: [{str(action)[:100]}]")
        routing = dest.get("routing", "keep")
        if not isinstance(routing, str) or not (routing in ("keep", "discard") or routing.startswith("=")):
            raise illegal_argument(f"Unsupported value for [routing]: [{str(routing)[:100]}]")
        shown = EVERYTHING if source.get("_source") is None else parse_source_filter(source["_source"])
        aliased = exchange.parameters.boolean("require_alias", False)
        pipeline = None if dest.get("pipeline") is None else str(dest["pipeline"])
        version_type = str(dest.get("version_type", "internal"))
        return cls(index, Action(action), version_type, routing, shown, aliased, pipeline)

    def copy(self, document: Stored) -> DocumentWrite:
        version = None if self.version_type == "internal" else document.version
        operation = Operation(
            self.action,
            document.doc_id,
            self._source(document.source),
            self._routing(document.routing),
            version=version,
            version_type=self.version_type,
        )
        return DocumentWrite(self.index, operation, self.require_alias)

    def copy_by(self, script: Script, now_ms: int, document: Stored) -> DocumentWrite | None:
        """What a script makes of the copy, which it may also send elsewhere. Raises SearchError."""
        meta = _meta(document, now_ms)
        changed = _checked(run_on(script, self._source(document.source), meta), meta, ())
        if changed.op == "noop":
            return None
        given = changed.meta
        doc_id = generated_id() if given.get("_id") is None else str(given["_id"])
        moved = given.get("_routing") != meta["_routing"]
        routing = None if given.get("_routing") is None else str(given["_routing"])
        write = self.copy(replace(document, doc_id=doc_id))
        operation = write.operation._replace(
            body=changed.source, routing=routing if moved else write.operation.routing
        )
        version = given.get("_version")
        if version != meta["_version"] and type(version) is int:
            operation = operation._replace(version=version, version_type="external")
        if changed.op == "delete":
            operation = operation._replace(action=Action.DELETE, body=b"")
        index = str(given["_index"]) if given.get("_index") != meta["_index"] else self.index
        return replace(write, index=index, operation=operation)

    def _source(self, source: bytes) -> bytes:
        if not self.shown.includes and not self.shown.excludes:
            return source
        document = orjson.loads(source)
        # `_source` cannot exclude the visibility of a document
        kept = {name: document[name] for name in (ALLOW_SIDS,) if name in document}
        return orjson.dumps(self.shown.applied(document) | kept)

    def _routing(self, own: str | None) -> str | None:
        if self.routing.startswith("="):
            return self.routing[1:] or None
        return own if self.routing == "keep" else None


def _source_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """`source`: a search, without members that change which documents or which parts of them are read."""
    source = body.get("source", {})
    if not isinstance(source, Mapping):
        raise illegal_argument("[source] must be an object")
    refuse_reading(source)
    if source.get("_source") is False:
        raise _invalid("_source:false is not supported in this context")
    for name in source.keys() - _SOURCE_MEMBERS:
        raise parsing(f"Unknown key for a {token_name(source[name])} in [{name[:100]}].", line=1, col=1)
    return source


def _batch_of(source: Mapping[str, Any]) -> int:
    """Documents written at once."""
    size = source.get("size", BATCH_DOCUMENTS)
    if isinstance(size, str):
        number = java_integer(size)
        if number is None:
            raise SearchError("number_format_exception", f'For input string: "{size[:100]}"')
        size = number
    if isinstance(size, bool) or not isinstance(size, int):
        raise SearchError("x_content_parse_exception", "[source] failed to parse field [size]")
    return size


def _invalid(reason: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")


def _dest_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    dest = body.get("dest", {})
    if not isinstance(dest, Mapping):
        raise illegal_argument("[dest] must be an object")
    _check_members(dest, _DEST_MEMBERS, "dest")
    return dest


def _check_members(part: Mapping[str, Any], members: set[str], name: str) -> None:
    unknown = sorted(part.keys() - members)
    if unknown:
        raise SearchError("x_content_parse_exception", f"[{name}] unknown field [{unknown[0][:100]}]")


def _names(source: Mapping[str, Any]) -> list[str]:
    given = source.get("index")
    names: list[Any] = (
        given.split(",") if isinstance(given, str) else given if isinstance(given, list) else [None]
    )
    if not names or not all(isinstance(name, str) and name for name in names):
        raise _invalid("use _all if you really want to copy from all existing indexes")
    return names
