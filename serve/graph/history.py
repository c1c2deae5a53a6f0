"""What changed, by whom and when: `/history`, `/diff`; and back to an earlier state: `/revert`."""

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import orjson
from pyoxigraph import DefaultGraph, Literal, NamedNode, Triple
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import IndexNotReached, InvalidParameter
from graphdb.history.asked import AskedChanges
from graphdb.history.moments import Moment, read_moment
from graphdb.history.pages import Difference, Entry, HistoryPage, PageRequest, read_cursor
from graphdb.history.provenance import PREFIXES, provenance
from graphdb.live.changes import change_members
from graphdb.model import UNKNOWN_AUTHOR, Interface, NamedGraph
from graphdb.node import Consistency
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import PATCH_TYPE, header_row, patch_rows
from graphdb.rdf.writing import write_quads
from graphdb.timestamps import iso_timestamp
from graphdb.transactions.changes import TransactionCommit
from serve.access.request_scope import visibility_of
from serve.backend import History, Progress, Purges, Writing
from serve.graph.query_parameters import refuse_as_of
from serve.graph.rdf4j.wire import read_value
from serve.graph.writes import confirm, read_request_id, writes_of
from serve.negotiation import Offer, choose, parse_media_type
from serve.parameters import Parameters, read_graph_iri

__all__ = ["DIFF_TYPE", "HISTORY_SYNTAXES", "HistoryEndpoint"]

JSON_TYPE = "application/json"
DIFF_TYPE = "text/x-diff"
_NOT_AS_OF = "from and to say which changes are asked for"
_LIMIT, _LIMIT_MAX = 100, 1_000  # entries of a page
_LIMIT_TEXT = re.compile(r"\d{1,4}", re.ASCII)
HISTORY_SYNTAXES = (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.TRIG, RdfSyntax.N_QUADS)
_RDF_OFFERS: list[Offer[RdfSyntax | None]] = [
    Offer(parse_media_type(syntax.media_type), syntax) for syntax in HISTORY_SYNTAXES
]
_HISTORY_OFFERS: tuple[Offer[RdfSyntax | None], ...] = (
    Offer(parse_media_type(JSON_TYPE), None),
    *_RDF_OFFERS,
)


class HistoryEndpoint:
    """GET and HEAD of /history and of /diff, POST of /revert."""

    def __init__(
        self, history: History, writing: Writing, purges: Purges, progress: Progress, timeout_s: float
    ) -> None:
        """timeout_s: how long a request waits until the node has reached an index that it names."""
        self._history, self._writing, self._purges = history, writing, purges
        self._progress, self._timeout_s = progress, timeout_s

    async def get(self, request: Request) -> Response:
        """The changes of a resource, of a pattern, of a graph, or all; the newest first."""
        syntax = choose(request.headers.get("accept"), _HISTORY_OFFERS).value
        parameters = Parameters(request.scope["query_string"])
        refuse_as_of(parameters, _NOT_AS_OF)
        cursor = parameters.one("cursor")
        asked = PageRequest(
            _asked(parameters),
            _limit(parameters),
            await self.moment("from", parameters),
            await self.moment("to", parameters),
            None if cursor is None else read_cursor(cursor),
        )
        page = await self._history.page(asked, visibility_of(request.scope))
        headers = {"X-Snapshot-Index": str(page.snapshot_index), "Vary": "Accept"}
        if page.cursor is not None:
            following = request.url.include_query_params(cursor=str(page.cursor))
            headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
        if syntax is None:
            body = await asyncio.to_thread(_page_json, page, self._purged_index)
            return Response(body, headers=headers, media_type=JSON_TYPE)
        body = await asyncio.to_thread(_page_rdf, page, syntax)
        return Response(body, headers=headers | {"Content-Type": syntax.media_type})

    async def diff(self, request: Request) -> Response:
        """The net change from one state to another."""
        written = choose(request.headers.get("accept"), _DIFF_OFFERS).value
        parameters = Parameters(request.scope["query_string"])
        refuse_as_of(parameters, _NOT_AS_OF)
        since, until = await self.moment("from", parameters), await self.moment("to", parameters)
        if since is None:
            raise InvalidParameter("from", "is missing: a log index, a time or a name")
        found = await self._history.difference(_asked(parameters), since, until, visibility_of(request.scope))
        body = await asyncio.to_thread(lambda: b"".join(written[1](found, self._purged_index)))
        headers = {"X-Snapshot-Index": str(found.to_index), "Vary": "Accept", "Content-Type": written[0]}
        return Response(body, headers=headers)

    async def revert(self, request: Request) -> Response:
        """Make what is asked for what it was in an earlier state, by one new entry.

        Raises TransactionConflict if it changes meanwhile.
        """
        parameters = Parameters(request.scope["query_string"])
        request_id = read_request_id(request, ())
        await self.reach_present()  # so that an index that is not there now need not be waited for
        until = await self.moment("to", parameters, wait_s=0)
        if until is None:
            raise InvalidParameter("to", "is missing: a log index, a time or a name")
        asked, visibility = _asked(parameters), visibility_of(request.scope)
        now = Moment("now", self._progress.snapshot_index())
        found = await self._history.difference(asked, now, until, visibility)
        change = found.change
        quads = dict.fromkeys(change.removed, False) | dict.fromkeys(change.added, True)
        graphs: dict[NamedGraph, bool] = {}
        if visibility.is_whole:  # else a graph may have what its writer does not see
            graphs = dict.fromkeys(change.dropped_graphs, False) | dict.fromkeys(change.created_graphs, True)
        commit = TransactionCommit(found.from_index, asked.read_patterns, quads, graphs)
        writes = writes_of(self._writing, request, Interface.REVERT)
        return confirm(await writes.commit(commit, request_id))

    @property
    def _purged_index(self) -> int | None:
        """Of the newest purge."""
        return self._purges.last_index() or None

    async def reach_present(self) -> None:
        """Wait for all that was confirmed before. Raises IndexNotReached, UnavailableError."""
        await self._progress.reach(Consistency.LINEARIZABLE, self._timeout_s)

    async def moment(
        self, name: str, parameters: Parameters, *, wait_s: float | None = None
    ) -> Moment | None:
        """A log index, which is waited for (wait_s: else as long as a request may), a time of RFC 3339, or
        the name of a state.

        Raises InvalidParameter, UnavailableError.
        """
        text = parameters.one(name)
        if text is None:
            return None
        moment = read_moment(text, name)
        wait_s = self._timeout_s if wait_s is None else wait_s
        if moment.log_index is not None:
            try:
                await self._progress.wait_for_index(moment.log_index, wait_s)
            except IndexNotReached as error:
                raise InvalidParameter(name, str(error)) from None
        return moment


def _limit(parameters: Parameters) -> int:
    text = parameters.one("limit")
    if text is None:
        return _LIMIT
    if not (_LIMIT_TEXT.fullmatch(text) and 1 <= int(text) <= _LIMIT_MAX):
        raise InvalidParameter("limit", f"has to be from 1 to {_LIMIT_MAX}")
    return int(text)


def _asked(parameters: Parameters) -> AskedChanges:
    subject, object_ = _term("subject", parameters), _term("object", parameters)
    resource, predicate = _term("resource", parameters), _term("predicate", parameters)
    graph = _term("graph", parameters)
    for name, term in (("subject", subject), ("resource", resource), ("graph", graph)):
        if isinstance(term, Literal | Triple):
            raise InvalidParameter(name, "is an IRI or a blank node")
    if predicate is not None and not isinstance(predicate, NamedNode):
        raise InvalidParameter("predicate", "is an IRI")
    if "default" in parameters:
        if parameters.one("default") or graph is not None:
            raise InvalidParameter("default", "takes no value, and no graph beside it")
        return AskedChanges(resource, subject, predicate, object_, DefaultGraph())
    return AskedChanges(resource, subject, predicate, object_, graph)


def _term(name: str, parameters: Parameters) -> Any:
    """A term as N-Triples writes it, or an IRI without brackets."""
    text = parameters.one(name)
    if text is None:
        return None
    return read_value(name, text) if text.startswith(("<", '"', "_:")) else read_graph_iri(name, text)


def _page_json(page: HistoryPage, purged_index: int | None) -> bytes:
    return orjson.dumps(
        {
            "entries": [_entry(entry) for entry in page.entries],
            "oldest_index": page.oldest_index,
            "purged_index": purged_index,
            "snapshot_index": page.snapshot_index,
            "cursor": None if page.cursor is None else str(page.cursor),
        }
    )


def _entry(entry: Entry) -> dict[str, Any]:
    name, interface = entry.author
    found: dict[str, Any] = {
        "index": entry.log_index,
        "timestamp": iso_timestamp(entry.timestamp_ms),
        "author": name or None,
        "interface": None if interface == UNKNOWN_AUTHOR.interface else interface.word,
        "removed": [],
        "added": [],
        "dropped_graphs": [],
        "created_graphs": [],
    }
    for change in entry.changes:
        for member, texts in change_members(change).items():
            found[member] += texts
    if entry.has_more:
        found["more"] = True
    return found


def _page_rdf(page: HistoryPage, syntax: RdfSyntax) -> bytes:
    return b"".join(write_quads(provenance(page.entries), syntax, prefixes=PREFIXES))


def _diff_json(found: Difference, purged_index: int | None) -> Iterator[bytes]:
    ends = {"from_index": found.from_index, "to_index": found.to_index, "purged_index": purged_index}
    yield orjson.dumps(ends | change_members(found.change))


def _diff_patch(found: Difference, _: int | None) -> Iterator[bytes]:
    ends = {"from": found.from_index, "to": found.to_index}
    rows = (header_row(name, str(Literal(index))) for name, index in ends.items())
    return chain(rows, (b"TX .\n",), patch_rows(found.change), (b"TC .\n",))


def _diff_lines(found: Difference, _: int | None) -> Iterator[bytes]:
    for sign, quads in ((b"-", found.change.removed), (b"+", found.change.added)):
        for quad in quads:
            yield b"%s %s .\n" % (sign, str(quad).encode())


_DIFF_OFFERS: tuple[Offer[tuple[str, Callable[[Difference, int | None], Iterator[bytes]]]], ...] = tuple(
    Offer(parse_media_type(name), (name, write))
    for name, write in ((JSON_TYPE, _diff_json), (PATCH_TYPE, _diff_patch), (DIFF_TYPE, _diff_lines))
)
