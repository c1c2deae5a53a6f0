"""A search by the shards that processes elsewhere have (`ShardSearch`), and when this node searches itself.

Over shards go searches of one index, as it is now, with all its shards. What only this node can do: scrolls
and points in time, whose moment must stay; several indexes; `_ext`; searches that look up documents of other
indexes; and those that `routing` or `preference` limits.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from graphdb.errors import GraphDBError, QueryTimeout
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from graphdb.search.multi import AllFailed, Failure, Target
from graphdb.search.results import SearchOptions
from graphdb.search.sharded import NoShard, SearchTask, ShardFailures
from serve.search.backend import ShardSearch
from serve.search.frame.exchange import TimedOut

__all__ = ["search_apart"]

logger = logging.getLogger(__name__)
Found: TypeAlias = tuple[Sequence[Failure], dict[str, Any]]
# hits within these pass from shard to shard, and so they are parsed
_EXCHANGING_HITS = ("aggs", "aggregations", "collapse")


def search_apart(
    shards: ShardSearch,
    index: Index,
    target: Target,
    body: Mapping[str, Any],
    options: SearchOptions,
    partial: bool,
) -> tuple[Found | None, str]:
    """(failures and answer, ""), or None and why the node is to search itself. On a thread of its own.

    Raises SearchError, AllFailed, and what the time limit of the search raises.
    """
    started = time.perf_counter_ns()
    if any(name in body for name in _EXCHANGING_HITS):
        options = replace(options, raw_source=False)
    task = SearchTask(body, target.context.now_ms, options, target.filter, target.boost, target.window)
    try:
        answer, missing = shards.search(index, task, partial)
    except (SearchError, TimedOut, QueryTimeout):
        raise
    except NoShard as error:
        raise AllFailed(_failures(index, error.failures)) from error
    except GraphDBError as error:
        return None, str(error)
    except Exception:
        logger.exception("a search over shards failed, and the node searches itself")
        return None, "the search over its shards failed"
    if body.get("profile"):
        answer["profile"] = _profile(shards, index, missing, time.perf_counter_ns() - started)
    return (_failures(index, missing), answer), ""


def _failures(index: Index, missing: ShardFailures) -> list[Failure]:
    return [
        Failure(
            index.name,
            SearchError("no_shard_available_action_exception", f"[{index.name}][{number}]: {reason}", 503),
            (number,),
        )
        for number, reason in sorted(missing.reasons.items())
    ]


def _profile(shards: ShardSearch, index: Index, missing: ShardFailures, took_ns: int) -> dict[str, Any]:
    """Only the whole is measured. Of copies the first that is there is shown."""
    shown: dict[int, dict[str, Any]] = {}
    for copy in shards.copies(index):
        if copy.node is not None and copy.number not in missing.reasons and copy.number not in shown:
            shown[copy.number] = {
                "id": f"[{copy.node.id}][{index.name}][{copy.number}]",
                "node_id": copy.node.id,
                "shard_id": copy.number,
                "index": index.name,
                "cluster": "(local)",
                "searches": [],
                "aggregations": [],
            }
    return {"shards": list(shown.values()), "searched_by": {"shards": len(shown), "time_in_nanos": took_ns}}
