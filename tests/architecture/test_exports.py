"""`__all__` says what is public: every module has one, its names exist, and others import nothing else."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for floor in ("graphdb", "actors", "serve", "benchmarks")
    for path in sorted((ROOT / floor).rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py") and not path.stem.endswith("_pb2")  # generated
}
IMPORTED = {
    (node.module, alias.name)
    for path in MODULES.values()
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


@pytest.mark.parametrize("name", MODULES)
def test_all_names_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    exported = module.__all__
    assert [item for item in exported if not hasattr(module, item)] == []
    assert {item for source, item in IMPORTED if source == name} <= set(exported)
