"""What the argument `filter` says, as a condition in SPARQL.

A member says that the resource has some value there that meets all operators at once; `eq: null` says that it
has none, `ne: null` that it has some. `and`, `or` and `not` join conditions; what stands side by side must
all hold. A condition is made of EXISTS alone, so it is true or false and never an error.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from pyoxigraph import QuerySolutions, Store

from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import EnumType, Field, Model, ObjectType, Path, Reference, Scalar
from graphdb.graphql.orders import zoned
from graphdb.graphql.scalars import DATATYPES, TIMES
from graphdb.graphql.terms import iri_text, is_iri, string_text, written
from graphdb.shacl.vocabulary import XSD

__all__ = ["Filters", "comparison", "step"]

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
