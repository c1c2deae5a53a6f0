"""The service as a whole, from its command line to its end."""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.support.service import Service, free_port
from tests.support.timing import HANG_S, quick_enough, wait_until

pytestmark = pytest.mark.ray


def test_ready_within_thirty_seconds(service: Service) -> None:
    for number, took in enumerate(quick_enough(30)):
        if number > 0:
            service.stop()
            service.start()
        took.seconds = service.ready_s
    assert service.health()["role"] == "standalone"


def test_update_then_query_over_http(service: Service) -> None:
    confirmation = service.update("INSERT DATA { <urn:t:a> <urn:t:p> 1, 2 }")
    assert confirmation["success"] is True
    assert confirmation["affected_triples"] == 2
    rows = service.select("SELECT ?o WHERE { <urn:t:a> <urn:t:p> ?o } ORDER BY ?o")
    assert rows == [{"o": "1"}, {"o": "2"}]


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
def test_request_to_upgrade_is_answered_without(service: Service, protocol: str) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": protocol}
    answer = httpx.post(
        f"{service.url}/sparql", data={"query": "ASK {}"}, headers=headers, timeout=10, trust_env=False
    )
    assert (answer.status_code, answer.json()["boolean"]) == (200, True)


def test_data_directory_in_use_is_one_line_and_exit_code_1(service: Service) -> None:
    second = Service(service.data_dir)
    second.start(wait=False)
    assert second.exit_code(timeout_s=HANG_S) == 1
    assert second.output.splitlines() == [
        f"graphdb: another service uses {service.data_dir} (process {service.command_pid}, {service.url})"
    ]


def test_port_in_use_is_one_line_and_exit_code_1(service: Service, tmp_path: Path) -> None:
    second = Service(tmp_path / "data", port=service.port)
    second.start(wait=False)
    assert second.exit_code(timeout_s=HANG_S) == 1
    assert second.output.splitlines() == [
        f"graphdb: cannot listen on 127.0.0.1:{service.port}: Address already in use"
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_second_service_beside_the_first_stops_cleanly_and_alone(
    service: Service, tmp_path: Path, number: signal.Signals
) -> None:
    second = Service(tmp_path / "data", port=free_port())
    try:
        second.start()
        second.update("INSERT DATA { <urn:t:second> <urn:t:p> 1 }")
        assert service.select("SELECT * WHERE { <urn:t:second> ?p ?o }") == []
        assert second.stop(number, timeout_s=HANG_S) == 0
        assert second.pids() == []
        assert not (second.data_dir / "service.json").exists()
        service.update("INSERT DATA { <urn:t:first> <urn:t:p> 1 }")
    finally:
        second.close()


def test_a_stop_that_all_processes_hear_is_in_order_and_soon(tmp_path: Path) -> None:
    """As systemd sends SIGTERM by default; each process that heard it ended, and the rest waited for it."""
    service = Service(tmp_path / "data", search=True)
    try:
        for number, took in enumerate(quick_enough(5)):
            service.start()
            service.update(f"INSERT DATA {{ <urn:t:{number}> <urn:t:p> 1 }}")
            for pid in service.pids():
                os.kill(pid, signal.SIGTERM)
            began = time.monotonic()
            assert service.exit_code(HANG_S) == 0
            took.seconds = time.monotonic() - began
            assert service.pids() == []
            assert service.output.splitlines()[1:] == []
        service.start()
        assert len(service.select("SELECT * { ?s <urn:t:p> ?o }")) == number + 1
    finally:
        service.close()


def test_ctrl_c_at_a_terminal_ends_the_service_in_order(tmp_path: Path) -> None:
    service = Service(tmp_path / "data", search=True)
    try:
        for number in range(2):  # it starts again at once
            terminal = service.start_at_terminal()
            service.update(f"INSERT DATA {{ <urn:t:{number}> <urn:t:p> 1 }}")
            os.write(terminal, b"\x03")
            assert service.exit_code(HANG_S) == 0
            assert service.pids() == []
            assert service.output.splitlines()[1:] in ([], ["^C"])
        service.start()
        assert len(service.select("SELECT * { ?s <urn:t:p> ?o }")) == 2
    finally:
        service.close()


@pytest.mark.parametrize("begun", ["gcs_server", "raylet", "ray::"])
def test_ctrl_c_while_it_starts_ends_it_without_a_word(tmp_path: Path, begun: str) -> None:
    service = Service(tmp_path / "data", search=True)
    try:
        terminal = service.start_at_terminal(wait=False)
        wait_until(lambda: service.pids(begun))
        os.write(terminal, b"\x03")
        assert service.exit_code(HANG_S) == 0
        assert service.pids() == []
        assert service.output.strip() in ("", "^C")
    finally:
        service.close()


def test_listens_on_loopback_only(service: Service) -> None:
    assert service.listening_addresses() == {"127.0.0.1"}


@pytest.mark.slow
def test_a_start_does_not_fail_for_rays_slow_processes(tmp_path: Path) -> None:
    """As on a machine where all cores are busy: Ray's agents need longer than Ray itself would wait."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(
        "import sys, time\n"
        "if any(part.endswith(('dashboard/agent.py', 'agent/main.py')) for part in sys.orig_argv):\n"
        "    time.sleep(45)\n"
    )
    paths = os.pathsep.join(filter(None, [str(slow), os.environ.get("PYTHONPATH")]))
    busy = Service(tmp_path / "data", environment={"PYTHONPATH": paths})
    try:
        busy.start()
        busy.update("INSERT DATA { <urn:t:slow> <urn:t:p> 1 }")
    finally:
        busy.close()
