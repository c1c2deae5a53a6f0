"""The catalogue against plain dictionaries, and two of them, refreshed at different moments."""

from dataclasses import replace
from random import Random

import orjson
import pytest

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command, DeleteIndices, WriteDocuments
from graphdb.search.catalog.command_codec import decode_command, encode_command
from tests.support.catalog_twin import CatalogTwin, contents_of, outcome_of, random_command


def commands(random: Random, count: int, catalog: Catalog) -> Command:
    uuids = [index.uuid for index in catalog.indexes()]
    if random.random() < 0.05:
        uuids.append("gone")
    return random_command(random, uuids, count)


def with_values(command: Command) -> Command:
    """As a bulk request sends it: documents come with what their texts say."""
    if not isinstance(command, WriteDocuments):
        return command
    writes = [
        replace(one, operation=one.operation._replace(value=orjson.loads(one.operation.body or b"{}")))
        for one in command.writes
    ]
    return replace(command, writes=tuple(writes))


@pytest.mark.parametrize("seed", range(60))
def test_outcomes_and_contents_are_those_of_a_naive_twin(seed: int) -> None:
    random = Random(seed)
    one, other, twin = Catalog(), Catalog(), CatalogTwin()
    for number in range(1, 60):
        command = commands(random, number, one)
        stored = decode_command(encode_command(command))
        assert stored == command
        outcome = one.apply(with_values(command), number, number)

        def made(name: str) -> str:
            index = one.find(name)
            return "" if index is None else index.uuid

        assert outcome_of(outcome) == twin.apply(command, made), command
        assert outcome_of(other.apply(stored, number, number)) == outcome_of(outcome)
        for index in random.sample(other.indexes(), k=min(1, len(other.indexes()))):
            random.choice([index.shards.refresh, index.shards.seal, index.shards.build_sealed])()
            index.shards.adopt_built()
            index.shards.maybe_merge()
    expected = {uuid: (index.types, index.documents) for uuid, index in twin.indexes.items()}
    for catalog in (one, other):
        found = contents_of(catalog)
        assert {uuid: (index.types, index.documents) for uuid, index in found.items()} == expected
        for uuid, has in found.items():
            wanted = twin.indexes[uuid]
            assert (has.name, has.aliases, has.replicas) == (wanted.name, wanted.aliases, wanted.replicas)
    versions = [[index.mapping_version for index in catalog.indexes()] for catalog in (one, other)]
    assert versions[0] == versions[1]


@pytest.mark.parametrize("seed", range(20))
def test_a_check_tells_what_applying_would_and_changes_nothing(seed: int) -> None:
    random = Random(seed)
    catalog = Catalog()
    for number in range(1, 60):
        command = commands(random, number, catalog)
        before = contents_of(catalog)
        try:
            catalog.check(command)
            expected = None
        except Exception as error:  # noqa: BLE001 compared just below
            expected = error
        assert contents_of(catalog) == before
        outcome = catalog.apply(command, number, number)
        if not isinstance(outcome.value, list):
            assert repr(expected) == repr(outcome.error)


def test_deleting_what_is_gone_deletes_nothing() -> None:
    catalog = Catalog()
    outcome = catalog.apply(DeleteIndices(("u",)), 1, 1)
    assert outcome_of(outcome) == "index_not_found_exception"
