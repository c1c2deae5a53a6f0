"""Imports run from a later room to an earlier one (`rooms.py`), lazy and `TYPE_CHECKING` ones too; and no
modules import each other in a circle.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.architecture.rooms import ROOMS
from tests.architecture.test_layers import EXCEPTIONS as BETWEEN_FLOORS

ROOT = Path(__file__).parents[2]
FLOORS = ("graphdb", "actors", "serve")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for floor in FLOORS
    for path in (ROOT / floor).rglob("*.py")
}
PLACES = {room: place for place, room in enumerate(ROOMS)}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module


IMPORTS = {name: set(imported_modules(path)) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def test_every_room_has_one_place() -> None:
    assert len(PLACES) == len(ROOMS)
    assert PLACES.keys() == {room_of(name) for name in MODULES} - set(FLOORS)


def test_imports_run_to_earlier_rooms() -> None:
    backward = {
        (name, imported)
        for name, found in IMPORTS.items()
        for imported in found
        # the floors, and what may pass between them, are those of `test_layers`
        if name.split(".")[0] == imported.split(".")[0] and name not in FLOORS
        if PLACES.get(room_of(imported), -1) > PLACES[room_of(name)]
    }
    assert not backward, "imports of later rooms"


def test_no_modules_import_each_other_in_a_circle() -> None:
    front_doors = {path.removesuffix("/__init__.py") for path, _ in BETWEEN_FLOORS} & set(FLOORS)
    graph = {name: found for name, found in IMPORTS.items() if name not in front_doors}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(error.args[1])) from None
