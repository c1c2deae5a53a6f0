"""The catalogue on disk: opened as it was saved, tidy, damaged, copied while it is being written."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from graphdb.errors import CorruptionError
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    CloseIndices,
    CreateDataStream,
    CreateIndex,
    CursorMove,
    DeleteIndices,
    IntroduceNode,
    PutClusterSettings,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
    PutMapping,
    PutPipeline,
    PutScript,
    PutSettings,
    PutSynonyms,
    RollOver,
    SetOperationMode,
    WriteDocuments,
)
from graphdb.search.catalog.command_codec import decode_command, encode_command
from graphdb.search.catalog.data_streams import backing_indexes
from graphdb.search.catalog.files import CatalogFiles, copy_state, read_log_index
from graphdb.search.catalog.state import KnownNode
from graphdb.search.segments.index_files import encode_checked
from graphdb.search.segments.operations import Action
from tests.support.catalog_twin import contents_of
from tests.unit.search.catalog.catalogs import Commands, put


def files(directory: Path) -> CatalogFiles:
    return CatalogFiles(RealFileSystem(), str(directory))


def loaded(directory: Path) -> tuple[Catalog, int]:
    found = files(directory).load()
    assert found is not None
    return found


def filled() -> Commands:
    commands = Commands("a", "b")
    commands.alias("a", "x", filter={"term": {"f": 1}})
    commands(PutSettings(("b",), {"refresh_interval": "5s"}))
    commands(PutComponentTemplate("c", {"template": {}}))
    commands(PutLegacyTemplate("l", {"index_patterns": ["l*"]}))
    commands(PutScript("s", {"lang": "painless", "source": "1"}))
    commands(PutSynonyms("words", [{"id": "1", "synonyms": "a, b"}]))
    commands(PutPipeline("p", {"processors": []}))
    commands(PutClusterSettings({"action.auto_create_index": "+a"}, {"action.auto_create_index": "b"}))
    commands(PutIndexTemplate("t", {"index_patterns": ["t*"], "composed_of": ["c"]}))
    commands(IntroduceNode(2, "two", "10.0.0.2:9200", "uuid"))
    commands(WriteDocuments((put("a", "1", b'{"f":1}'), put("b", "1")), cursor=CursorMove("b", 0, 7)))
    commands(SetOperationMode("ilm", "STOPPED"))
    commands(CloseIndices(("b",)))
    return commands


def listed(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_there_is_nothing_before_the_first_save(tmp_path: Path) -> None:
    assert files(tmp_path / "search").load() is None
    assert read_log_index(str(tmp_path / "search")) is None
    assert copy_state(str(tmp_path / "search"), str(tmp_path / "copy")) is None


def test_it_is_opened_as_it_was_saved(tmp_path: Path) -> None:
    commands = filled()
    files(tmp_path).save(commands.catalog, 7)
    counters = [index.shards.counters for index in commands.catalog.indexes()]
    assert [(one.periodic, one.uncommitted, one.indexed) for one in counters] == [(1, 0, 1), (1, 0, 1)]
    catalog, log_index = loaded(tmp_path)
    assert (log_index, read_log_index(str(tmp_path))) == (7, 7)
    assert contents_of(catalog) == contents_of(commands.catalog)
    assert [index.is_closed for index in catalog.indexes()] == [False, True]
    assert catalog.legacy_templates == commands.catalog.legacy_templates != {}
    assert (catalog.aliases, catalog.templates) == (commands.catalog.aliases, commands.catalog.templates)
    assert (catalog.state.cluster_uuid, catalog.state.nodes) == (
        "uuid",
        {2: KnownNode("two", "10.0.0.2:9200")},
    )
    assert catalog.cluster_settings == commands.catalog.cluster_settings != {}
    assert catalog.scripts == commands.catalog.scripts != {}
    assert catalog.synonyms == commands.catalog.synonyms != {}
    assert catalog.pipelines == commands.catalog.pipelines != {}
    assert catalog.state.operation_modes == {"ilm": "STOPPED"}
    for index, before in zip(catalog.indexes(), commands.catalog.indexes(), strict=True):
        assert index.shown_settings() == before.shown_settings()
        assert (index.mapping_version, index.cursor) == (before.mapping_version, before.cursor)


def test_only_what_counts_stays_on_disk(tmp_path: Path) -> None:
    commands, disk = filled(), files(tmp_path)
    disk.save(commands.catalog, 7)
    commands.write(put("a", "2"))
    disk.save(commands.catalog, 8)
    expected = [
        "a/_1_1-1.segment",
        "a/_1_2-2.segment",
        "a/commit-2",
        "b/_1_1-1.segment",
        "b/commit-1",
        "catalog",
    ]
    assert listed(tmp_path) == expected
    commands(DeleteIndices(("a",)))
    assert listed(tmp_path) == expected
    disk.save(commands.catalog, 9)
    assert sorted(os.listdir(tmp_path)) == ["b", "catalog"]
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "_1_1-1.segment").write_bytes(b"?")
    loaded(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["b", "catalog"]


def test_a_save_without_changes_writes_one_file(tmp_path: Path) -> None:
    commands, disk = filled(), files(tmp_path)
    disk.save(commands.catalog, 7)
    before = listed(tmp_path)
    disk.save(commands.catalog, 9)
    assert listed(tmp_path) == before
    assert read_log_index(str(tmp_path)) == 9
    catalog, _ = loaded(tmp_path)
    assert all(shard.is_saved for index in catalog.indexes() for shard in index.shards)


def test_names_of_segments_do_not_come_back(tmp_path: Path) -> None:
    commands = filled()
    files(tmp_path).save(commands.catalog, 7)
    seen: set[str] = set()
    for _ in range(3):  # opened, written to, and crashed before anything was saved
        commands.catalog, _ = loaded(tmp_path)
        commands.write(put("a", "2"), refresh=True)
        index = commands.catalog.find("a")
        assert index is not None
        name = index.shards.leaves()[-1].segment.name
        assert name not in seen
        seen.add(name)


@pytest.mark.parametrize("damage", ["catalog", "a/commit-1", "gone", "settings"])
def test_damage_names_the_file(tmp_path: Path, damage: str) -> None:
    files(tmp_path).save(filled().catalog, 7)
    path = tmp_path / ("a/commit-1" if damage == "gone" else "catalog" if damage == "settings" else damage)
    if damage == "gone":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[-3] ^= 1
        path.write_bytes(data)
    with pytest.raises(CorruptionError) as raised:
        files(tmp_path).load()
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("log_index", [None, 3])
def test_a_copy_is_of_links(tmp_path: Path, log_index: int | None) -> None:
    source, target = tmp_path / "search", tmp_path / "copy"
    commands, disk = filled(), files(source)
    disk.save(commands.catalog, 7)
    (source / "a" / "_1_1.0123.hnsw").write_bytes(b"graph")
    (source / "a" / "_1_9.0123.hnsw").write_bytes(b"of a segment that is gone")
    assert copy_state(str(source), str(target), log_index) == (log_index or 7)
    assert listed(target) == [name for name in listed(source) if "_1_9" not in name]
    assert os.stat(target / "a/_1_1-1.segment").st_nlink == 2
    expected = contents_of(commands.catalog)
    commands.write(put("a", "1"), put("a", "3"))
    disk.save(commands.catalog, 8)
    catalog, found = loaded(target)
    assert (contents_of(catalog), found) == (expected, log_index or 7)


class NoLinks(RealFileSystem):
    """Another file system."""

    def link(self, source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")


def test_where_nothing_can_be_linked_it_is_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "search", tmp_path / "copy"
    commands = filled()
    files(source).save(commands.catalog, 7)
    assert copy_state(str(source), str(target), file_system=NoLinks()) == 7
    assert os.stat(target / "a/_1_1-1.segment").st_nlink == 1
    assert contents_of(loaded(target)[0]) == contents_of(commands.catalog)


def test_a_copy_of_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    files(tmp_path / "search").save(filled().catalog, 7)
    (tmp_path / "search/a/_1_1-1.segment").unlink()
    with pytest.raises(CorruptionError, match="not whole"):
        copy_state(str(tmp_path / "search"), str(tmp_path / "copy"))


def test_copies_are_whole_while_the_owner_writes(tmp_path: Path) -> None:
    """Every copy is of one log index: each entry writes one document into both indexes."""
    commands, disk = Commands("a", "b"), files(tmp_path / "search")
    disk.save(commands.catalog, commands.log_index)
    stop = threading.Event()
    failures: list[Any] = []
    number = 0

    def copy() -> None:
        nonlocal number
        while not stop.is_set():
            number += 1
            target = tmp_path / f"copy{number}"
            log_index = copy_state(str(tmp_path / "search"), str(target))
            catalog, found = loaded(target)
            counts = [len(index.documents) for index in contents_of(catalog).values()]
            if counts[:2] != [found - 2] * 2 or found != log_index:
                failures.append((counts, found, log_index))

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        for number in range(60):
            commands.write(*(put(name, str(number)) for name in "ab"))
            disk.save(commands.catalog, commands.log_index)
            for index in commands.catalog.indexes():
                index.shards.maybe_merge()
    finally:
        stop.set()
        thread.join()
    assert failures == []
    assert number > 3


def sharded() -> Commands:
    commands = Commands()
    commands.create("s", {"settings": {"number_of_shards": 3}})
    commands.write(*(put("s", str(number), b'{"f":%d}' % number) for number in range(12)))
    return commands


def test_each_shard_is_in_a_directory_of_its_own(tmp_path: Path) -> None:
    commands, disk = sharded(), files(tmp_path)
    disk.save(commands.catalog, 7)
    assert sorted(os.listdir(tmp_path)) == ["catalog", "s", "s.1", "s.2"]
    catalog, _ = loaded(tmp_path)
    assert contents_of(catalog) == contents_of(commands.catalog)
    index, before = catalog.find("s"), commands.catalog.find("s")
    assert index is not None
    assert before is not None
    assert [shard.stats() for shard in index.shards] == [shard.stats() for shard in before.shards]
    assert all(index.shards.get(str(number)) is not None for number in range(12))
    names = [leaf.segment.name for leaf in index.shards.leaves()]
    assert len(set(names)) == len(names) >= 3
    assert copy_state(str(tmp_path), str(tmp_path / "copy")) == 7
    assert contents_of(loaded(tmp_path / "copy")[0]) == contents_of(commands.catalog)


def test_only_shards_that_changed_are_saved(tmp_path: Path) -> None:
    commands, disk = sharded(), files(tmp_path)
    disk.save(commands.catalog, 7)
    commands.write(put("s", "0", b'{"f":99}'))
    index = commands.catalog.find("s")
    assert index is not None
    changed = index.shards.routing.shard_of("0", None)
    disk.save(commands.catalog, 8)
    assert [shard.generation for shard in index.shards] == [1 + (number == changed) for number in range(3)]
    commands(PutMapping(("s",), {"properties": {"g": {"type": "keyword"}}}))
    disk.save(commands.catalog, 9)
    catalog, _ = loaded(tmp_path)
    found = catalog.find("s")
    assert found is not None
    assert found.mapping.field("g") is not None
    assert len({id(shard.mapping) for shard in found.shards}) == 1
    commands(DeleteIndices(("s",)))
    disk.save(commands.catalog, 10)
    assert os.listdir(tmp_path) == ["catalog"]


def test_a_shard_that_is_gone_is_told(tmp_path: Path) -> None:
    files(tmp_path).save(sharded().catalog, 7)
    for path in (tmp_path / "s.1").iterdir():
        path.unlink()
    with pytest.raises(CorruptionError):
        loaded(tmp_path)


def test_an_index_of_the_time_before_shards_stays_in_one(tmp_path: Path) -> None:
    commands = Commands()
    command = CreateIndex("old", "old", {"settings": {"number_of_shards": 3}})
    encoded = encode_command(command)
    assert encoded[0] == 2
    commands(decode_command(b"\x01" + encoded[1:]))
    template = {"index_patterns": ["auto"], "template": {"settings": {"number_of_shards": 2}}}
    commands(PutIndexTemplate("t", template))
    written = encode_command(WriteDocuments((put("auto", "1"), put("old", "1"))))
    commands(decode_command(b"\x01" + written[1:]))
    for name in ("old", "auto"):
        index = commands.catalog.find(name)
        assert index is not None
        assert (len(index.shards), index.settings["number_of_shards"]) == (1, "1")
    files(tmp_path).save(commands.catalog, 7)
    content = orjson.loads((tmp_path / "catalog").read_bytes().partition(b"\n")[2])
    for row in content["indexes"]:
        (row["generation"],) = row.pop("generations")
        row["settings"]["number_of_shards"] = "3"
    (tmp_path / "catalog").write_bytes(encode_checked("graphdb-search-catalog-1", content))
    catalog, _ = loaded(tmp_path)
    assert contents_of(catalog) == contents_of(commands.catalog)
    found = catalog.find("old")
    assert found is not None
    assert (len(found.shards), found.number("number_of_shards")) == (1, 1)


def test_data_streams_survive(tmp_path: Path) -> None:
    commands = Commands("plain")
    files(tmp_path).save(commands.catalog, 1)
    assert b"data_streams" not in (tmp_path / "catalog").read_bytes()  # readable before there were any
    commands(PutIndexTemplate("t", {"index_patterns": ["logs*"], "data_stream": {}}))
    first = commands(CreateDataStream("logs", "one"))
    commands(RollOver(".ds-logs-1970.01.01-000002", "two", {}, "logs", "one"))
    made = put("logs-b", "1", b'{"@timestamp":1}')
    commands.write(replace(made, operation=made.operation._replace(action=Action.CREATE)))
    files(tmp_path).save(commands.catalog, 7)
    catalog, _ = loaded(tmp_path)
    assert contents_of(catalog) == contents_of(commands.catalog)
    assert catalog.data_streams == commands.catalog.data_streams
    assert {name: one["generation"] for name, one in catalog.data_streams.items()} == {"logs": 2, "logs-b": 1}
    assert [index.name for index in backing_indexes(catalog.state, "logs")] == [
        first,
        ".ds-logs-1970.01.01-000002",
    ]
    assert catalog.write_index("logs").uuid == "two"
    assert [index.aliases for index in catalog.indexes()] == [{}] * 4
