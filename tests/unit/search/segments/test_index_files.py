"""An index on disk: opened again, damaged, and left half written by crashes."""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from graphdb.errors import CorruptionError, StorageFull, UnavailableError
from graphdb.log.file_system import FileSystem, RealFileSystem
from graphdb.search.segments.index_files import IndexFiles, SavePlan
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.merge_policy import TieredMergePolicy
from graphdb.search.segments.operations import Action, Operation
from tests.simulation.lossy_file_system import Crash, LossyFileSystem, random_faults
from tests.unit.search.segments.words_mapping import WordsMapping

DIRECTORY = "index"
EAGER = TieredMergePolicy(segments_per_tier=2, segments_per_merge=3, floor_bytes=1)
Shard = IndexShard[WordsMapping]


def mapping_of(mapping: Mapping[str, Any], settings: Mapping[str, Any]) -> WordsMapping:
    return WordsMapping(frozenset(mapping["fields"]))


def opened(files: IndexFiles) -> Shard:
    shard = IndexShard.open("i", files, mapping_of, EAGER)
    assert shard is not None
    return shard


def index(doc_id: str, body: bytes = b'{"t":"some words","n":1}') -> Operation:
    return Operation(Action.INDEX, doc_id, body)


def delete(doc_id: str) -> Operation:
    return Operation(Action.DELETE, doc_id)


def searchable(shard: Shard) -> dict[str, tuple[bytes, int, int]]:
    found = {}
    for leaf in shard.leaves():
        segment = leaf.segment
        for doc in np.flatnonzero(leaf.roots).tolist():
            assert segment.doc_id(doc) not in found, "twice"
            found[segment.doc_id(doc)] = (
                segment.source(doc),
                int(segment.versions[doc]),
                int(segment.seq_nos[doc]),
            )
    return found


def real(path: Path) -> IndexFiles:
    return IndexFiles(RealFileSystem(), str(path / DIRECTORY))


def filled(files: IndexFiles) -> Shard:
    shard: Shard = IndexShard("i", WordsMapping(), {"index": {"x": 1}}, EAGER)
    shard.apply([index("a"), index("b", b'{"o":{"x":1}}'), index("c")])
    shard.flush(files, 3)
    shard.apply([delete("a"), index("d")])
    shard.flush(files, 5)
    return shard


def test_a_directory_without_a_commit_is_no_index(tmp_path: Path) -> None:
    assert IndexShard.open("i", real(tmp_path), mapping_of) is None


def test_an_index_is_opened_as_it_was_flushed(tmp_path: Path) -> None:
    before = filled(real(tmp_path))
    before.apply([index("later")])
    shard = opened(real(tmp_path))
    assert searchable(shard) == {
        "b": (b'{"o":{"x":1}}', 1, 1),
        "c": (b'{"t":"some words","n":1}', 1, 2),
        "d": (b'{"t":"some words","n":1}', 1, 4),
    }
    assert shard.log_index == 5
    assert shard.settings == {"index": {"x": 1}}
    assert shard.mapping.fields == {"t", "n", "o"}
    result = shard.apply([index("a")])[0]
    assert (result.version, result.seq_no) == (3, 5)  # the tombstone was kept


def test_what_was_left_of_protected_documents_stays_hidden(tmp_path: Path) -> None:
    before = filled(real(tmp_path))
    before.apply([index("p", b'{"_allow_sids":["S"]}'), delete("p"), index("q"), delete("q")])
    before.flush(real(tmp_path), 6)
    shard = opened(real(tmp_path))
    others = [delete(doc_id)._replace(sids=frozenset({"S"})) for doc_id in ("p", "q")]
    assert [result.version for result in shard.apply(others)] == [1, 3]
    assert [result.version for result in shard.apply([delete("p"), delete("q")])] == [3, 4]


def test_names_are_not_given_again_after_a_restart(tmp_path: Path) -> None:
    first = filled(real(tmp_path))
    names = {leaf.segment.name for leaf in first.leaves()}
    first.apply([index("x")])
    first.refresh()
    names |= {leaf.segment.name for leaf in first.leaves()}
    second = opened(real(tmp_path))
    second.apply([index("x")])
    second.refresh()
    assert second.leaves()[-1].segment.name not in names


def test_only_what_is_committed_stays_in_the_directory(tmp_path: Path) -> None:
    shard = filled(real(tmp_path))
    directory = tmp_path / DIRECTORY
    (directory / "_9_9-9.segment").write_bytes(b"?")
    (directory / "_9_9-9.live").write_bytes(b"?")
    (directory / "commit-9.tmp").write_bytes(b"?")
    (directory / "vectors").mkdir()
    opened(real(tmp_path))
    kept = {path.name for path in directory.iterdir()}
    assert kept == {"commit-3", "vectors", "_1_1-1.segment", "_1_1-2.live", "_1_2-2.segment"}
    assert len(searchable(shard)) == 3


def test_leaves_outlive_their_files(tmp_path: Path) -> None:
    shard = filled(real(tmp_path))
    for name in "efghijkl":
        shard.apply([index(name, name.encode().join([b'{"t":"', b'"}']))])
        shard.flush(real(tmp_path), 6)
    held, wanted = shard.leaves(), searchable(shard)
    while shard.maybe_merge():
        pass
    shard.flush(real(tmp_path), 6)
    kept = {path for path in os.listdir(tmp_path / DIRECTORY) if path.endswith(".segment")}
    assert len(kept) == len(shard.leaves()) < len(held)
    assert searchable(shard) == wanted
    assert [leaf.segment.source(0)[6:7] for leaf in held[-3:]] == [b"j", b"k", b"l"]


@pytest.mark.parametrize("damage", ["magic", "table", "cut", "gone", "live", "commit"])
def test_damage_is_found_on_opening(tmp_path: Path, damage: str) -> None:
    filled(real(tmp_path))
    directory = tmp_path / DIRECTORY
    segment = directory / "_1_1-1.segment"
    if damage == "gone":
        segment.unlink()
    elif damage == "cut":
        segment.write_bytes(segment.read_bytes()[:-1])
    else:
        path, place = {
            "magic": (segment, 0),
            "table": (segment, 40),
            "live": (directory / "_1_1-2.live", -1),
            "commit": (directory / "commit-2", 60),
        }[damage]
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(data)
    with pytest.raises(CorruptionError):
        opened(real(tmp_path))


def test_damage_inside_is_found_on_demand(tmp_path: Path) -> None:
    filled(real(tmp_path))
    files = real(tmp_path)
    files.verify("_1_1-1.segment")
    path = tmp_path / DIRECTORY / "_1_1-1.segment"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match="checksum of section"):
        files.verify("_1_1-1.segment")


def test_a_full_disk_refuses_a_flush_and_leaves_the_commit(tmp_path: Path) -> None:
    lossy = LossyFileSystem(Random(1))
    files = IndexFiles(lossy, DIRECTORY)
    shard = filled(files)

    def full(operation: str) -> None:
        if operation == "write":
            raise OSError(errno.ENOSPC, "no room")

    shard.apply([index("e")])
    lossy.fault = full
    with pytest.raises(StorageFull):
        shard.flush(files, 6)
    lossy.fault = lambda operation: None
    assert opened(files).log_index == 5
    shard.flush(files, 6)
    assert opened(files).log_index == 6


class Twin:
    """A shard as a dictionary: what was written last, and what was there when each entry had been applied."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[bytes, int, int]] = {}
        self.versions: dict[str, int] = {}
        self.seq_no = 0
        self.history = [self.documents]

    def apply(self, operation: Operation) -> None:
        doc_id = operation.doc_id
        self.versions[doc_id] = self.versions.get(doc_id, 0) + 1
        self.documents = dict(self.documents)
        self.documents.pop(doc_id, None)
        if operation.action is Action.INDEX:
            self.documents[doc_id] = (operation.body, self.versions[doc_id], self.seq_no)
        self.seq_no += 1
        self.history.append(self.documents)


def random_operation(random: Random) -> Operation:
    doc_id = f"doc{random.randrange(12)}"
    if random.random() < 0.3:
        return delete(doc_id)
    body = random.choice(['{"t":"w%d x"}', '{"n":%d}', '{"o":{"n":%d},"t":"y"}']) % random.randrange(50)
    return index(doc_id, body.encode())


Documents = dict[str, tuple[bytes, int, int]]


class Visible:
    """What a search sees, and what it is to see, one after the other, as it is built."""

    def __init__(self, documents: Documents) -> None:
        self.now = documents
        self._sealed: list[Documents] = []

    def seal(self, documents: Documents) -> None:
        if documents is not (self._sealed or [self.now])[-1]:
            self._sealed.append(documents)

    def adopt(self, last: Documents | None = None) -> None:
        """As far as these documents, where they are still to come; else all."""
        if last is None or any(last is one for one in self._sealed):
            while self._sealed:
                self.now = self._sealed.pop(0)
                if self.now is last:
                    return


class Life:
    """One life of a process: it follows the log and writes more, until it crashes. durable: the greatest log
    index that a commit is known to have.
    """

    def __init__(self, files: IndexFiles, log: list[Operation], durable: list[int], failing: bool) -> None:
        self.files, self.log, self.durable, self.failing = files, log, durable, failing
        opened = IndexShard.open("i", files, mapping_of, EAGER)
        self.shard = opened or IndexShard("i", WordsMapping(), {}, EAGER)
        assert self.shard.log_index >= durable[0], "a confirmed flush is lost"
        self.twin = Twin()
        for operation in log:
            self.twin.apply(operation)
        self.visible = Visible(self.twin.history[self.shard.log_index])
        assert searchable(self.shard) == self.visible.now
        self.shard.apply(log[self.shard.log_index :])
        self.planned: tuple[SavePlan, Documents] | None = None

    def write(self, operations: list[Operation]) -> None:
        self.shard.apply(operations)
        self.log += operations
        for operation in operations:
            self.twin.apply(operation)

    def refresh(self) -> None:
        self.visible.seal(self.twin.documents)
        self.visible.adopt()
        self.shard.refresh()

    def seal(self) -> None:
        self.visible.seal(self.twin.documents)
        self.shard.seal()

    def build(self) -> None:
        self.visible.adopt()
        self.shard.build_sealed()
        self.shard.adopt_built()

    def flush(self) -> None:
        if self.planned is None:
            self.visible.seal(self.twin.documents)
            self.visible.adopt()
            with self.maybe_failing():
                self.shard.flush(self.files, len(self.log))
                self.durable[0] = len(self.log)

    def begin_commit(self) -> None:
        if self.planned is None:
            self.visible.seal(self.twin.documents)
            self.planned = self.shard.plan_save(len(self.log)), self.twin.documents

    def end_commit(self) -> None:
        if self.planned is not None:
            (plan, documents), self.planned = self.planned, None
            self.visible.adopt(documents)
            with self.maybe_failing():
                commit = plan.write(self.files)
                self.shard.note_saved(commit)
                self.files.remove_all_but(commit.point)
                self.durable[0] = plan.log_index
            self.shard.adopt_built()

    @contextmanager
    def maybe_failing(self) -> Iterator[None]:
        try:
            yield
        except UnavailableError:
            assert self.failing

    def merge(self) -> None:
        self.shard.maybe_merge()


def live(files: IndexFiles, log: list[Operation], durable: list[int], random: Random, failing: bool) -> None:
    life = Life(files, log, durable, failing)
    others = [life.refresh, life.merge, life.flush, life.seal, life.build, life.begin_commit, life.end_commit]
    for _ in range(60):
        step = random.randrange(2 * len(others))
        if step < len(others):
            others[step]()
        else:
            life.write([random_operation(random) for _ in range(random.randrange(1, 4))])
        assert searchable(life.shard) == life.visible.now
        check_realtime(life.shard, life.twin)


def check_realtime(shard: Shard, twin: Twin) -> None:
    for number in range(12):
        document = shard.get(f"doc{number}")
        found = None if document is None else (document.source, document.version, document.seq_no)
        assert found == twin.documents.get(f"doc{number}")


@pytest.mark.parametrize("seed", range(40))
def test_crashes_leave_the_last_commit_or_the_new_one(seed: int) -> None:
    random = Random(seed)
    system = LossyFileSystem(random)
    log: list[Operation] = []
    durable = [0]
    for life in range(6):
        system.fault = random_faults(random, 60, 0.1 if life % 2 else 0)
        try:
            live(IndexFiles(system, DIRECTORY), log, durable, random, failing=life % 2 == 1)
        except Crash:
            random.choice([system.crash, system.kill])()
        except UnavailableError:
            system.crash()  # an opening that failed
    system.fault = lambda operation: None
    system.crash()
    check_last(system, log, durable)


@pytest.mark.parametrize("seed", range(12))
def test_a_flush_and_an_opening_may_be_cut_anywhere(seed: int) -> None:
    stop, done = 0, False
    while not done:
        stop += 1
        system = LossyFileSystem(Random(seed * 1000 + stop))
        files = IndexFiles(system, DIRECTORY)
        shard = filled(files)
        before = searchable(shard)
        shard.apply([index("e"), delete("b")])
        done = cut(system, stop, partial(shard.flush, files, 7))
        system.crash()
        cut(system, stop, partial(opened, files))
        system.crash()
        found = opened(files)
        assert (found.log_index, searchable(found)) in [(5, before), (7, searchable(shard))]
        assert found.log_index == 7 or not done


def cut(system: LossyFileSystem, stop: int, step: Callable[[], object]) -> bool:
    """Do a step up to its stop-th operation on files; whether it came to its end before."""
    left = stop

    def fault(operation: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash

    system.fault = fault
    try:
        step()
        return True
    except Crash:
        return False
    finally:
        system.fault = lambda operation: None


def check_last(system: FileSystem, log: list[Operation], durable: list[int]) -> None:
    files = IndexFiles(system, DIRECTORY)
    point = files.committed()
    assert (point.log_index if point else 0) >= durable[0]
    for segment in point.segments if point else ():
        files.verify(segment.file)
    live(files, log, durable, Random(0), failing=False)
