"""Runs one YAML test of Elasticsearch's clients against an application, over HTTP as its clients speak it."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tests.conformance.elasticsearch_suite import ClientCase, Step, find_api

__all__ = ["StepFailed", "run_case"]

STATUSES = {
    "bad_request": {400},
    "unauthorized": {401},
    "forbidden": {403},
    "missing": {404},
    "request_timeout": {408},
    "conflict": {409},
    "unavailable": {503},
}
MISSING = object()


class StepFailed(AssertionError):
    """What was expected did not come."""


def run_case(case: ClientCase, client: httpx.Client) -> None:
    """Set-up, test, and tear-down in any case. Raises StepFailed."""
    run = _Run(client)
    try:
        run.steps(case.setup)
        run.steps(case.steps)
    finally:
        run.stashed.clear()
        run.steps(case.teardown)


class _Run:
    """One test on its way: the last answer, and what was kept of answers under a name."""

    def __init__(self, client: httpx.Client) -> None:
        self.stashed: dict[str, Any] = {}
        self._client = client
        self._answer: Any = None

    def steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if step.kind == "do":
                self._do(step)
            elif step.kind == "set":
                for path, name in step.content.items():
                    self.stashed[name] = self._look_up(path)
            elif step.kind != "skip":
                CHECKS[step.kind](self, step.content)

    def _do(self, step: Step) -> None:
        name = step.call
        assert name is not None
        arguments = self._filled(step.content[name] or {})
        ignored = arguments.pop("ignore", [])
        body = arguments.pop("body", None)
        api = find_api(name)
        try:
            method, path, parameters = api.target(arguments, body is not None)
        except ValueError as error:
            raise StepFailed(str(error)) from None
        headers = {"Accept": _vendor(api.accept)} | step.content.get("headers", {})
        content = None
        if body is not None:
            content = _encoded(body, api.content_type)
            headers = {"Content-Type": _vendor(api.content_type)} | headers
        answer = self._client.request(method, path, params=parameters, content=content, headers=headers)
        self._check_status(step, name, answer.status_code, answer.text, ignored)
        if method == "HEAD":
            self._answer = answer.status_code < 300
        else:
            is_json = "json" in answer.headers.get("content-type", "")
            self._answer = answer.json() if is_json else answer.text

    def _check_status(self, step: Step, name: str, status: int, text: str, ignored: Any) -> None:
        catch = step.content.get("catch")
        allowed = {int(one) for one in (ignored if isinstance(ignored, list) else [ignored])}
        method_is_head = find_api(name).paths[0][1] == ("HEAD",)
        if catch is None:
            if status >= 400 and status not in allowed and not (method_is_head and status == 404):
                raise StepFailed(f"{name}: {status} {text[:300]}")
        elif catch.startswith("/"):
            if status < 400 or not re.search(catch.strip("/"), text):
                raise StepFailed(f"{name}: {status} {text[:300]}, not {catch}")
        elif status not in STATUSES.get(catch, range(400, 600)):
            raise StepFailed(f"{name}: {status} {text[:300]}, not {catch}")

    def _filled(self, value: Any) -> Any:
        """With what was kept in the place of `$name`."""
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str) and value.startswith("$") and value.strip("${}") in self.stashed:
            return self.stashed[value.strip("${}")]
        return value

    def _look_up(self, path: str) -> Any:
        found = self._answer
        if path in ("", "$body"):
            return found
        for part in re.split(r"(?<!\\)\.", path):
            key = str(self._filled(part.replace("\\.", ".")))
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return MISSING
        return found

    def match(self, content: Mapping[str, Any]) -> None:
        for path, wanted in content.items():
            found, wanted = self._look_up(path), self._filled(wanted)
            if not _matches(found, wanted):
                raise StepFailed(f"{path} is {found!r:.300}, not {wanted!r}")

    def is_true(self, path: str) -> None:
        if _is_false(self._look_up(path)):
            raise StepFailed(f"{path} is {self._look_up(path)!r:.300}, not true")

    def is_false(self, path: str) -> None:
        if not _is_false(self._look_up(path)):
            raise StepFailed(f"{path} is {self._look_up(path)!r:.300}, not false")

    def exists(self, path: str) -> None:
        if self._look_up(path) is MISSING:
            raise StepFailed(f"{path} is not there")

    def contains(self, content: Mapping[str, Any]) -> None:
        for path, wanted in content.items():
            found = self._look_up(path)
            has_it = isinstance(found, list) and any(
                item == wanted or (isinstance(wanted, dict) and wanted.items() <= item.items())
                for item in found
            )
            if not has_it:
                raise StepFailed(f"{path} is {found!r:.300}, without {wanted!r}")

    def length(self, content: Mapping[str, int]) -> None:
        self._compare(content, lambda found, wanted: len(found) == wanted)

    def at_least(self, content: Mapping[str, Any]) -> None:
        self._compare(content, lambda found, wanted: found >= wanted)

    def above(self, content: Mapping[str, Any]) -> None:
        self._compare(content, lambda found, wanted: found > wanted)

    def at_most(self, content: Mapping[str, Any]) -> None:
        self._compare(content, lambda found, wanted: found <= wanted)

    def below(self, content: Mapping[str, Any]) -> None:
        self._compare(content, lambda found, wanted: found < wanted)

    def _compare(self, content: Mapping[str, Any], holds: Callable[[Any, Any], bool]) -> None:
        for path, wanted in content.items():
            found = self._look_up(path)
            if found is MISSING or not holds(found, self._filled(wanted)):
                raise StepFailed(f"{path} is {found!r:.300}; wanted {wanted!r}")


CHECKS: dict[str, Callable[[_Run, Any], None]] = {
    "match": _Run.match,
    "is_true": _Run.is_true,
    "is_false": _Run.is_false,
    "exists": _Run.exists,
    "contains": _Run.contains,
    "length": _Run.length,
    "gte": _Run.at_least,
    "gt": _Run.above,
    "lte": _Run.at_most,
    "lt": _Run.below,
}


def _matches(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and (pattern := wanted.strip(" \n")).startswith("/") and pattern.endswith("/"):
        if found is MISSING:
            return False
        text = found if isinstance(found, str) else json.dumps(found)
        return re.search(pattern[1:-1], text, re.VERBOSE) is not None
    if isinstance(wanted, bool) != isinstance(found, bool):
        return False
    return bool(found == wanted)


def _is_false(value: Any) -> bool:
    """Absent, null, false, 0, an empty text; settings are shown as texts, so `"false"` is false, too."""
    return value is MISSING or value in (None, False, 0, "", "false")


def _encoded(body: Any, content_type: str) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if "ndjson" in content_type:
        lines = [line if isinstance(line, str) else json.dumps(line) for line in body]
        return ("\n".join(lines) + "\n").encode()
    return json.dumps(body).encode()


def _vendor(media_types: str) -> str:
    """As clients of version 8 say it."""
    return re.sub(
        r"application/(json|x-ndjson)", r"application/vnd.elasticsearch+\1; compatible-with=8", media_types
    )
