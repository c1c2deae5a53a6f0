"""The record projection: a resource of the graph as a flat record of JSON."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode, Quad

__all__ = ["RDF_TYPE", "Record", "Star", "local_name", "resource_id", "value_of"]

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_LOCAL = re.compile(r"[^#/:]+\Z")
_OWN = {"id", "type"}  # names that no property but rdf:type gets

Record: TypeAlias = dict[str, Any]


def local_name(iri: str) -> str:
    """What stands after the last `#`, `/` or `:`; the whole where nothing does."""
    found = _LOCAL.search(iri)
    return iri if found is None else found[0]


def resource_id(node: Any) -> str:
    """The IRI, `_:label`, or a triple term as N-Triples has it."""
    if isinstance(node, NamedNode):
        return node.value
    return str(node)


def value_of(term: Any) -> Any:
    """A term as JSON: numbers and booleans by their datatype, all else as text.

    What JSON cannot hold exactly (integers beyond 64 bits, NaN, infinity) stays as it is written.
    """
    if not isinstance(term, Literal):
        return resource_id(term)
    read = _READERS.get(term.datatype.value.removeprefix(_XSD))
    if read is None:
        return term.value
    try:
        return read(term.value)
    except ValueError:
        return term.value


def _integer(text: str) -> int:
    number = int(text[:30])
    if len(text) > 30 or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_READERS: Mapping[str, Callable[[str], Any]] = {
    "integer": _integer,
    **dict.fromkeys(("decimal", "double", "float"), _number),
    "boolean": lambda text: {"true": True, "1": True, "false": False, "0": False}.get(text, text),
}


def _order(value: Any) -> tuple[str, Any]:
    kind = "n" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    return kind, value


def _identity(value: Any) -> tuple[bool, Any]:
    """Equal for what is the same in JSON: true is not 1, while 1 and 1.0 are one number."""
    return isinstance(value, bool), value


@dataclass(frozen=True, slots=True)
class Star:
    """What the graph says of one resource: by property its values, each once, in a fixed order."""

    id: str
    values: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, resource: Any, quads: Iterable[Quad]) -> "Star":
        """quads: all whose subject it is."""
        found: dict[str, dict[tuple[bool, Any], Any]] = {}
        for quad in quads:
            value, values = value_of(quad.object), found.setdefault(quad.predicate.value, {})
            if isinstance(value, int) or _identity(value) not in values:
                values[_identity(value)] = value
        return cls(
            resource_id(resource),
            {iri: sorted(values.values(), key=_order) for iri, values in sorted(found.items())},
        )

    @property
    def classes(self) -> Sequence[str]:
        """The IRIs of its classes (or what stands in their place)."""
        return self.values.get(RDF_TYPE, ())

    def named(self, name: str) -> Sequence[Any]:
        """The values of the member that a statement means by a local name."""
        if name == "id":
            return (self.id,)
        if name == "type":
            return self.classes
        found = [values for iri, values in self.values.items() if iri != RDF_TYPE and local_name(iri) == name]
        if len(found) == 1:
            return found[0]
        return [value for values in found for value in values]

    def record(self) -> Record:
        """`id`, then a member for each property: its local name, or its whole IRI where two have the same."""
        names = {iri: "type" if iri == RDF_TYPE else local_name(iri) for iri in self.values}
        taken: dict[str, int] = {}
        for name in names.values():
            taken[name] = taken.get(name, 0) + 1
        record: Record = {"id": self.id}
        for iri, values in self.values.items():
            name = names[iri]
            is_free = iri == RDF_TYPE or (name not in _OWN and taken[name] == 1)
            record[name if is_free else iri] = values[0] if len(values) == 1 else list(values)
        return record
