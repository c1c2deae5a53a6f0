"""The staircase: `serve` and `actors` stand on `graphdb` and do not know each other, nor lazily."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = {"graphdb": {"actors", "serve", "ray"}, "actors": {"serve"}, "serve": {"actors", "ray"}}
OUTSIDE_THE_CORE = {"asyncio", "socket", "random", "secrets", "time"}

EXCEPTIONS = {
    ("graphdb/__init__.py", "actors"): "the front door: graphdb.connect() reaches a running service's actors",
    **{
        (f"serve/deployments/{module}.py", "actors"): "the one room that wires edges and actors"
        for module in (
            "hosted_graph",
            "hosted_search",
            "port_access",
            "port_actor",
            "precompile",
            "search_process",
            "service",
        )
    },
    (
        "serve/cli/node.py",
        "actors",
    ): "loads into, backs up and restores the data directory of a stopped service",
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield (node.module or "").partition(".")[0]


def calls_of_wait_for(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "asyncio.wait_for":
            yield node.lineno


def test_nobody_swallows_a_cancellation() -> None:
    """In Python 3.11 `asyncio.wait_for` does, if what it waits for ends just then; its caller never ends."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: asyncio.timeout does not swallow it"
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
        for line in calls_of_wait_for(path)
    ]
    assert not found


def crossings() -> set[tuple[str, str]]:
    found = set()
    for floor, forbidden in FLOORS.items():
        for path in (ROOT / floor).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            found |= {(name, target) for target in imports(path) if target in forbidden}
    return found


def test_imports_run_downward() -> None:
    assert crossings() == set(EXCEPTIONS), "forbidden imports, or exceptions that are not needed any more"


def test_ray_remote_is_in_one_place() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
        if "ray.remote" in path.read_text().replace("`ray.remote`", "")
    }
    assert users == {"actors/cluster.py"}


@pytest.mark.parametrize("path", sorted((ROOT / "graphdb").rglob("*.py")), ids=lambda path: path.stem)
def test_core_has_no_clock_no_dice_no_event_loop_and_no_socket(path: Path) -> None:
    assert not set(imports(path)) & OUTSIDE_THE_CORE
