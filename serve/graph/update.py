"""`/update`: updates by the SPARQL 1.1 Protocol, section 2.2."""

from itertools import chain
from time import perf_counter

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import GraphDBError, InvalidParameter, UnsupportedMediaType
from graphdb.model import Confirmation
from graphdb.sparql.gate import SHORT_TEXT_CHARACTERS, GateLimits, read_update
from serve.access.audit import note_of
from serve.access.request_scope import visibility_of
from serve.addresses import request_iri
from serve.backend import Writing
from serve.bodies import content_type, read_body, read_text
from serve.graph.idempotency import read_request_id
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.parameters import Parameters, read_dataset

__all__ = ["FORM_TYPE", "UPDATE_TYPE", "UpdateEndpoint", "confirm"]

UPDATE_TYPE = "application/sparql-update"
FORM_TYPE = "application/x-www-form-urlencoded"
_USING, _USING_NAMED = "using-graph-uri", "using-named-graph-uri"


def confirm(confirmation: Confirmation, **beside: str) -> Response:
    """The update confirmation of the interface, with members beside; all writes answer with it."""
    body = {
        "success": True,
        "message": confirmation.message,
        "snapshot_index": confirmation.snapshot_index,
        "affected_triples": confirmation.affected_triples,
        **beside,
    }
    headers = {"X-Snapshot-Index": str(confirmation.snapshot_index)}
    return Response(orjson.dumps(body), headers=headers, media_type="application/json")


class UpdateEndpoint:
    """POST of /update."""

    def __init__(
        self, writing: Writing, accounts: QueryAccounts, body_bytes_max: int, limits: GateLimits
    ) -> None:
        self._writing, self._accounts = writing, accounts
        self._body_bytes_max, self._limits = body_bytes_max, limits

    async def post(self, request: Request) -> Response:
        """The update as the body, or as a field of a form."""
        media_type = content_type(request, (UPDATE_TYPE, FORM_TYPE))
        if media_type.name == UPDATE_TYPE:
            parameters = Parameters(request.scope["query_string"])
            if "update" in parameters:
                raise InvalidParameter("update", "given in the query string, but the body is the update")
            return await self._apply(request, parameters, await read_text(request, self._body_bytes_max))
        if media_type.name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
            # The update itself stands in the form: a link that changes data must not be possible.
            parameters, fields = Parameters(request.scope["query_string"], form), Parameters(form)
            return await self._apply(request, parameters, _required(fields))
        raise UnsupportedMediaType(media_type.name, (UPDATE_TYPE, FORM_TYPE))

    async def _apply(self, request: Request, parameters: Parameters, text: str) -> Response:
        account = Account(text, "UPDATE", perf_counter())
        using = read_dataset(parameters, _USING, _USING_NAMED)
        named = ((name, value) for name in (_USING, _USING_NAMED) for value in parameters.many(name))
        request_id = read_request_id(request, (text, *chain.from_iterable(named)))
        base_iri = request_iri(request)
        if len(text) <= SHORT_TEXT_CHARACTERS:
            update = read_update(text, base_iri, self._limits)
        else:
            update = await run_in_threadpool(read_update, text, base_iri, self._limits)
        note = note_of(request.scope)
        note.syntax = update
        note.add_graphs(graph.value for graph in using.graphs)
        try:
            confirmation = await self._writing.writes(visibility_of(request.scope)).update(
                update, using, request_id
            )
        except GraphDBError as error:
            self._accounts.close_update(account, outcome_of(error))
            raise
        account.snapshot_index = confirmation.snapshot_index
        self._accounts.close_update(account, "ok")
        return confirm(confirmation)


def _required(fields: Parameters) -> str:
    if "query" in fields:
        raise InvalidParameter("query", "this path takes updates; send queries to /sparql")
    text = fields.one("update")
    if text is None:
        raise InvalidParameter("update", "is missing from the form")
    return text
