"""`IngestDocument`: a document on its way through a pipeline; paths into it; texts with its values."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import orjson

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.values import check_extent, type_name

__all__ = ["METADATA", "Dropped", "IngestDocument", "Template", "cast_text", "not_cast", "plain_text"]

METADATA = ("_index", "_id", "_routing", "_version", "_version_type", "_if_seq_no", "_if_primary_term")
_TEXT_MAX = 10_000_000  # characters that a template makes
_STEPS_MAX = 100_000  # processors that run on one document, those inside others too
_MADE_MAX = 50_000_000  # characters and entries that processors make, unless who runs them says more
_PARTS_MAX = 100  # of a path: what is deeper cannot be written
_MISSING = object()


class Dropped(Exception):
    """The document is not to be written."""


@dataclass(slots=True)
class IngestDocument:
    """meta: `_index`, `_id` and so on, those that there are. ingest: what stands under `_ingest`.
    room: how many characters and entries may still be made; documents of one request may share it.
    """

    source: dict[str, Any]
    meta: dict[str, Any]
    ingest: dict[str, Any] = field(default_factory=dict)
    running: tuple[str, ...] = ()  # the pipelines that it is in, the outermost first
    trace: Callable[[Any], None] | None = None  # of the run, for the pipelines that processors call
    _steps: int = 0
    room: list[int] = field(default_factory=lambda: [_MADE_MAX])
    executed: list[str] = field(default_factory=list)  # pipelines, each once, in the order of their begin
    is_terminated: bool = False  # no further processor of the innermost pipeline is to run
    is_rerouted: bool = False  # nor one of any: it goes on with the pipelines of another index

    def spend(self) -> None:
        """One more processor. Errors: illegal_argument_exception where it is one too many."""
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise illegal_argument(f"more than [{_STEPS_MAX}] processors would run on one document")

    def make(self, size: int) -> None:
        """Characters and entries. Errors: illegal_argument_exception where there are too many."""
        self.room[0] -= size
        if self.room[0] < 0:
            raise illegal_argument("the processors make more than a pipeline may make of a document")

    def copied(self) -> "IngestDocument":
        """As it is now. Errors: illegal_argument_exception."""
        self.make(_extent(self.source) + _extent(self.ingest))
        try:
            return IngestDocument(
                deepcopy(self.source),
                dict(self.meta),
                deepcopy(self.ingest),
                self.running,
                executed=list(self.executed),
            )
        except RecursionError:
            raise illegal_argument("the document is nested too deeply") from None

    @contextmanager
    def tried(self) -> "Iterator[IngestDocument]":
        """A copy to try processors on, which counts here. Errors: illegal_argument_exception."""
        copy = self.copied()
        copy.room, copy._steps = self.room, self._steps
        try:
            yield copy
        finally:
            self._steps = copy._steps

    def reroute(self, index: str) -> None:
        """It belongs to another index, and goes on there."""
        self.meta["_index"] = index
        self.is_rerouted = True

    @property
    def is_done(self) -> bool:
        """Whether the processors that follow in a pipeline are not to run."""
        return self.is_terminated or self.is_rerouted

    # paths

    def has(self, path: str) -> bool:
        return self._found(path) is not _MISSING

    def get(self, path: str) -> Any:
        """Errors: illegal_argument_exception where there is nothing."""
        parts = _parts(path)
        found: Any = self._root(parts)
        for part in parts:
            found = _member(found, part, path)
        return found

    def find(self, path: str, default: Any = None) -> Any:
        """The same, or a default."""
        found = self._found(path)
        return default if found is _MISSING else found

    def wanted(self, field: str, ignores_missing: bool, why: str = "cannot process it.") -> Any:
        """The value of a field that a processor works on; None where there is none, and that is ignored.

        why: what cannot be done with null. Errors: illegal_argument_exception.
        """
        value = self.find(field)
        if value is None and not ignores_missing:
            self.get(field)  # says what is missing
            raise illegal_argument(f"field [{field}] is null, {why}")
        return value

    def _found(self, path: str) -> Any:
        try:
            return self.get(path)
        except SearchError:
            return _MISSING

    def set(self, path: str, value: Any) -> None:
        """Objects on the way are made. Errors: illegal_argument_exception."""
        parts = _parts(path)
        self.make(_extent(value))
        holder = self._holder(parts, path)
        last = parts[-1]
        if isinstance(holder, list):
            holder[_place(holder, last, path)] = value
        elif isinstance(holder, dict):
            holder[last] = value
        else:
            raise _no_parent("set", last, holder, path)

    def append(self, path: str, values: list[Any], allow_duplicates: bool = True) -> None:
        """A value that is there becomes the first of a list."""
        there = self.find(path, _MISSING)
        listed = [] if there is _MISSING else there if isinstance(there, list) else [there]
        if not allow_duplicates:
            known = {orjson.dumps(one) for one in listed}
            values = [
                one for text, one in {orjson.dumps(one): one for one in values}.items() if text not in known
            ]
        listed += values
        self.set(path, listed)

    def remove(self, path: str) -> None:
        """Errors: illegal_argument_exception where there is nothing."""
        parts = _parts(path)
        holder: Any = self._root(parts)
        for part in parts[:-1]:
            holder = _member(holder, part, path)
        _member(holder, parts[-1], path)
        if isinstance(holder, list):
            del holder[_place(holder, parts[-1], path)]
        else:
            del holder[parts[-1]]

    def check_size(self) -> None:
        """Errors: illegal_argument_exception where it has grown too large."""
        try:
            check_extent(self.source)
        except ScriptFault as fault:
            raise illegal_argument(fault.reason) from None

    def _root(self, parts: list[str]) -> dict[str, Any]:
        """What the path begins in; its first part is taken away where that says so."""
        if len(parts) > 1 and parts[0] in ("_ingest", "_source"):
            return self.ingest if parts.pop(0) == "_ingest" else self.source
        return self.meta if parts[0] in METADATA else self.source

    def _holder(self, parts: list[str], path: str) -> Any:
        holder: Any = self._root(parts)
        for part in parts[:-1]:
            if isinstance(holder, list):
                holder = holder[_place(holder, part, path)]
            elif isinstance(holder, dict):
                if holder.get(part) is None:
                    holder[part] = {}
                holder = holder[part]
            else:
                raise _no_parent("set", part, holder, path)
        return holder

    # what scripts see

    def as_ctx(self) -> dict[str, Any]:
        """One map with the members of the document and what is known of it."""
        return {**self.source, **self.meta, "_ingest": self.ingest}

    def take_ctx(self, ctx: Mapping[str, Any]) -> None:
        """What a script has made of it."""
        members = dict(ctx)
        members.pop("_ingest", None)
        self.meta = {name: members.pop(name) for name in METADATA if members.get(name) is not None}
        for name in METADATA:
            members.pop(name, None)
        self.source = members


def _extent(value: Any) -> int:
    """Characters and entries of a value."""
    pending, count = [value], 0
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            count += len(one)
        elif isinstance(one, dict):
            count += len(one)
            pending += one.values()
        elif isinstance(one, list):
            count += len(one)
            pending += one
    return count


def _parts(path: str) -> list[str]:
    parts = path.split(".", _PARTS_MAX)
    if not all(parts) or len(parts) > _PARTS_MAX:
        raise illegal_argument(
            f"path [{path[:200]}] is not valid" if path else "path cannot be null nor empty"
        )
    return parts


def _member(holder: Any, part: str, path: str) -> Any:
    if isinstance(holder, dict):
        if part not in holder:
            raise illegal_argument(f"field [{part}] not present as part of path [{path}]")
        return holder[part]
    if isinstance(holder, list):
        return holder[_place(holder, part, path)]
    if holder is None:
        raise illegal_argument(f"cannot resolve [{part}] from null as part of path [{path}]")
    kind = type_name(holder)
    raise illegal_argument(f"cannot resolve [{part}] from object of type [{kind}] as part of path [{path}]")


def _place(holder: list[Any], part: str, path: str) -> int:
    if not (part.isdecimal() and len(part) < 10):
        raise illegal_argument(
            f"[{part}] is not an integer, cannot be used as an index as part of path [{path}]"
        )
    place = int(part)
    if place >= len(holder):
        raise illegal_argument(
            f"[{place}] is out of bounds for array with length [{len(holder)}] as part of path [{path}]"
        )
    return place


def _no_parent(doing: str, part: str, holder: Any, path: str) -> SearchError:
    kind = "null" if holder is None else f"object of type [{type_name(holder)}]"
    return illegal_argument(f"cannot {doing} [{part}] with parent {kind} as part of path [{path}]")


# Texts with values of the document: Mustache's variables, `{{field}}` and `{{{field}}}`, and no more of it.

_VARIABLE = re.compile(r"\{\{\{\s*([^{}]{1,500}?)\s*\}\}\}|\{\{&?\s*([^{}]{1,500}?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A text; as the value of a processor it may be anything, with texts in it."""

    text: str

    def render(self, document: IngestDocument) -> str:
        """Errors: illegal_argument_exception where it becomes too long."""
        if "{{" not in self.text:
            return self.text
        pieces, at, length = [], 0, 0
        for found in _VARIABLE.finditer(self.text):
            value = _shown(document.find(found[1] or found[2]))
            pieces += [self.text[at : found.start()], value]
            at = found.end()
            length += len(value)
            if length > _TEXT_MAX:
                raise illegal_argument(f"a template makes more than [{_TEXT_MAX}] characters")
        document.make(length)
        return "".join([*pieces, self.text[at:]])

    @staticmethod
    def filled(value: Any, document: IngestDocument) -> Any:
        """A copy of a value with its texts filled."""
        if isinstance(value, str):
            return Template(value).render(document)
        if isinstance(value, dict):
            return {
                Template(key).render(document): Template.filled(one, document) for key, one in value.items()
            }
        if isinstance(value, list):
            return [Template.filled(one, document) for one in value]
        return value


def plain_text(value: Any) -> str:
    """A value as a template shows it. Errors: illegal_argument_exception where it is too long."""
    text = _shown(value)
    if len(text) > _TEXT_MAX:
        raise illegal_argument(f"a template makes more than [{_TEXT_MAX}] characters")
    return text


def cast_text(value: Any, field: str) -> str:
    """A value that has to be a text. Errors: illegal_argument_exception."""
    if not isinstance(value, str):
        raise not_cast(value, field, "java.lang.String")
    return value


def not_cast(value: Any, field: str, kind: str) -> SearchError:
    """For a value of another type, kind as Elasticsearch names it."""
    return illegal_argument(f"field [{field}] of type [{type_name(value)}] cannot be cast to [{kind}]")


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else str(value)
