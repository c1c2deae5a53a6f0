"""Filters: as SPARQL, and as conditions that a change is compared with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Protocol

from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, QuerySolutions, Store

from graphdb.graphql.cursors import zoned
from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import EnumType, Field, Model, ObjectType, Path, Reference, Scalar
from graphdb.graphql.scalars import DATATYPES, TIMES, iri_text, is_iri, string_text, written
from graphdb.shacl.shacl_names import XSD

__all__ = ["Condition", "Filters", "comparison", "condition_of", "step"]

# What the argument `filter` says, as a condition in SPARQL.
#
# A member says that the resource has some value there that meets all operators at once; `eq: null` says
# that it has none, `ne: null` that it has some. `and`, `or` and `not` join conditions; what stands side by
# side must all hold. A condition is made of EXISTS alone, so it is true or false and never an error.

_SIGNS = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_ON_TEXTS = {"contains": "CONTAINS", "startsWith": "STRSTARTS", "regex": "REGEX"}


class Filters:
    """Makes conditions for one query; variables of its own are `?f1`, `?f2` and so on."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._numbers = count(1)

    def condition(self, kind: ObjectType, given: Mapping[str, Any], subject: str) -> str:
        """A condition on subject, a variable or an IRI in brackets. Raises Refused with VALIDATION_FAILED."""
        return _both([self._member(kind, name, value, subject) for name, value in given.items()])

    def anchors(self, kind: ObjectType, given: Mapping[str, Any] | None, subject: str) -> list[str]:
        """Patterns that a condition implies and an index answers: the engine starts from them."""
        found: list[str] = []
        for name, value in (given or {}).items():
            field = kind.fields.get(name)
            if field is None or not isinstance(value, dict):
                continue
            if isinstance(field.value, Reference):
                value = value.get("id")
            wanted = value.get("eq") if isinstance(value, dict) else None
            if wanted is not None and (term := _term(field, wanted)):
                found.append(step(subject, field.path, term))
        return found

    def _member(self, kind: ObjectType, name: str, value: Any, subject: str) -> str:
        if value is None:
            raise _refused(
                f"`{name}: null` in a filter means nothing; `eq: null` means that there is no value."
            )
        if name in ("and", "or"):
            parts = [self.condition(kind, one, subject) for one in value]
            return _both(parts) if name == "and" else _either(parts)
        if name == "not":
            return f"!({self.condition(kind, value, subject)})"
        if name == "id":
            return _both(list(_on_resources(value, subject)))
        return self._on_field(kind.fields[name], value, subject)

    def _on_field(self, field: Field, given: Mapping[str, Any], subject: str) -> str:
        variable = f"?f{next(self._numbers)}"
        some = step(subject, field.path, variable)
        if isinstance(field.value, Reference):
            inner = self.condition(self._model.types[field.value.type_name], given, variable)
            return f"EXISTS {{ {some} FILTER({_RESOURCE.format(variable)} && {inner}) }}"
        conditions: list[str] = []
        operators = dict(given)
        if operators.get("eq", "") is None:
            del operators["eq"]
            conditions.append(f"NOT EXISTS {{ {some} }}")
        if operators.get("ne", "") is None:
            del operators["ne"]
            conditions.append(f"EXISTS {{ {some} }}")
        if operators or not conditions:
            conditions.append(f"EXISTS {{ {some} FILTER({comparison(field, operators, variable)}) }}")
        return _both(conditions)


_RESOURCE = "(isIRI({0}) || isBlank({0}))"


def step(subject: str, path: Path, object_: str) -> str:
    """A triple pattern."""
    ends = (object_, subject) if path.inverse else (subject, object_)
    return f"{ends[0]} {iri_text(path.iri)} {ends[1]} ."


def comparison(field: Field, operators: Mapping[str, Any], variable: str) -> str:
    """What one value has to meet: all operators. Raises Refused with VALIDATION_FAILED."""
    return _both([_compare(field, one, value, variable) for one, value in operators.items()])


def _compare(field: Field, operator: str, value: Any, variable: str) -> str:
    if value is None:
        raise _refused(f"`{operator}: null` in a filter means nothing.")
    if field.value is Scalar.ID:
        return _both(list(_on_resources({operator: value}, variable)))
    if isinstance(field.value, EnumType):
        values = field.value.values
        made = [str(values[one]) for one in (value if operator == "in" else [value])]
        return _matches(operator, variable, made)
    assert isinstance(field.value, Scalar)
    if operator in _ON_TEXTS:
        if operator == "regex" and not _is_regex(value):
            raise _refused(f"`regex` is no regular expression: {value!r}.")
        return f"{_ON_TEXTS[operator]}(STR({variable}), {string_text(value)})"
    made = [_operand(field.value, one) for one in (value if operator == "in" else [value])]
    return _matches(operator, _compared(field, variable), made)


def _matches(operator: str, left: str, right: list[str]) -> str:
    if operator == "in":
        return _either([f"{left} = {one}" for one in right])
    return f"{left} {_SIGNS[operator]} {right[0]}"


def _compared(field: Field, variable: str) -> str:
    assert isinstance(field.value, Scalar)
    if field.value in TIMES:
        return zoned(field.value, variable)
    is_text = field.value is Scalar.STRING and not _is_plain(field)
    return f"STR({variable})" if is_text else variable


def _is_plain(field: Field) -> bool:
    """Whether the values are plain strings, in no language."""
    return field.datatype is not None and field.datatype.value == DATATYPES[Scalar.STRING]


def _operand(scalar: Scalar, value: Any) -> str:
    if scalar in TIMES and not (value.endswith("Z") or (value[-6] in "+-" and value[-3] == ":")):
        value = f"{value}Z"
    return written(value, scalar)


def _on_resources(given: Mapping[str, Any], subject: str) -> Iterator[str]:
    for operator, value in given.items():
        if value is None:
            raise _refused(f"`{operator}: null` means nothing of an id.")
        terms = [iri_text(one) for one in (value if operator == "in" else [value]) if is_iri(one)]
        alike = _either([f"sameTerm({subject}, {one})" for one in terms])
        yield f"!({alike})" if operator == "ne" else alike


def _term(field: Field, value: Any) -> str | None:
    """The only term that equals a value; None where there may be others."""
    if isinstance(field.value, EnumType):
        term = field.value.values.get(value)
        return None if term is None or (str(term)[0] == '"' and XSD in str(term)) else str(term)
    if isinstance(field.value, Reference) or field.value is Scalar.ID:
        return iri_text(value) if is_iri(value) else None
    return string_text(value) if field.value is Scalar.STRING and _is_plain(field) else None


def _is_regex(pattern: str) -> bool:
    found = Store().query(f'SELECT (REGEX("", {string_text(pattern)}) AS ?matches) {{}}')
    assert isinstance(found, QuerySolutions)
    return next(found)["matches"] is not None


def _both(conditions: list[str]) -> str:
    return f"({' && '.join(conditions)})" if conditions else "true"


def _either(conditions: list[str]) -> str:
    return f"({' || '.join(conditions)})" if conditions else "false"


def _refused(message: str) -> Refused:
    return Refused([failure(VALIDATION_FAILED, message)])


# The argument `filter` as a condition on one resource, found out by looking at its triples.
#
# It says what `filters.py` says in SPARQL. What it means to compare two values is the engine's to say: each
# comparison is put to it, without any data, and its answer kept.

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
        return _compared_values(comparison, value)
    return _compared_before(comparison, value)


def _compared_values(comparison: str, value: Any) -> bool:
    # no comparison tells blank nodes apart
    term = "BNODE()" if isinstance(value, BlankNode) else str(value)
    found = _ENGINE.query(f"ASK {{ BIND({term} AS ?v) FILTER({comparison}) }}")
    assert isinstance(found, QueryBoolean)
    return bool(found)


_compared_before = lru_cache(maxsize=16_384)(_compared_values)
