"""What Elasticsearch counts and this service does not: zeros, as its Java client wants."""

from collections.abc import Mapping
from typing import Any

__all__ = ["OF_A_CLUSTER", "with_not_counted"]


def with_not_counted(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Sections of `_stats` by name, with all members that Elasticsearch 8 always shows."""
    return {name: {**_OF_SECTIONS.get(name, {}), **section} for name, section in sections.items()}


def _zeros(names: str, **others: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), 0) | others


_OF_SECTIONS = {
    "completion": _zeros("size_in_bytes"),
    "fielddata": _zeros("memory_size_in_bytes evictions", global_ordinals={"build_time_in_millis": 0}),
    "flush": _zeros("total periodic total_time_in_millis"),
    "get": _zeros(
        "total time_in_millis exists_total exists_time_in_millis missing_total missing_time_in_millis current"
    ),
    "indexing": _zeros(
        "index_total index_time_in_millis index_current index_failed delete_total delete_time_in_millis "
        "delete_current noop_update_total throttle_time_in_millis",
        is_throttled=False,
    ),
    "merges": _zeros(
        "current current_docs current_size_in_bytes total total_time_in_millis total_docs "
        "total_size_in_bytes total_stopped_time_in_millis total_throttled_time_in_millis "
        "total_auto_throttle_in_bytes"
    ),
    "query_cache": _zeros(
        "memory_size_in_bytes total_count hit_count miss_count cache_size cache_count evictions"
    ),
    "recovery": _zeros("current_as_source current_as_target throttle_time_in_millis"),
    "refresh": _zeros("total total_time_in_millis external_total external_total_time_in_millis listeners"),
    "request_cache": _zeros("memory_size_in_bytes evictions hit_count miss_count"),
    "search": _zeros(
        "query_total query_time_in_millis query_current fetch_total fetch_time_in_millis "
        "fetch_current scroll_total scroll_time_in_millis scroll_current suggest_total "
        "suggest_time_in_millis suggest_current"
    ),
    # Of Lucene's segments Elasticsearch itself no longer measures these.
    "segments": _zeros(
        "count memory_in_bytes terms_memory_in_bytes stored_fields_memory_in_bytes "
        "term_vectors_memory_in_bytes norms_memory_in_bytes points_memory_in_bytes "
        "doc_values_memory_in_bytes index_writer_memory_in_bytes version_map_memory_in_bytes "
        "fixed_bit_set_memory_in_bytes",
        max_unsafe_auto_id_timestamp=-1,
        file_sizes={},
    ),
    "translog": _zeros(
        "operations size_in_bytes uncommitted_operations uncommitted_size_in_bytes earliest_last_modified_age"
    ),
    "warmer": _zeros("current total total_time_in_millis"),
}

_NO_TIME = _zeros("max avg p90")
OF_A_CLUSTER = {
    "repositories": {},
    "snapshots": {
        "current_counts": _zeros(
            "snapshots shard_snapshots snapshot_deletions concurrent_operations cleanups"
        ),
        "repositories": {},
    },
    "ccs": {
        "_search": _zeros(
            "total success skipped remotes_per_search_max remotes_per_search_avg",
            took=_NO_TIME,
            took_mrt_true=_NO_TIME,
            took_mrt_false=_NO_TIME,
            failure_reasons={},
            features={},
            clients={},
            clusters={},
        )
    },
}
"""What `_cluster/stats` says of repositories, snapshots and searches across clusters."""
