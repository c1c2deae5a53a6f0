"""What the service uses of Ray's inside is where it was; a new Ray that moves it fails here."""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray._private import services, worker
from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._raylet import (  # type: ignore[attr-defined]
    DASHBOARD_AGENT_LISTEN_PORT_NAME,
    persist_port,
)

from actors.ray_private import AGENT_OPTIONS, WORKER_MODULE, WORKER_OPTION, worker_arguments

ROOT = Path(__file__).parents[3]
NODE_ARGUMENTS = ["ray_params", "head", "shutdown_at_exit", "spawn_reaper"]
PARAMETERS = {
    "dashboard_agent_listen_port",
    "include_dashboard",
    "include_log_monitor",
    "metrics_agent_port",
    "metrics_export_port",
    "no_monitor",
    "node_ip_address",
    "num_cpus",
    "num_gpus",
    "object_store_memory",
    "runtime_env_agent_port",
    "temp_dir",
}


def arguments(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_a_node_is_made_and_ended_as_before() -> None:
    assert arguments(Node)[:4] == NODE_ARGUMENTS
    assert set(arguments(RayParams)) >= PARAMETERS
    assert arguments(Node.kill_all_processes)[:2] == ["check_alive", "allow_graceful"]
    assert arguments(Node.dead_processes) == []
    assert isinstance(Node.gcs_address, property)


def test_the_raylet_is_told_of_its_agents_as_before() -> None:
    source = inspect.getsource(services.start_raylet)
    assert "start_ray_process(\n        command," in source
    for option in AGENT_OPTIONS:
        assert f'"{option}{{}}".format(' in source


def test_the_raylet_is_told_how_to_start_a_worker_as_before() -> None:
    source = inspect.getsource(services.start_raylet)
    assert f'"{WORKER_OPTION}{{subprocess.list2cmdline(start_worker_command)}}"' in source
    words = re.search(r"start_worker_command = \((.*?)--node-ip", source, re.DOTALL)
    assert words is not None
    assert re.findall(r"sys\.executable|\w+_path", words[1]) == [
        "sys.executable",
        "setup_worker_path",
        "worker_path",
    ]
    command = ["python", "setup_worker.py", "default_worker.py", "--node-id=1", "--language=PYTHON"]
    assert worker_arguments(command) == ["default_worker.py", "--node-id=1"]


def test_a_node_calls_what_is_overridden() -> None:
    source = inspect.getsource(Node)
    for name in ("self.start_api_server(", "self.start_raylet(", "self._session_dir =", "self._node_id ="):
        assert name in source
    assert "self._ray_params = ray_params" in source
    assert arguments(persist_port) == ["dir", "node_id", "port_name", "port"]
    assert isinstance(DASHBOARD_AGENT_LISTEN_PORT_NAME, str)


def test_deaths_are_printed_by_the_function_that_is_replaced() -> None:
    assert arguments(worker.print_to_stdstream) == ["data", "ignore_prefix"]


def test_the_environment_is_made_before_ray_is_imported() -> None:
    code = "import sys, actors.ray_environment; assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("floor", ["actors", "graphdb", "serve"])
def test_the_names_are_in_one_file(floor: str) -> None:
    private = re.compile(r"\bray\.(\w+\.)?_")
    users = {path.name for path in (ROOT / floor).rglob("*.py") if private.search(path.read_text())}
    assert users == ({"ray_private.py"} if floor == "actors" else set())


def test_the_module_that_its_processes_begin_with_is_there() -> None:
    subprocess.run([sys.executable, "-c", f"import {WORKER_MODULE}"], check=True, capture_output=True)


def test_processes_connect_by_the_function_that_is_replaced() -> None:
    forked = importlib.util.find_spec(WORKER_MODULE)
    assert forked is not None
    assert forked.origin is not None
    assert "\n    ray._private.worker.connect(" in Path(forked.origin).read_text()
    assert "\n    connect(" in inspect.getsource(worker.init)
