"""The types that GraphQL shows of a graph: what each is called, and what it stands for in RDF.

A `Model` is made once (`modelling.py`) and read by everything else: the schema, the translation to SPARQL,
mutations and subscriptions. It knows nothing of GraphQL's own classes.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from pyoxigraph import BlankNode, Literal, NamedNode

if TYPE_CHECKING:
    import inflect

__all__ = [
    "EnumType",
    "Field",
    "Model",
    "ObjectType",
    "Path",
    "Reference",
    "Scalar",
    "different",
    "enum_value_name",
    "field_name",
    "local_name",
    "plural_of",
    "spelt",
]


class Scalar(Enum):
    """GraphQL's name of what a literal, or an IRI of no known type, is shown as."""

    STRING = "String"
    INT = "Int"
    FLOAT = "Float"
    BOOLEAN = "Boolean"
    DATE_TIME = "DateTime"
    DATE = "Date"
    TIME = "Time"
    ID = "ID"  # a resource of which nothing is known but its IRI


@dataclass(frozen=True, slots=True)
class EnumType:
    """One of a few terms (`sh:in`); values: by GraphQL's name, in the order of the shape."""

    name: str
    values: Mapping[str, NamedNode | Literal]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A resource that has a type of the model; type_name is that of an `ObjectType`."""

    type_name: str


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """How a value is reached: along a property from the subject, or against it."""

    iri: str
    inverse: bool = False

    @property
    def predicate(self) -> NamedNode:
        return NamedNode(self.iri)


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a type. datatype is what an input's literals get; None where there is no word on it."""

    name: str
    path: Path
    value: Scalar | EnumType | Reference
    is_list: bool
    is_required: bool
    datatype: NamedNode | None = None
    takes_language: bool = False  # literals may have a language tag: argument `lang`
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A class of resources. class_iri None: known by a shape only, reached through fields alone.

    fields do not hold `id`, which every type has; those of the classes above are among them. subtypes: names
    of all types below it, at any depth. A type that has some is an interface, with those fields that all
    below it have alike, and what is of its class alone is shown as concrete_name (else the same as name).
    """

    name: str
    concrete_name: str
    class_iri: NamedNode | None
    shape: NamedNode | BlankNode | None  # what inputs are validated against
    singular: str  # root field that is a list, with `id` of at most one
    collection: str  # root field that is a connection
    fields: Mapping[str, Field]
    interfaces: tuple[str, ...] = ()  # above it, nearest first, at any depth
    subtypes: tuple[str, ...] = ()
    interface_fields: Mapping[str, Field] = field(default_factory=dict)
    description: str | None = None

    @property
    def is_interface(self) -> bool:
        return bool(self.subtypes)

    @property
    def is_root(self) -> bool:
        """Whether it can be asked for by itself, created and watched."""
        return self.class_iri is not None


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that GraphQL shows. types and enums are by name, in the order of their names."""

    types: Mapping[str, ObjectType]
    enums: Mapping[str, EnumType] = field(default_factory=dict)

    def below(self, name: str) -> tuple[ObjectType, ...]:
        """A type and all below it."""
        found = self.types[name]
        return (found, *(self.types[one] for one in found.subtypes))


_UNSPELLABLE = re.compile(r"[^_0-9A-Za-z]")
_NO_VALUES = ("true", "false", "null")  # GraphQL section 3.9: an enum has no such value
_T = TypeVar("_T")


def local_name(iri: str) -> str:
    """What stands behind the last "#", "/" or ":"; the whole IRI where nothing does."""
    return re.split(r"[#/:]", iri.rstrip("#/:"))[-1] or iri


def spelt(name: str) -> str:
    """The name with what GraphQL cannot spell as "_" (section 2.1.9), and accents left out.

    Two underscores at the beginning are GraphQL's own: one of them goes.
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    plain = _UNSPELLABLE.sub("_", plain)
    plain = re.sub(r"^_+", "_", plain)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


def field_name(name: str) -> str:
    """`id` is every type's own: a property of this name is `id_`."""
    found = spelt(name)
    return "id_" if found == "id" else found


def enum_value_name(term: NamedNode | Literal) -> str:
    """Upper case, as the interface says."""
    found = spelt(local_name(term.value) if isinstance(term, NamedNode) else term.value).upper()
    return f"{found}_" if found.lower() in _NO_VALUES else found


def plural_of(name: str) -> str:
    """The English plural, in lower case; a name that is its own plural gets "list" behind it."""
    lower = name.lower()
    plural = str(_engine().plural_noun(lower) or lower)
    return plural if plural != lower else f"{lower}list"


def different(
    things: Iterable[_T], name_of: Callable[[_T], str], order: Callable[[_T], str], taken: Iterable[str] = ()
) -> dict[_T, str]:
    """A name for each, none twice: the first by `order` has the plain name, others `_2`, `_3` behind it."""
    used, found = set(taken), {}
    for thing in sorted(things, key=order):
        plain = name = name_of(thing)
        number = 1
        while name in used:
            number += 1
            name = f"{plain}_{number}"
        used.add(name)
        found[thing] = name
    return found


@lru_cache(maxsize=1)
def _engine() -> "inflect.engine":
    import inflect  # seconds, which the start of a node need not take

    engine = inflect.engine()
    engine.classical(persons=True)
    return engine
