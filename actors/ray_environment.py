"""The environment variables that Ray reads while it is imported; set before `import ray`.

Ray offers no other way to say these things.
"""

import os
from pathlib import Path

__all__ = ["client_environment", "forked_environment", "service_environment"]

_PATIENCE_S = 300  # what Ray's processes have to find each other; Ray's own limits are about 30
_SILENCE_S = 60  # without a word from Ray's node, until its start has failed, or one of several times is up


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
        # one node has nobody to tell how busy it is; ten times a second is 0.6 % of a core
        "RAY_raylet_report_resources_period_milliseconds": "2000",
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
