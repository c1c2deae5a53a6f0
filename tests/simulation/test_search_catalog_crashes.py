"""The catalogue on disk: crashes at any operation on files, the log again, against a naive twin."""

from random import Random
from typing import Any

import pytest

from graphdb.errors import UnavailableError
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command
from graphdb.search.catalog.files import CatalogFiles, read_log_index
from tests.simulation.lossy_file_system import Crash, LossyFileSystem, random_faults
from tests.support.catalog_twin import CatalogTwin, TwinIndex, contents_of, random_command

DIRECTORY = "search"


def state(indexes: dict[str, TwinIndex]) -> dict[str, Any]:
    return {
        uuid: (index.name, index.types, index.replicas, index.aliases, index.documents)
        for uuid, index in indexes.items()
    }


class Lives:
    """The log, which loses nothing, and what the twin makes of it."""

    def __init__(self, system: LossyFileSystem, random: Random) -> None:
        self.log: list[Command] = []
        self.saved = 0  # the log index of the last save that was confirmed
        self._system, self._random = system, random

    def twin_at(self, log_index: int, catalog: Catalog) -> CatalogTwin:
        twin, again = CatalogTwin(), Catalog()
        for number, command in enumerate(self.log[:log_index], 1):
            again.apply(command, number, number)
            twin.apply(command, lambda name: getattr(again.find(name), "uuid", ""))
        return twin

    def live(self, failing: bool) -> None:
        """One life: load, replay, go on with the commands, saving now and then."""
        files = CatalogFiles(self._system, DIRECTORY)
        catalog, log_index = files.load() or (Catalog(), 0)
        assert log_index >= self.saved, "a confirmed save is lost"
        assert state(contents_of(catalog)) == state(self.twin_at(log_index, catalog).indexes)
        for number, command in enumerate(self.log[log_index:], log_index + 1):
            catalog.apply(command, number, number)
        for _ in range(30):
            self._step(catalog, files, failing)
        assert state(contents_of(catalog)) == state(self.twin_at(len(self.log), catalog).indexes)

    def _step(self, catalog: Catalog, files: CatalogFiles, failing: bool) -> None:
        kind = self._random.randrange(8)
        if kind == 0:
            try:
                files.save(catalog, len(self.log))
            except UnavailableError:
                assert failing
            else:
                self.saved = len(self.log)
        elif kind == 1:
            for index in catalog.indexes():
                index.shards.maybe_merge()
        else:
            uuids = [index.uuid for index in catalog.indexes()]
            self.log.append(random_command(self._random, uuids, len(self.log) + 1))
            catalog.apply(self.log[-1], len(self.log), len(self.log))


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_leaves_what_was_saved_and_the_log_does_the_rest(seed: int) -> None:
    random = Random(seed)
    system = LossyFileSystem(random)
    lives = Lives(system, random)
    for life in range(6):
        system.fault = random_faults(random, 150, 0.05 if life % 2 else 0)
        try:
            lives.live(failing=life % 2 == 1)
        except Crash:
            random.choice([system.crash, system.kill])()
        except UnavailableError:
            system.crash()  # an opening that failed
    system.fault = lambda operation: None
    system.crash()
    assert (read_log_index(DIRECTORY, system) or 0) >= lives.saved
    lives.live(failing=False)
