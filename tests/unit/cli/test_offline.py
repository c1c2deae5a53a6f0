"""Loading, backing up and restoring while the service is stopped; a crash leaves the old state or the new."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyoxigraph import Store

from actors.service_files import ServiceFiles
from actors.shard.incoming import adopt
from serve.cli import offline_load, shares
from tests.unit.cli.conftest import Run


def count(data_dir: Path) -> int:
    return len(Store.read_only(str(data_dir / "store")))


def triples(path: Path, number: int, name: str = "s") -> Path:
    path.write_text("".join(f"<urn:{name}{n}> <urn:p> <urn:o> .\n" for n in range(number)))
    return path


@pytest.fixture
def loaded(graphdb: Run, tmp_path: Path) -> Path:
    """A data directory of two loads, 150 quads."""
    data_dir = tmp_path / "data"
    assert graphdb("load", triples(tmp_path / "a.nt", 100), "--data-dir", data_dir).exit_code == 0
    assert graphdb("load", triples(tmp_path / "b.nt", 50, "t"), "--data-dir", data_dir).exit_code == 0
    return data_dir


def test_loads_add_up(loaded: Path) -> None:
    assert count(loaded) == 150
    assert (loaded / "applied").read_text() == "2\n"
    assert {path.name for path in loaded.iterdir()} == {
        "FORMAT",
        "alerts",
        "applied",
        "log",
        "named-states",
        "namespaces",
        "purges",
        "requests",
        "saved-queries",
        "scratch",
        "service.lock",
        "store",
    }


def test_named_graph(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.ttl"
    path.write_text("<a> <p> _:b , _:b .")
    assert graphdb("load", path, "--data-dir", loaded, "--graph", "http://g.example/").exit_code == 0
    quads = [str(quad) for quad in Store.read_only(str(loaded / "store")) if "g.example" in str(quad)]
    assert len(quads) == 1
    assert quads[0].startswith("<http://g.example/a> <http://g.example/p> _:")
    assert quads[0].endswith(" <http://g.example/>")


def test_malformed_file_changes_nothing(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    good, bad = triples(tmp_path / "c.nt", 10, "u"), tmp_path / "d.nt"
    bad.write_text("<urn:a> <urn:p> .")
    done = graphdb("load", good, bad, "--data-dir", loaded)
    assert done.exit_code == 1
    assert done.err.startswith(f"graphdb: {bad}: malformed RDF at line 1, column ")
    assert (count(loaded), (loaded / "applied").read_text()) == (150, "2\n")
    assert not (loaded / "incoming.draft").exists()


@pytest.mark.parametrize(
    ("last", "exit_code", "quads"),
    [
        ("<urn:a> <urn:p> .\n", 1, 0),
        ("<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:o> )>> .\n", 0, 20_001),
        ("_:a <urn:p> _:a .\n", 0, 20_001),
    ],
    ids=["malformed", "a triple term", "a blank node"],
)
def test_two_loaders_and_an_unusual_line_at_the_end(
    graphdb: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
    exit_code: int,
    quads: int,
) -> None:
    """What the loaders have added by then is gone, and the whole is added or nothing."""
    monkeypatch.setattr(shares, "_FIRST_BYTES", 100_000)
    monkeypatch.setattr(offline_load, "LOADERS", 2)
    document = triples(tmp_path / "a.nt", 20_000)
    with document.open("a") as end:
        end.write(last)
    done = graphdb("load", document, "--data-dir", tmp_path / "data")
    assert done.exit_code == exit_code
    if exit_code:
        assert done.err.startswith(f"graphdb: {document}: malformed RDF at line 20001, column ")
        assert not (tmp_path / "data" / "store").exists()
    else:
        assert done.out.startswith("20,001 quads read from 1 file")
        assert count(tmp_path / "data") == quads


def test_running_service_keeps_us_out(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    files = ServiceFiles(loaded)
    files.acquire()
    try:
        done = graphdb("load", tmp_path / "a.nt", "--data-dir", loaded)
    finally:
        files.release()
    assert done.exit_code == 1
    assert done.err == f"graphdb: another service uses {loaded}\n"


def test_backup_and_restore(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    backup, other = tmp_path / "backup", tmp_path / "other"
    done = graphdb("backup", backup, "--data-dir", loaded)
    assert (done.exit_code, done.out) == (0, f"{backup}: the state at index 2\n")
    assert graphdb("load", triples(tmp_path / "c.nt", 5, "u"), "--data-dir", loaded).exit_code == 0
    assert graphdb("restore", backup, "--data-dir", other).out == f"{other}: the state at index 2\n"
    assert (count(loaded), count(other), count(backup)) == (155, 150, 150)
    # what was restored can be worked on, and the backup stays what it was
    assert graphdb("load", triples(tmp_path / "d.nt", 7, "v"), "--data-dir", other).exit_code == 0
    assert (count(other), count(backup)) == (157, 150)


def test_restore_over_data_needs_force(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert graphdb("backup", backup, "--data-dir", loaded).exit_code == 0
    assert graphdb("load", triples(tmp_path / "c.nt", 5, "u"), "--data-dir", loaded).exit_code == 0
    refused = graphdb("restore", backup, "--data-dir", loaded)
    assert (refused.exit_code, refused.err) == (
        1,
        f"graphdb: {loaded} holds data already; --force replaces it\n",
    )
    assert count(loaded) == 155
    assert graphdb("restore", backup, "--data-dir", loaded, "--force").exit_code == 0
    assert count(loaded) == 150


def test_backup_needs_a_new_directory(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    assert graphdb("backup", tmp_path, "--data-dir", loaded).exit_code == 2


@pytest.mark.parametrize("missing", ["FORMAT", "store", "log", "applied"])
def test_half_a_backup_is_refused(graphdb: Run, loaded: Path, tmp_path: Path, missing: str) -> None:
    backup = tmp_path / "backup"
    assert graphdb("backup", backup, "--data-dir", loaded).exit_code == 0
    (backup / missing).rename(tmp_path / "gone")
    done = graphdb("restore", backup, "--data-dir", tmp_path / "other")
    assert (done.exit_code, done.err) == (1, f"graphdb: {backup} is no backup, or not a whole one\n")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "moved",
    [(), ("store",), ("store", "log"), ("store", "log", "requests"), ("store", "log", "requests", "applied")],
)
def test_adoption_goes_on_where_it_was_cut_short(
    graphdb: Run, loaded: Path, tmp_path: Path, moved: tuple[str, ...]
) -> None:
    """The state after a crash between any two of its steps, the next part of the old state half removed."""
    backup, incoming = tmp_path / "backup", loaded / "incoming"
    assert graphdb("backup", backup, "--data-dir", loaded).exit_code == 0
    assert graphdb("load", triples(tmp_path / "c.nt", 5, "u"), "--data-dir", loaded).exit_code == 0
    shutil.copytree(backup, incoming)
    for part in moved:
        old = loaded / part
        shutil.rmtree(old) if old.is_dir() else old.unlink()
        (incoming / part).rename(old)
    if not moved:
        (loaded / "store" / "CURRENT").unlink()
    adopt(loaded)
    assert not incoming.exists()
    assert (count(loaded), (loaded / "applied").read_text()) == (150, "2\n")
    assert graphdb("load", triples(tmp_path / "d.nt", 3, "v"), "--data-dir", loaded).exit_code == 0
    assert count(loaded) == 153


@pytest.mark.slow
def test_kill_in_the_middle(graphdb: Run, loaded: Path, tmp_path: Path) -> None:
    """kill -9 at many moments of one load: the next command finds the old state or the new one, and works."""
    path = triples(tmp_path / "c.nt", 40_000, "u")
    old, new, outcomes = 150, 40_150, set()
    command = [sys.executable, "-m", "serve.cli", "load", str(path), "--data-dir", str(loaded)]
    for delay_ms in range(600, 1400, 100):
        shutil.rmtree(tmp_path / "trial", ignore_errors=True)
        shutil.copytree(loaded, tmp_path / "trial")
        process = subprocess.Popen([*command[:-1], str(tmp_path / "trial")], stdout=subprocess.DEVNULL)
        time.sleep(delay_ms / 1000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert graphdb("load", tmp_path / "a.nt", "--data-dir", tmp_path / "trial").exit_code == 0
        outcomes.add(count(tmp_path / "trial"))
    assert outcomes <= {old, new}
