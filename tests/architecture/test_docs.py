"""The documentation says what is there: settings, endpoints, modules, and paths that exist."""

import re
from pathlib import Path

import pytest

from graphdb.config import Settings
from graphdb.config.section import Section
from serve.graph_app import ENDPOINTS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "graphdb/**/*.md", "actors/**/*.md", "serve/**/*.md")
    for path in ROOT.glob(pattern)
)
ROOM_PAGES = [page for page in PAGES if page.name == "DESIGN.md"]
TEXT = "\n".join(page.read_text() for page in PAGES)
# in backticks: a path of this repository, as its first folder tells
NAMED_PATH = re.compile(
    r"`((?:graphdb|actors|serve|tests|scripts|docs|examples|notebooks|benchmarks|\.ci)/[\w./-]+)`"
)


def settings_keys() -> list[str]:
    keys = []
    for name, field in Settings.model_fields.items():
        section = next(
            (
                kind
                for kind in [field.annotation, *getattr(field.annotation, "__args__", ())]
                if is_section(kind)
            ),
            None,
        )
        assert section is not None, name
        keys += [f"{name}.{key}" for key in section.model_fields]
    return keys


def is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


@pytest.mark.parametrize("key", settings_keys())
def test_setting_is_documented(key: str) -> None:
    assert f"`{key.rpartition('.')[2]}`" in TEXT or f"`{key}`" in TEXT


@pytest.mark.parametrize("path", ENDPOINTS)
def test_endpoint_is_documented(path: str) -> None:
    assert re.search(rf"(?<![\w/]){re.escape(path)}\b", TEXT)


@pytest.mark.parametrize("page", ROOM_PAGES, ids=lambda page: page.parent.name)
def test_every_module_of_a_room_stands_on_its_page(page: Path) -> None:
    text = page.read_text()
    modules = [path.name for path in page.parent.glob("*.py") if path.name != "__init__.py"]
    assert [name for name in modules if not re.search(rf"(?<![\w/]){re.escape(name)}", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_named_in_docs_exist(page: Path) -> None:
    named = NAMED_PATH.findall(page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
