"""A search by the shards that processes elsewhere have (`ShardSearch`), and when this node searches itself.

Over shards go searches of one index or several, as they are now or at a point in time. Only this node makes
those of several indexes that are limited to some shards, and of what a principal saw of an index at a point
in time. What a search looks up in documents this node looks up before; what an `_ext` filters and boosts by,
shards ask it for.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from graphdb.errors import GraphDBError, QueryTimeout
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.visible_catalog import VisibleIndex
from graphdb.search.errors import SearchError
from graphdb.search.multi import AllFailed, Failure, Target
from graphdb.search.results import SearchOptions
from graphdb.search.sharded import Advise, Narrowing, NoShard, ShardFailures
from serve.search.backend import HeldIndex, ShardSearch
from serve.search.frame.exchange import TimedOut
from serve.search.searching.search_names import sids_of, task_of, task_of_several

__all__ = ["search_apart"]

logger = logging.getLogger(__name__)
Found: TypeAlias = tuple[Sequence[Failure], dict[str, Any]]
# hits within these pass from shard to shard, and so they are parsed
_EXCHANGING_HITS = ("aggs", "aggregations", "collapse")


def search_apart(
    shards: ShardSearch,
    indexes: Sequence[Index],
    targets: Sequence[Target],
    body: Mapping[str, Any],
    options: SearchOptions,
    partial: bool,
    shared_statistics: bool,
    held: Sequence[HeldIndex],
    narrowing: Narrowing | None = None,
    advise: Advise | None = None,
) -> tuple[Found | None, str]:
    """(failures and answer, ""), or None and why the node is to search itself. On a thread of its own.
    held: the moments of the indexes that are searched, none: now. narrowing: of the candidates, by advise.

    Raises SearchError, AllFailed, and what the time limit of the search raises.
    """
    started = time.perf_counter_ns()
    if any(name in body for name in _EXCHANGING_HITS):
        options = replace(options, raw_source=False)
    sids = sids_of(indexes[0])
    assert all(sids_of(index) == sids for index in indexes), "one principal asks"
    indexes = [index.whole if isinstance(index, VisibleIndex) else index for index in indexes]
    try:
        if len(indexes) == 1:
            task = replace(task_of(indexes[0], targets[0], body, options), narrowing=narrowing, sids=sids)
            answer, missing = shards.search(indexes[0], task, partial, held[0] if held else None, advise)
        else:
            of_all = task_of_several(targets, body, options, shared_statistics)
            if of_all is None:
                return None, "some of the indexes cannot read the request"
            of_all = replace(of_all, narrowing=narrowing, sids=sids)
            answer, missing = shards.search_several(indexes, of_all, partial, held, advise)
    except (SearchError, AllFailed, TimedOut, QueryTimeout):
        raise
    except NoShard as error:
        raise AllFailed(_failures(indexes, error.failures)) from error
    except GraphDBError as error:
        return None, str(error)
    except Exception:
        logger.exception("a search over shards failed, and the node searches itself")
        return None, "the search over its shards failed"
    if body.get("profile"):
        failures = _failures(indexes, missing)
        answer["profile"] = _profile(shards, indexes, targets, failures, time.perf_counter_ns() - started)
    return (_failures(indexes, missing), answer), ""


def _failures(indexes: Sequence[Index], missing: ShardFailures) -> list[Failure]:
    numbers = [(index, number) for index in indexes for number in range(len(index.shards))]
    found = []
    for member, lost in sorted(missing.lost.items()):
        index, number = numbers[member]
        reason = f"[{index.name}][{number}]: {lost.reason}"
        error = SearchError("no_shard_available_action_exception", reason, 503)
        found.append(Failure(index.name, error, (number,), is_elsewhere=True, node=lost.node))
    return found


def _profile(
    shards: ShardSearch,
    indexes: Sequence[Index],
    targets: Sequence[Target],
    failures: Sequence[Failure],
    took_ns: int,
) -> dict[str, Any]:
    """Only the whole is measured. Of copies the first that is there is shown."""
    missing = {(failure.index, failure.shards[0]) for failure in failures}
    searched = {target.name: target.shards for target in targets}
    shown: dict[tuple[str, int], dict[str, Any]] = {}
    for index, copy in ((one, copy) for one in indexes for copy in shards.copies(one)):
        key = index.name, copy.number
        is_searched = copy.number in searched[index.name] and key not in missing
        if copy.node is not None and is_searched and key not in shown:
            shown[key] = {
                "id": f"[{copy.node.id}][{index.name}][{copy.number}]",
                "node_id": copy.node.id,
                "shard_id": copy.number,
                "index": index.name,
                "cluster": "(local)",
                "searches": [],
                "aggregations": [],
            }
    return {"shards": list(shown.values()), "searched_by": {"shards": len(shown), "time_in_nanos": took_ns}}
