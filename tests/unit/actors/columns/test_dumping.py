"""A copy of a store on its way into a view: in files, from a process of its own."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from actors.columns.database import ViewFiles
from actors.columns.dumping import RowFiles, RowOutput
from actors.columns.protocol import ViewSettings
from graphdb.config.service import Columns
from graphdb.errors import UnavailableError
from tests.support.timing import HANG_S

ROOT = Path(__file__).parents[4]


def copy_of_a_store(directory: Path, quads: int = 100) -> Path:
    path = directory / "store"
    store = Store(str(path))
    node, graph = NamedNode("http://example.org/p"), NamedNode("http://example.org/graph")
    # long enough not to stand in the quads themselves
    texts = (Literal(f"a text of {number} that is looked up") for number in range(quads))
    store.bulk_extend(Quad(node, node, text, graph) for text in texts)
    store.flush()
    return path


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_files_hold_whole_rows_whatever_they_come_in(tmp_path: Path, size: int) -> None:
    rows = b"".join(b"row %d\n" % number for number in range(400))
    whole: list[Path] = []
    output = RowOutput(RowFiles(tmp_path, 64, 100, whole.append))
    for start in range(0, len(rows), size):
        assert output.write(rows[start : start + size]) == len(rows[start : start + size])
    output.close()
    output.close()
    found = [path.read_bytes() for path in whole]
    assert b"".join(found) == rows
    assert all(file.endswith(b"\n") for file in found)
    assert len(found) > 20
    for number, file in enumerate(found[:-1]):
        assert abs(len(file) - min(32 + 2 * number, 64)) < size + len(b"row 100\n")


def test_no_more_files_than_there_may_be(tmp_path: Path) -> None:
    whole: list[Path] = []
    files, most = RowFiles(tmp_path, 1, 3, whole.append), 0

    def write() -> None:
        output = RowOutput(files)
        for _ in range(20):
            output.write(b"row\n")
        output.close()

    with ThreadPoolExecutor(2) as threads:
        writing = [threads.submit(write) for _ in range(2)]
        taken = 0
        while taken < 40:
            most = max(most, len(list(tmp_path.iterdir())))
            if whole:
                whole.pop().unlink()
                files.taken()
                taken += 1
        for future in writing:
            future.result()
    files.wait_until_taken()
    assert most <= 3


def test_a_copy_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="could not be read"):
        ViewFiles(tmp_path / "columns", ViewSettings.of(Columns())).load(tmp_path / "store", 1)


def test_a_copy_that_is_damaged_is_unavailable(tmp_path: Path) -> None:
    store = copy_of_a_store(tmp_path, 20_000)
    for path in store.glob("*.sst"):
        content = bytearray(path.read_bytes())
        start = len(content) // 3
        content[start : start + 10_000] = bytes(len(content[start : start + 10_000]))
        path.write_bytes(content)
    with pytest.raises(UnavailableError, match="could not be read"):
        ViewFiles(tmp_path / "columns", ViewSettings.of(Columns())).load(store, 1)


def test_it_ends_with_whoever_takes_its_files(tmp_path: Path) -> None:
    store = copy_of_a_store(tmp_path)
    command = [sys.executable, "-m", "actors.columns.dumping", str(store), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as dumping:
        assert dumping.stdin is not None
        assert dumping.stdout is not None
        said = [dumping.stdout.readline() for _ in range(5)]
        assert said == [
            b"<http://example.org/graph>\n",
            b"\n",
            b"<http://example.org/p>\n",
            b"\n",
            b"rows-0.tsv\n",
        ]
        with pytest.raises(subprocess.TimeoutExpired):
            dumping.wait(0.2)
        dumping.stdin.close()
        try:
            assert dumping.wait(HANG_S) == 1
        finally:
            dumping.kill()
