"""The YAML tests of Elasticsearch's clients, and the API as its specification says it; nothing runs here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.conformance.manifests import suite_root

__all__ = ["Api", "ClientCase", "Step", "all_apis", "find_api", "read_client_cases"]

SUITE, SPECIFICATION = "es-clients-tests-8.19", "es-spec-8.19"
COMMON_PARAMETERS = {"pretty", "human", "error_trace", "source", "filter_path", "format"}
# "do" has these beside the call
_BESIDE_CALL = {"catch", "headers", "allowed_warnings", "warnings", "node_selector"}


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a test: kind is do, match, set and so on, content what stands behind it."""

    kind: str
    content: Any

    @property
    def call(self) -> str | None:
        """The name of the API that a "do" calls."""
        if self.kind != "do":
            return None
        return next(str(name) for name in self.content if name not in _BESIDE_CALL)


@dataclass(frozen=True, slots=True)
class ClientCase:
    """One test with the set-up and the tear-down of its file."""

    name: str
    is_for_stack: bool  # and not only for Elasticsearch as a service ("serverless")
    setup: tuple[Step, ...]
    steps: tuple[Step, ...]
    teardown: tuple[Step, ...]

    def calls(self) -> set[str]:
        """All the APIs that it calls."""
        return {call for step in (*self.setup, *self.steps, *self.teardown) if (call := step.call)}


@dataclass(frozen=True, slots=True)
class Api:
    """One call: where it is, as the specification says."""

    name: str
    paths: tuple[tuple[str, tuple[str, ...], frozenset[str]], ...]  # path, methods, parts
    parameters: frozenset[str]
    accept: str
    content_type: str

    def target(self, arguments: Mapping[str, Any], has_body: bool) -> tuple[str, str, dict[str, str]]:
        """Method, path and query parameters for arguments. Of the paths that they fill, the longest.

        Raises ValueError for an argument that the call does not have.
        """
        fitting = [one for one in self.paths if one[2] <= arguments.keys()]
        path, methods, parts = max(fitting, key=lambda one: len(one[2]))
        method = methods[0]
        if has_body and method == "GET":
            method = next((other for other in methods if other != "GET"), "GET")
        for part in parts:
            path = path.replace(f"{{{part}}}", quote(_text(arguments[part]), safe=",*"))
        rest = {name: _text(value) for name, value in arguments.items() if name not in parts}
        unknown = rest.keys() - self.parameters - COMMON_PARAMETERS
        if unknown:
            raise ValueError(f"{self.name} has no parameter {sorted(unknown)}")
        return method, path, rest


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return str(value)


@lru_cache(maxsize=1)
def read_client_cases() -> dict[str, ClientCase]:
    """By file without its ending; the second test of a file has its title behind. Empty without the suite."""
    root = suite_root()
    if root is None or not (root / SUITE).is_dir():
        return {}
    cases: dict[str, ClientCase] = {}
    for file in sorted((root / SUITE / "tests").rglob("*.yml")):
        for case in _cases_of(file, file.relative_to(root / SUITE / "tests").with_suffix("").as_posix()):
            cases[case.name] = case
    return cases


def _cases_of(file: Path, name: str) -> list[ClientCase]:
    sections: dict[str, Any] = {}
    for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
        sections |= document or {}
    is_for_stack = bool(sections.pop("requires")["stack"])
    setup, teardown = _steps(sections.pop("setup", [])), _steps(sections.pop("teardown", []))
    return [
        ClientCase(name if not number else f"{name} {title}", is_for_stack, setup, _steps(steps), teardown)
        for number, (title, steps) in enumerate(sections.items())
    ]


def _steps(lines: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    return tuple(Step(kind, content) for line in lines for kind, content in line.items())


@cache
def find_api(name: str) -> Api:
    """Raises FileNotFoundError where there is no such call."""
    root = suite_root()
    assert root is not None
    file = root / SPECIFICATION / "_json_spec" / f"{name}.json"
    described = json.loads(file.read_text())[name]
    paths = tuple(
        (path["path"], tuple(path["methods"]), frozenset(path.get("parts", ())))
        for path in described["url"]["paths"]
    )
    headers = described.get("headers", {})
    return Api(
        name,
        paths,
        frozenset(described.get("params", ())),
        ",".join(headers.get("accept", ["application/json"])),
        headers.get("content_type", ["application/json"])[0],
    )


@cache
def all_apis() -> tuple[Api, ...]:
    """Every call of the specification; none where it is not there."""
    root = suite_root()
    if root is None or not (root / SPECIFICATION).is_dir():
        return ()
    files = sorted((root / SPECIFICATION / "_json_spec").glob("*.json"))
    return tuple(find_api(file.stem) for file in files if not file.stem.startswith("_"))
