"""Packages: each that is declared is imported and on the page, and each that is imported is declared."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs/dependencies.md").read_text()
OURS = {"graphdb", "actors", "serve", "benchmarks", "tests"}
# Where the name of the module is not that of the package, in lower case and with underscores.
MODULES = {
    "backports.zstd": "backports",
    "argon2-cffi": "argon2",
    "faiss-cpu": "faiss",
    "graphql-core": "graphql",
    "grpcio": "grpc",
    "protobuf": "google",
    "PyStemmer": "Stemmer",
    "PyYAML": "yaml",
    "SPARQLWrapper": "SPARQLWrapper",
}
APART = ROOT / "tests/support/apart"  # programs that run in environments of their own
NOT_IMPORTED = {"pyasn1": "a bound on what ldap3 imports"}


def named(requirements: list[str]) -> list[str]:
    names = [re.match(r"[\w.-]+", requirement) for requirement in requirements]
    return [name[0] for name in names if name is not None and name[0] != "graphdb"]


NEEDED = named(PROJECT["dependencies"])
EXTRA = {name for extra in PROJECT["optional-dependencies"].values() for name in named(extra)}


def module_of(package: str) -> str:
    return MODULES.get(package, package.lower().replace("-", "_"))


def imported(folders: set[str]) -> Iterator[str]:
    """The first names of the modules that the files of some folders import, lazily too."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    for path in (path for path in paths if not path.is_relative_to(APART)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield (node.module or "").partition(".")[0]


def foreign(folders: set[str]) -> set[str]:
    return set(imported(folders)) - OURS - sys.stdlib_module_names


PRODUCT = foreign({"graphdb", "actors", "serve"})


@pytest.mark.parametrize("package", NEEDED)
def test_what_is_declared_is_imported_and_on_the_page(package: str) -> None:
    assert (module_of(package) in PRODUCT) == (package not in NOT_IMPORTED)
    assert re.search(rf"^\| `{re.escape(package)}` \|(?: [^|]+ \|){{3}}$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("package", sorted(EXTRA))
def test_extras_are_on_the_page(package: str) -> None:
    rows = PAGE.partition("## What only some need")[2]
    assert f"`{package}`" in rows


def test_the_page_has_no_other_package() -> None:
    rows = PAGE.partition("## What the service needs")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", rows, re.MULTILINE) == NEEDED


def test_the_product_imports_only_what_is_declared() -> None:
    """pandas is imported where the caller has it, obstore where documents of object stores are loaded."""
    assert PRODUCT - {module_of(package) for package in NEEDED} == {"pandas", "obstore"}


def test_tests_and_benchmarks_import_only_what_is_declared() -> None:
    assert not foreign({"tests", "benchmarks"}) - {module_of(package) for package in {*NEEDED, *EXTRA}}
