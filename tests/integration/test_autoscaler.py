"""The machines of `cluster.yaml`, as Ray's autoscaler adds them: by its fake provider, nodes on this one."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.cluster_description import described_cluster, filled_by_ray
from tests.support.service import free_port
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback is this machine's address
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_FAKE_CLUSTER": "1",
    "RAY_AUTH_MODE": "disabled",  # else Ray takes the token of its user, if there is one
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
}
HEAD = "ray.head.default"  # as the fake provider calls the type

# Asks for a shard where there is no machine for one, and says how many there are, before and after.
SCRIPT = """
import json, sys
import ray

ray.init(sys.argv[1], log_to_driver=False)

def machines():
    return [node["NodeID"] for node in ray.nodes() if node["Alive"] and "column_shards" in node["Resources"]]

@ray.remote(num_cpus=0, resources={"column_shards": 1})
class Shard:
    def node(self):
        return ray.get_runtime_context().get_node_id()

before = machines()
place = ray.get(Shard.remote().node.remote(), timeout=float(sys.argv[2]))
print(json.dumps([len(before), machines() == [place]]))
"""


def machines(address: str) -> dict[str, Any]:
    """What Ray's autoscaler is told: cluster.yaml with machines that only pretend to be, of few cores, and no
    more of them than somebody asks for.
    """
    config = described_cluster()
    described = config["available_node_types"].items()
    types = {name: {**one, "node_config": {}, "min_workers": 0} for name, one in described}
    types[HEAD] = {**types.pop(config["head_node_type"]), "max_workers": 0}
    types["shards"]["resources"] = types["shards"]["resources"] | {"CPU": 1}
    pretended = {
        "head_node_type": HEAD,
        "available_node_types": types,
        "file_mounts": {},
    }
    # The launcher knows no defaults of this provider. Its machines have no shell and tell no address of their
    # own. Ray would take them for failed, and end each after half a minute: too soon on a busy machine.
    heedless = {"disable_node_updaters": True, "worker_liveness_check": False}
    provider = {"type": "fake_multinode", "gcs_address": address} | heedless
    no_key = {"auth": {"ssh_user": config["auth"]["ssh_user"]}}
    return filled_by_ray(config | pretended) | {"provider": provider} | no_key


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A head with an autoscaler."""
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "config.json").write_text(json.dumps(machines(address)))
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as directory:  # a short path
        head = subprocess.Popen(
            [
                *(Path(sys.executable).parent / "ray", "start", "--head", "--block", "--num-cpus=0"),
                *("--node-ip-address=127.0.0.1", f"--port={address.rpartition(':')[2]}"),
                *("--include-dashboard=false", f"--temp-dir={directory}", "--object-store-memory=80000000"),
                f"--autoscaling-config={tmp_path / 'config.json'}",
            ],
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await_listener(address, head)
            yield address
        finally:
            end(head)


def await_listener(address: str, head: "subprocess.Popen[bytes]") -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline and head.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
            return
        time.sleep(0.1)
    raise AssertionError("Ray's head does not start")


def end(head: "subprocess.Popen[bytes]") -> None:
    """Kill the head and all that it and its autoscaler have started."""
    everything = psutil.Process(head.pid).children(recursive=True)
    head.send_signal(signal.SIGKILL)
    for process in everything:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    head.wait(HANG_S)
    psutil.wait_procs(everything, HANG_S)


def test_a_machine_is_added_when_a_shard_needs_one(address: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, address, str(3 * HANG_S)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, True]
