"""Scrolls and points in time that this node does not have: another one has them, or nobody any more."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphdb.access.principal import Principal
from graphdb.errors import UnavailableError
from graphdb.public_text import public_text
from graphdb.search.contexts import node_of_context
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.errors import error_json
from serve.search.frame.identity import NodeName
from serve.search.frame.peer_requests import ask_peer
from serve.search.searching.search_runner import SearchRunner

__all__ = ["ask_owner", "checked_id", "close_contexts", "missing_context", "owner_of"]

_ID = re.compile(r"[A-Za-z0-9_=-]{8,4096}")


def checked_id(context_id: str) -> str:
    """An id as this service makes them. Errors: illegal_argument_exception."""
    if not _ID.fullmatch(context_id):
        raise illegal_argument(f"Cannot parse scroll id [{context_id[:100]}]")
    return context_id


def owner_of(runner: SearchRunner, context_id: str) -> NodeName | None:
    """The other node of the cluster that has it, by its id; None where that is this one, or none at all."""
    number = node_of_context(context_id)
    if number is None or number == runner.identity.number:
        return None
    members = runner.identity.members(runner.node.status())
    return next((node for node in members if node.number == number), None)


async def ask_owner(
    runner: SearchRunner,
    owner: NodeName,
    context_id: str,
    path: str,
    query: Mapping[str, str],
    body: Mapping[str, Any],
    principal: Principal,
) -> dict[str, Any]:
    """What the other node answers. Raises SearchError."""
    try:
        limit_s = runner.peer_limit_s
        _, answer = await ask_peer(runner.node, owner.number, "POST", path, query, body, limit_s, principal)
    except UnavailableError as error:
        where = "" if owner.http_address is None else f" at [{owner.http_address}]"
        reason = f"No search context found for id [{context_id[:100]}]: it is of node [{owner.name}]{where}, "
        missing = SearchError(
            "search_context_missing_exception", f"{reason}which does not answer: {public_text(error)}", 404
        )
        raise missing_context(missing) from error
    return answer


async def close_contexts(
    runner: SearchRunner, ids: Iterable[str], path: str, member: str, principal: Principal
) -> int:
    """Of this node and of others; how many were open. member: how a request to `path` names them."""
    freed, here = 0, []
    for context_id in set(ids):
        owner = owner_of(runner, context_id)
        if owner is None:
            here.append(context_id)
            continue
        with contextlib.suppress(UnavailableError):  # then they end with that node, or with their time
            limit_s, body = runner.peer_limit_s, {member: context_id}
            _, answer = await ask_peer(
                runner.node, owner.number, "DELETE", path, {}, body, limit_s, principal
            )
            freed += int(answer["num_freed"])
    return freed + runner.node.contexts.close(here)


def missing_context(error: SearchError) -> SearchError:
    """As a search says it whose shards have all lost their contexts."""
    if error.kind != "search_context_missing_exception":
        return error
    shards = [{"shard": -1, "index": None, "reason": error_json(error)}]
    metadata = {"phase": "query", "grouped": True, "failed_shards": shards}
    cause = SearchError(error.kind, error.reason, error.status)
    return SearchError("search_phase_execution_exception", "all shards failed", 404, metadata, cause)
