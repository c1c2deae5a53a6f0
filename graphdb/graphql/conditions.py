"""The argument `filter` as a condition on one resource, found out by looking at its triples.

It says what `filters.py` says in SPARQL. What it means to compare two values is the engine's to say: each
comparison is put to it, without any data, and its answer kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, Store

from graphdb.graphql.filters import comparison
from graphdb.graphql.model import Field, Model, ObjectType, Path, Reference

__all__ = ["Condition", "condition_of"]

_SHORT_CHARACTERS = 200  # of a value whose comparisons are kept
_ENGINE = Store()


class _State(Protocol):
    def values(self, resource: Any, path: Path) -> Sequence[Any]: ...
    def resources(self, resource: Any, path: Path) -> Sequence[Any]: ...
    def meets(self, condition: "Condition", resource: Any) -> bool: ...


class Condition(Protocol):
    """Whether it holds depends on what is at the end of its paths alone."""

    def holds(self, resource: Any, state: _State) -> bool:
        """Raises what looking at the state raises."""

    def paths(self) -> Iterator[tuple[Path, "Condition | None"]]:
        """Those that start at the resource, and what it demands of the resource at the end."""


def condition_of(model: Model, kind: ObjectType, given: Mapping[str, Any]) -> Condition:
    """The condition of a filter that `Filters` has found to be valid."""
    return _Every([_member(model, kind, name, value) for name, value in given.items()])


def _member(model: Model, kind: ObjectType, name: str, value: Any) -> Condition:
    if name in ("and", "or"):
        parts = [condition_of(model, kind, one) for one in value]
        return _Every(parts) if name == "and" else _Some(parts)
    if name == "not":
        return _Not(condition_of(model, kind, value))
    if name == "id":
        return _Every([_identity(operator, wanted) for operator, wanted in value.items()])
    field = kind.fields[name]
    if isinstance(field.value, Reference):
        return _Leads(field.path, condition_of(model, model.types[field.value.type_name], value))
    return _on_values(field, value)


def _identity(operator: str, wanted: Any) -> Condition:
    iris = frozenset(wanted if operator == "in" else [wanted])
    return _Is(iris, operator != "ne")


def _on_values(field: Field, given: Mapping[str, Any]) -> Condition:
    parts: list[Condition] = []
    operators = dict(given)
    for operator, is_there in (("eq", False), ("ne", True)):
        if operators.get(operator, "") is None:
            del operators[operator]
            parts.append(_Has(field.path) if is_there else _Not(_Has(field.path)))
    if operators or not parts:
        parts.append(_Has(field.path, comparison(field, operators, "?v") if operators else None))
    return _Every(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Every:
    parts: Sequence[Condition]

    def holds(self, resource: Any, state: _State) -> bool:
        return all(one.holds(resource, state) for one in self.parts)

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        for one in self.parts:
            yield from one.paths()


@dataclass(frozen=True, slots=True, eq=False)
class _Some:
    parts: Sequence[Condition]

    def holds(self, resource: Any, state: _State) -> bool:
        return any(one.holds(resource, state) for one in self.parts)

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        for one in self.parts:
            yield from one.paths()


@dataclass(frozen=True, slots=True, eq=False)
class _Not:
    part: Condition

    def holds(self, resource: Any, state: _State) -> bool:
        return not self.part.holds(resource, state)

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        return self.part.paths()


@dataclass(frozen=True, slots=True, eq=False)
class _Is:
    iris: frozenset[str]
    is_wanted: bool

    def holds(self, resource: Any, state: _State) -> bool:
        is_one = isinstance(resource, NamedNode) and resource.value in self.iris
        return is_one is self.is_wanted

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        return iter(())


@dataclass(frozen=True, slots=True, eq=False)
class _Has:
    """A value that meets the comparison, which speaks of `?v`; None: any."""

    path: Path
    comparison: str | None = None

    def holds(self, resource: Any, state: _State) -> bool:
        values = state.values(resource, self.path)
        return bool(values) if self.comparison is None else any(_fits(self.comparison, one) for one in values)

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        yield self.path, None


@dataclass(frozen=True, slots=True, eq=False)
class _Leads:
    """A resource that meets a condition."""

    path: Path
    inner: Condition

    def holds(self, resource: Any, state: _State) -> bool:
        return any(state.meets(self.inner, one) for one in state.resources(resource, self.path))

    def paths(self) -> Iterator[tuple[Path, Condition | None]]:
        yield self.path, self.inner


def _fits(comparison: str, value: Any) -> bool:
    if isinstance(value, Literal) and len(value.value) > _SHORT_CHARACTERS:
        return _compared(comparison, value)
    return _compared_before(comparison, value)


def _compared(comparison: str, value: Any) -> bool:
    # no comparison tells blank nodes apart
    term = "BNODE()" if isinstance(value, BlankNode) else str(value)
    found = _ENGINE.query(f"ASK {{ BIND({term} AS ?v) FILTER({comparison}) }}")
    assert isinstance(found, QueryBoolean)
    return bool(found)


_compared_before = lru_cache(maxsize=16_384)(_compared)
