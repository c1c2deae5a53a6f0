"""What an installation does once, so that no start has to: `python -m serve.deployments.precompile`. With
`--usual`, what most searches need, which takes two thirds of the time.

It imports what the processes of a service import, so that Python keeps the bytecode beside the modules. It
runs Numba's kernels, so that Numba keeps their machine code. The bytecode of all packages would take 100 MB
more.
"""

import sys
from importlib import import_module

from actors.ray_private import WORKER_MODULE
from actors.search.warm_up import warm_up, warm_up_all

__all__ = ["precompile"]

_MODULES = (
    "actors.columns.engine",
    "actors.log.update_log",
    "actors.query_keeper",
    "actors.raft.raft_log",
    "actors.readers.evaluator",
    "serve.cli.auth",
    "serve.cli.backup",
    "serve.cli.cluster",
    "serve.cli.load",
    "serve.cli.offline_load",
    "serve.cli.online_load",
    "serve.cli.query",
    "serve.cli.serve",
    "serve.cli.validate",
    "serve.deployments.hosted_graph",
    "serve.deployments.hosted_search",
    "serve.deployments.search_process",
    "serve.deployments.service",
    WORKER_MODULE,
)


def precompile(*, is_whole: bool = True) -> None:
    """Import all of it, and run all or what most searches need."""
    for module in _MODULES:
        import_module(module)
    if is_whole:
        warm_up_all()
    else:
        warm_up()


if __name__ == "__main__":
    precompile(is_whole="--usual" not in sys.argv[1:])
