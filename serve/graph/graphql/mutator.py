"""`Mutator`: carries out operations of type mutation: the edits as one write, then what they select."""

import asyncio
import os
from dataclasses import replace
from time import perf_counter

import orjson
from graphql import ExecutionResult
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.visibility import Visibility
from graphdb.config.limits import GateLimits
from graphdb.config.service import GraphQL
from graphdb.errors import (
    EditRefused,
    Forbidden,
    GraphDBError,
    InvalidParameter,
    KeyReused,
    LimitExceeded,
    ShapesViolated,
)
from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure, too_large
from graphdb.graphql.mutations import Mutation, read_mutation
from graphdb.graphql.planning import Operation
from graphdb.model import Confirmation
from graphdb.sparql.gate import check, read_query
from serve.access.request_scope import visibility_of
from serve.backend import Progress, Writing
from serve.graph.graphql.asked_operation import AskedOperation
from serve.graph.graphql.result_answers import ResultMedia, failed, not_shown, not_stored, result
from serve.graph.graphql.rows import RowReader
from serve.graph.idempotency import read_request_id
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.query_parameters import QueryParameters

__all__ = ["Mutator"]


class Mutator:
    """Owned by the application."""

    def __init__(
        self,
        progress: Progress,
        writing: Writing,
        rows: RowReader,
        accounts: QueryAccounts,
        settings: GraphQL,
        limits: GateLimits,
    ) -> None:
        """limits are those of the SPARQL behind what is selected."""
        self._progress, self._writing, self._rows, self._accounts = progress, writing, rows, accounts
        self._base_iri, self._limits = settings.base_iri, limits
        self._by_shapes = settings.schema_source in ("shacl", "combined")

    async def carry_out(
        self,
        request: Request,
        media: ResultMedia,
        bounds: QueryParameters,
        asked: AskedOperation,
        operation: Operation,
    ) -> Response:
        """Store all or nothing, then answer by the state behind it.

        Raises Refused where it is not even tried; InvalidParameter and KeyReused, of an `Idempotency-Key`;
        Forbidden, by what whoever asks may see.
        """
        told_by = (asked.text, orjson.dumps(asked.variables).decode(), asked.operation_name or "")
        request_id = read_request_id(request, told_by)
        mutation = await asyncio.to_thread(self._read, operation, request_id or os.urandom(16))
        try:
            confirmation = await self._store(mutation, asked, request_id, visibility_of(request.scope))
        except EditRefused as error:
            return not_stored(media, mutation.errors(error))
        except ShapesViolated as error:
            return not_stored(media, [failure(VALIDATION_FAILED, str(error))])
        except (InvalidParameter, KeyReused, Forbidden):
            raise
        except GraphDBError as error:
            return failed(media, error)
        return await self._answer(request, media, bounds, mutation, confirmation)

    def _read(self, operation: Operation, seed: bytes) -> Mutation:
        """Raises Refused, also for what could be stored, but not be shown then."""
        mutation = read_mutation(operation, self._base_iri, seed, by_shapes=self._by_shapes)
        try:
            for query in mutation.queries:
                check(read_query(query, None, self._limits), self._limits)
        except LimitExceeded as error:
            raise Refused([too_large(error)]) from None
        return mutation

    async def _store(
        self, mutation: Mutation, asked: AskedOperation, request_id: bytes | None, visibility: Visibility
    ) -> Confirmation:
        if not mutation.edits.edits:
            return Confirmation(self._progress.snapshot_index(), 0)
        account = Account(asked.text, "MUTATION", perf_counter())
        try:
            confirmation = await self._writing.writes(visibility).edit(mutation.edits, request_id)
        except GraphDBError as error:
            self._accounts.close_update(account, outcome_of(error))
            raise
        account.snapshot_index = confirmation.snapshot_index
        self._accounts.close_update(account, "ok")
        return confirmation

    async def _answer(
        self,
        request: Request,
        media: ResultMedia,
        bounds: QueryParameters,
        mutation: Mutation,
        confirmation: Confirmation,
    ) -> Response:
        index = confirmation.snapshot_index
        told = {"snapshot_index": index, "affected_triples": confirmation.affected_triples}
        seen = replace(bounds, min_index=max(bounds.min_index, index))
        answers: list[bytes] = []
        try:
            for query in mutation.queries:
                rows, index = await self._rows.rows(request, seen, query)
                answers.append(rows)
        except GraphDBError as error:
            return not_shown(media, error, ExecutionResult(extensions=told), confirmation.snapshot_index)
        made = await asyncio.to_thread(mutation.answer, answers)
        made.extensions = told
        return result(media, made, index)
