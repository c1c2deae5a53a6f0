"""A file of lines that several processes write at once, that grows, and whose disk may be full."""

import json
import logging
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from actors.access import audit_file
from actors.access.audit_file import AuditFile
from graphdb.config.audit import Audit
from tests.support.timing import HANG_S

ROOT = Path(__file__).parents[4]


def lines(*paths: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1]]


def all_of(path: Path) -> list[Path]:
    return sorted(one for one in path.parent.glob(path.name + "*") if one.suffix != ".lock")


def test_lines_in_order_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "audit.log"
    file = AuditFile(path, Audit())
    for number in range(2_000):
        file.note({"number": number})
    file.close()
    assert [line["number"] for line in lines(path)] == list(range(2_000))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("")
    path.chmod(0o644)
    file = AuditFile(path, Audit())
    file.note({})
    file.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nobody_writes_lines_of_his_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    told = 'x\n{"event":"forged"}\r\u0085\u2028\u2029\x0b\x0c\x1b[2J\x9b\0\udc80"'
    file = AuditFile(path, Audit())
    file.note({"principal": told})
    file.close()
    text = path.read_bytes()
    assert text.endswith(b"\n")
    assert all(0x20 <= octet < 0x7F for octet in text[:-1])
    assert lines(path) == [{"principal": told}]


def test_it_is_put_aside_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(path, Audit(max_file_bytes=10_000, files=3))
    for number in range(100):
        file.note({"number": number, "text": "x" * 1_000})
        if number % 5 == 4:  # a few at a time, as they come
            file.close()
    file.close()
    found = all_of(path)
    assert [one.name for one in found] == ["audit.log", "audit.log.1", "audit.log.2", "audit.log.3"]
    assert all(one.stat().st_size <= 10_000 for one in found)
    numbers = [line["number"] for line in lines(*reversed(found))]
    assert numbers == list(range(numbers[0], 100))


def test_processes_do_not_get_into_each_other_s_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    text = """
import sys
from pathlib import Path
from actors.access.audit_file import AuditFile
from graphdb.config.audit import Audit
file = AuditFile(Path(sys.argv[1]), Audit(max_file_bytes=50_000, files=500))
for number in range(3_000):
    file.note({"writer": sys.argv[2], "number": number, "text": "x" * (number % 300)})
    if number % 100 == 0:
        file.close()
file.close()
"""
    running = [
        subprocess.Popen([sys.executable, "-c", text, str(path), str(one)], cwd=ROOT, start_new_session=True)
        for one in range(3)
    ]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    files = sorted(all_of(path), key=lambda one: -int(one.suffix[1:]) if one.suffix != ".log" else 0)
    found = lines(*files)
    assert len(files) > 10
    for writer in range(3):
        assert [line["number"] for line in found if line["writer"] == str(writer)] == list(range(3_000))


def test_while_the_disk_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits; what there is no room for is missing, and the file says so where it is missing."""
    monkeypatch.setattr(audit_file, "_WAITING_MAX", 50)
    monkeypatch.setattr(audit_file, "_AGAIN_S", 0.05)
    in_the_way = tmp_path / "audit"
    in_the_way.write_text("no directory")
    path = in_the_way / "audit.log"
    file = AuditFile(path, Audit())
    file.note({"number": 0})
    deadline = time.monotonic() + HANG_S
    while not caplog.records:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    began = time.monotonic()
    for number in range(1, 1_000):
        file.note({"number": number})
    assert time.monotonic() - began < 20, "it waited"
    assert file.dropped == 949
    in_the_way.unlink()
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    file.close()
    found = lines(path)
    assert [line["number"] for line in found if "number" in line] == list(range(51))
    assert [line["lines"] for line in found if line.get("event") == "dropped"] == [949]
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]


def test_a_line_that_was_written_in_half_is_taken_back(tmp_path: Path) -> None:
    """By a real limit of the size of files, in a process of its own."""
    path = tmp_path / "audit.log"
    text = """
import resource, signal, sys
from pathlib import Path
from actors.access.audit_file import AuditFile
from graphdb.config.audit import Audit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = AuditFile(Path(sys.argv[1]), Audit())
file.note({"text": "first"})
file.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file.note({"text": "x" * 300})
file.close()
"""
    subprocess.run([sys.executable, "-c", text, str(path)], check=True, cwd=ROOT, timeout=HANG_S)
    assert lines(path) == [{"text": "first"}]
    assert path.read_bytes().endswith(b"\n")
