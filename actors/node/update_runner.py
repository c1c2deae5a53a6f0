"""`UpdateRunner`: the way of SPARQL updates to a node's writer: what they load, and how they are
planned.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyoxigraph import BlankNode

from actors.egress.document_loader import DocumentLoader, load_fetch
from actors.egress.rules import HostRules
from actors.node.visible_writer import VisibleWriter
from actors.readers.client import ReaderClient
from actors.readers.running_queries import RunningQueries
from actors.readers.write_evaluation import UpdateTurn, WhereClauses
from actors.shard.graph_clearing import GraphClearing
from actors.shard.shard_writer import ShardWriter
from actors.shard.write_queue import Plan
from actors.worker_thread import on_thread
from graphdb.config import Settings
from graphdb.geo.function_calls import calls_functions
from graphdb.model import Author, ChangeSet, Confirmation, Outcome
from graphdb.planning import gate
from graphdb.rdf.quad_lines import LineChange
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.plain_data import OneTriple
from graphdb.sparql.syntax import DeleteData, InsertData, Modify, Update
from graphdb.store.overlay import Overlay
from graphdb.updates.planner import UpdateContext, check_calls, plan_update
from graphdb.updates.whole_graphs import emptied_by, empties_graphs

__all__ = ["UpdateRunner", "is_quick"]

_QUICK_UPDATE_CHARACTERS = 4096
_OWN_DATASET = Dataset()
_DATA = (InsertData, DeleteData)


class UpdateRunner:
    """Owned by a node's `StoreWriting`, on its event loop."""

    def __init__(self, settings: Settings, readers: ReaderClient, running: RunningQueries) -> None:
        self._limits = settings.security
        self._running = running
        self._documents = DocumentLoader(load_fetch(settings))
        self._where_clauses = WhereClauses(readers, union_default_graph=settings.server.union_default_graph)
        self._timeout_s = settings.server.query_timeout_seconds
        self._context = UpdateContext(
            fresh_blank_node=lambda: BlankNode(os.urandom(16).hex()),
            load_allowed=self._documents.allows,
            service_allowed=HostRules("SERVICE", settings.security.service_allow).allows,
        )

    async def run(
        self,
        update: Update,
        using: Dataset,
        writer: VisibleWriter,
        scratch: Path,
        clearing: GraphClearing | None = None,
    ) -> Confirmation:
        """See `GraphWrites.update`. scratch is a directory on the store's file system. clearing: for whoever
        sees everything, where nobody looks into changes before they are logged.
        """
        if _calls_geometry(update):  # whose constants are read, which may take a while
            await asyncio.to_thread(gate.check, update, self._limits)
        else:
            gate.check(update, self._limits)
        check_calls(update, self._context)
        if is_quick(update):
            return await writer.write(partial(_plan, update, using, self._context), quick=True)
        return await self._run_listed(update, using, writer, scratch, None if using else clearing)

    def begin(
        self,
        update: Update,
        writer: ShardWriter,
        outcome: Outcome,
        author: Author,
        request_id: bytes | None = None,
        since: int | None = None,
    ) -> bool:
        """See `serve.backend.Writing.begin_update`, and `ShardWriter.write` for since."""
        if isinstance(update, OneTriple):
            plan: Plan | OneTriple = update
        elif is_quick(update):
            plan = partial(_plan, update, _OWN_DATASET, self._context)
        else:
            return False
        writer.begin(
            plan,
            outcome,
            quick=True,
            request_id=request_id,
            since=since,
            author=author,
        )
        return True

    async def planned(self, update: Update, state: Overlay, using: Dataset, scratch: Path) -> ChangeSet:
        """What an update changes in a state that nobody else writes; nothing is written. scratch: see run().

        Raises what `plan_update` raises.
        """
        await asyncio.to_thread(gate.check, update, self._limits)
        with self._running.listed(update.text, "UPDATE") as run:
            run.where = "transaction"

            def plan() -> ChangeSet:
                turn = UpdateTurn(run, self._timeout_s)
                apart = partial(self._where_clauses.solutions, turn, scratch)
                context = replace(self._context, evaluate_apart=apart, check=run.check)
                return plan_update(update, state, using, context)

            return await on_thread(plan)

    async def _run_listed(
        self,
        update: Update,
        using: Dataset,
        writer: VisibleWriter,
        scratch: Path,
        clearing: GraphClearing | None,
    ) -> Confirmation:
        with self._running.listed(update.text, "UPDATE") as run:
            run.where = "writer"
            load = await self._documents.load(update)
            if clearing is not None and empties_graphs(update):
                await clearing.prepared(lambda store: emptied_by(update, store))

            def plan(state: Overlay) -> Iterable[ChangeSet] | LineChange:
                if clearing is not None and (emptied := emptied_by(update, state)) is not None:
                    change = clearing.change(state, emptied)
                    if change is not None:
                        return change
                turn = UpdateTurn(run, self._timeout_s)
                context = replace(
                    self._context,
                    load=load,
                    evaluate_apart=partial(self._where_clauses.solutions, turn, scratch),
                    check=run.check,
                )
                return _plan(update, using, context, state)

            return await writer.write(plan)


def _plan(update: Update, using: Dataset, context: UpdateContext, state: Overlay) -> Iterable[ChangeSet]:
    return (plan_update(update, state, using, context),)


def _calls_geometry(update: Update) -> bool:
    patterns = [each.pattern for each in update.operations if isinstance(each, Modify)]
    return any(map(calls_functions, patterns))


def is_quick(update: Update) -> bool:
    """Whether planning takes no longer than reading the text."""
    if isinstance(update, OneTriple):
        return True
    operations = update.operations
    if len(update.text) > _QUICK_UPDATE_CHARACTERS:
        return False
    if len(operations) == 1:  # without a generator, which would take longer than the rest
        return isinstance(operations[0], _DATA)
    return all(isinstance(operation, _DATA) for operation in operations)
