"""The environment variables that Ray reads while it is imported; set before `import ray`.

Ray offers no other way to say these things.
"""

import os
from pathlib import Path

__all__ = ["client_environment", "forked_environment", "service_environment"]

_PATIENCE_S = 300  # what Ray's processes have to find each other; Ray's own limits are about 30
_SILENCE_S = 60  # without a word from Ray's node, until its start has failed, or one of several times is up

# Ray looks after many nodes, tasks and objects, and reports to a dashboard. One node that runs a few actors
# for ever, and no task, needs none of it often; Ray's own values take 2 to 3 % of a core at rest.
_REST = {
    "RAY_raylet_report_resources_period_milliseconds": "5000",  # how busy it is; there is nobody to tell
    "RAY_gcs_pull_resource_loads_period_milliseconds": "10000",
    "RAY_report_worker_backlog_interval_ms": "10000",
    # how often is looked, and after what time is given up a call that met an actor's death; 1 s each in Ray
    "RAY_core_worker_internal_heartbeat_ms": "500",
    "RAY_timeout_ms_task_wait_for_death_info": "100",
    "RAY_raylet_check_gc_period_milliseconds": "10000",  # of objects, which only notebooks make
    "RAY_free_objects_period_milliseconds": "5000",
    "RAY_object_manager_timer_freq_ms": "5000",  # objects on their way between nodes
    "RAY_local_fs_monitor_interval_ms": "5000",  # a full disk, which the service looks after itself
    "RAY_kill_idle_workers_interval_ms": "5000",
    "RAY_metrics_report_interval_ms": "600000",  # not 0, with which the raylet gives its agents an option
    "RAY_task_events_report_interval_ms": "60000",
    "RAY_ray_events_report_interval_ms": "60000",
    "RAY_memory_monitor_refresh_ms": "2000",  # of the machine, where it ends workers above 95 %
    "RAY_event_stats": "0",
    "RAY_event_stats_print_interval_ms": "3600000",  # not -1, which some of its processes take for always
    "RAY_debug_dump_period_milliseconds": "600000",
    "RAY_io_context_monitor_probe_interval_ms": "30000",
    "RAY_JEMALLOC_LIB_PATH": "",  # that allocator takes 10 MB more in processes that do little
}


def client_environment(token_file: Path | str) -> dict[str, str]:
    """What both ends of a connection to a service's own runtime need."""
    return {
        # this node is 127.0.0.1, so that Ray listens on the loopback only; the name is Ray's, for where it
        # turned this on first
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # Ray unpickles what reaches its ports: only who can read the token may talk to them
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": os.fspath(token_file),
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def service_environment(token_file: Path) -> dict[str, str]:
    """What a service's own runtime needs."""
    return client_environment(token_file) | {
        # Ray's processes give themselves titles; not at the cost of the environment, which has our marker
        "SPT_NOENV": "1",
        # Ray makes its workers give way to every other process; these are the service itself
        "RAY_worker_niceness": "0",
        **_REST,
        # on a busy machine all takes long; what does not come at all is noticed by `graphdb serve`
        "RAY_gcs_server_port_wait_time_s": str(_PATIENCE_S),
        "RAY_raylet_start_wait_time_s": str(_SILENCE_S),  # not longer: a dead one is waited for too
        "RAY_worker_register_timeout_seconds": str(_PATIENCE_S),
        "RAY_agent_register_timeout_ms": str(_PATIENCE_S * 1000),
        "RAY_health_check_timeout_ms": str(_SILENCE_S * 1000),
    }


def forked_environment() -> dict[str, str]:
    """What a process needs that forks workers: Ray reads it while it is imported, so before a fork.

    Ray's node says it to each of the workers that it starts. Call it in the service's own process.
    """
    return {
        "RAY_JOB_ID": "ffffffff",  # none yet: the worker hears of it with its first task
        # a worker ends when this process is gone, of which it asks now and then. For Ray it is Ray's node's;
        # but that is not there yet, and the service's own process ends the workers where the node has ended
        "RAY_RAYLET_PID": str(os.getpid()),
    }
