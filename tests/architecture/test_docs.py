"""The documentation says what is there: settings, endpoints, modules, and paths that exist."""

import json
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


def nearest_page(module: Path) -> Path:
    """The page of the module's room, or of the next room around it that has one; at the top README."""
    pages = (folder / "DESIGN.md" for folder in module.parents if folder.is_relative_to(ROOT))
    return next((page for page in pages if page.exists()), ROOT / "README.md")


@pytest.mark.parametrize("page", ROOM_PAGES, ids=lambda page: page.parent.relative_to(ROOT).as_posix())
def test_every_module_of_a_room_stands_on_its_page(page: Path) -> None:
    """Those of rooms within it too, with or without their room's name, where these have no page."""
    modules = [
        path.relative_to(page.parent)
        for path in page.parent.rglob("*.py")
        if nearest_page(path) == page
        and path.name not in ("__init__.py", "__main__.py")
        and not path.stem.endswith("_pb2")  # generated
    ]
    text = page.read_text()
    assert [module.as_posix() for module in modules if not re.search(name_on_page(module), text)] == []


def name_on_page(module: Path) -> str:
    """A pattern; module is relative to the page."""
    return rf"(?<![\w/])(?:{re.escape(module.parent.as_posix())}/)?{re.escape(module.name)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_named_in_docs_exist(page: Path) -> None:
    named = NAMED_PATH.findall(page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


LINK = re.compile(r"\]\(([^)\s:]*\.md)?(?:#([\w-]+))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_to_a_heading(page: Path) -> None:
    broken = []
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


def commands(page: Path) -> list[str]:
    """The curl commands of its shell examples, whole."""
    examples = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
    return re.findall(r"^curl .*?(?=^\w|\Z)", "\n".join(examples), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("command", commands(ROOT / "docs/search.md"))
def test_json_in_a_search_example_can_be_read(command: str) -> None:
    for body in re.findall(r"-d '\s*(\{.*?\})\s*'", command, re.DOTALL):
        for line in body.splitlines() if "_bulk" in command else [body]:
            json.loads(line)


def test_search_examples_create_each_index_once() -> None:
    curls = "".join(commands(ROOT / "docs/search.md"))
    names = re.findall(r"(?::9200|\$ES)/(\w+)(?=\s)", curls)
    assert sorted(set(names)) == sorted(names) != []
