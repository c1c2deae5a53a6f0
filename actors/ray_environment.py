"""The environment variables that Ray reads while it is imported; set before `import ray`.

Ray offers no other way to say these things.
"""

import os
from pathlib import Path

__all__ = ["client_environment", "service_environment"]


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
        # workers begin with what Serve's actors import first, while Ray itself is still starting
        "RAY_preload_python_modules": "ray.serve._private.replica",
    }
