"""Ray nodes for benchmarks, and the processor time of all that they run."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from statistics import median
from typing import Any, TypeVar

import psutil  # type: ignore[import-untyped]
import ray
from ray.cluster_utils import Cluster

from benchmarks.process_usage import processor_seconds_of, spent

__all__ = ["lacking", "medians", "ray_nodes"]

T = TypeVar("T")


@contextlib.contextmanager
def ray_nodes(count: int, resources: Mapping[str, float] | None = None) -> Iterator[None]:
    """So many Ray nodes on this machine, each with these resources, and this process connected to them."""
    node: dict[str, Any] = {"num_cpus": 2, "resources": dict(resources or {})}
    with contextlib.ExitStack() as cleanup:
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cleanup.callback(cluster.shutdown)
        for _ in range(count - 1):
            cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        cleanup.callback(ray.shutdown)
        yield


def medians(measure: Callable[[], T], rounds: int) -> tuple[float, float, list[T]]:
    """Of so many rounds the median wall seconds and processor seconds, and all answers."""
    each_round = [_taken(measure) for _ in range(rounds + 1)][1:]  # the first starts processes
    return (
        median(wall for wall, *_ in each_round),
        median(took for _, took, _ in each_round),
        [answer for *_, answer in each_round],
    )


def _taken(measure: Callable[[], T]) -> tuple[float, float, T]:
    """Wall seconds, processor seconds of this process and of all that are below it, the answer."""
    before, begun = _processor_seconds(), time.monotonic()
    answer = measure()
    seconds = time.monotonic() - begun
    return seconds, spent(before, _processor_seconds()), answer


def lacking(*packages: str) -> str:
    """What to say where some of these are not installed."""
    missing = [package for package in packages if not find_spec(package)]
    return f"{' and '.join(missing)} is not installed" if missing else ""


def _processor_seconds() -> dict[int, float]:
    own = psutil.Process()
    return processor_seconds_of(process.pid for process in (own, *own.children(recursive=True)))
