"""Mutations: the values that they give, and the edits that they become."""

import hashlib
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from graphql import ExecutionResult, FieldNode, GraphQLError, OperationType
from pyoxigraph import Literal, NamedNode

from graphdb.errors import EditRefused
from graphdb.graphql.demand import Demand, Level
from graphdb.graphql.edits import EditKind, Edits, EditTerm, ResourceEdit
from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import EnumType, Field, ObjectType, Reference, Scalar
from graphdb.graphql.planning import Operation, Plan
from graphdb.graphql.scalars import DATATYPES, TIMES, is_iri
from graphdb.graphql.schema import RootKind
from graphdb.graphql.selection import RootEntry, Selector
from graphdb.graphql.translation import translate
from graphdb.shacl.shacl_names import XSD

__all__ = ["Mutation", "UnfitInput", "read_mutation", "resource", "terms_of"]

# Values of a mutation's input, to terms of RDF.

_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_LEAST: Mapping[str, int] = {
    **{name: -(2 ** (bits - 1)) for name, bits in _BITS.items()},
    "nonNegativeInteger": 0,
    "positiveInteger": 1,
    **{f"unsigned{name.capitalize()}": 0 for name in _BITS},
}
_MOST: Mapping[str, int] = {
    **{name: 2 ** (bits - 1) - 1 for name, bits in _BITS.items()},
    "nonPositiveInteger": 0,
    "negativeInteger": -1,
    **{f"unsigned{name.capitalize()}": 2**bits - 1 for name, bits in _BITS.items()},
}


class UnfitInput(Exception):
    """A value that GraphQL's type allows, but that is none of the field's values in RDF."""


def resource(given: Any, what: str) -> NamedNode:
    """An IRI. Raises UnfitInput, which says what is none."""
    text = str(given)
    try:
        if is_iri(text):
            return NamedNode(text)
    except ValueError:
        pass
    raise UnfitInput(f"`{what}` must be an absolute IRI, not {text[:200]!r}.")


def terms_of(field: Field, given: Any) -> tuple[EditTerm, ...]:
    """The values of a field, coerced by graphql-core; None is no value. Raises UnfitInput."""
    values = [] if given is None else given if isinstance(given, list) else [given]
    return tuple(dict.fromkeys(_term(field, one) for one in values))


def _term(field: Field, given: Any) -> EditTerm:
    if isinstance(field.value, EnumType):
        return field.value.values[given]
    if isinstance(field.value, Reference) or field.value is Scalar.ID:
        return resource(given, field.name)
    if field.takes_language:
        return _text(field, given)
    datatype = field.datatype.value if field.datatype is not None else DATATYPES[field.value]
    text = _TEXTS.get(field.value, _plain)(given, datatype.removeprefix(XSD))
    if text is None:
        raise UnfitInput(f"`{field.name}`: {str(given)[:200]!r} is no value of <{datatype}>.")
    return Literal(text, datatype=NamedNode(datatype))


def _text(field: Field, given: Any) -> Literal:
    if isinstance(given, str):
        return Literal(given)
    if given.get("lang") is None:
        return Literal(given["value"])
    try:
        return Literal(given["value"], language=given["lang"])
    except ValueError:
        raise UnfitInput(f"`{field.name}`: {given['lang'][:200]!r} is no language tag.") from None


def _plain(given: Any, _datatype: str) -> str | None:
    return str(given)


def _integer(given: Any, datatype: str) -> str | None:
    fits = _LEAST.get(datatype, given) <= given <= _MOST.get(datatype, given)
    return str(int(given)) if fits else None


def _float(given: Any, datatype: str) -> str | None:
    return format(Decimal(repr(given)), "f") if datatype == "decimal" else repr(float(given))


def _boolean(given: Any, _datatype: str) -> str | None:
    return "true" if given else "false"


def _time(given: Any, datatype: str) -> str | None:
    """A text in the scalar's form; here the calendar (XML Schema part 2, section 3.3.7) has its say."""
    date, _, clock = given.rpartition("T")
    if datatype == "date":
        date, clock = given, ""
    if clock.startswith("24") and clock[2:].rstrip("Z").split("+")[0].split("-")[0].strip(":0."):
        return None
    if datatype == "dateTimeStamp" and not (clock.endswith("Z") or "+" in clock or "-" in clock):
        return None
    if not date:
        return str(given)
    year, month, day = date.lstrip("-").split("-")[:3]
    days = monthrange(2000 + int(year[-4:]) % 400, int(month))[1]
    return str(given) if int(day[:2]) <= days else None


_TEXTS: Mapping[Scalar, Callable[[Any, str], str | None]] = {
    Scalar.INT: _integer,
    Scalar.FLOAT: _float,
    Scalar.BOOLEAN: _boolean,
    **dict.fromkeys(TIMES, _time),
}


# The way of a mutation: an operation becomes `Edits`, and SPARQL queries for what it shows, then an answer.
#
# Pure: whoever serves has the edits stored, runs the queries on the state behind them, and hands on the
# rows.

_KINDS = {
    RootKind.CREATE: EditKind.CREATE,
    RootKind.UPDATE: EditKind.UPDATE,
    RootKind.DELETE: EditKind.DELETE,
}
_VALUES_MAX = 10_000  # in all inputs of a request
_BRANCHES_MAX = 40  # of one query; the gate of SPARQL takes a hundred


@dataclass(frozen=True)
class Mutation:
    """edits: to be stored before the queries are asked; keys: of the field in the answer, for each of them.

    queries: SPARQL, whose answers as tab-separated values `answer` takes. An operation that asks for nothing
    but its `__typename` has neither.
    """

    edits: Edits
    keys: Sequence[str]
    nodes: Sequence[FieldNode]
    queries: Sequence[str]
    plan: Plan

    def answer(self, answers: Sequence[bytes]) -> ExecutionResult:
        """What is shown of the resources, in the order of the fields."""
        pieces = [one if number == 0 else one.partition(b"\n")[2] for number, one in enumerate(answers)]
        return self.plan.answer(pieces)

    def errors(self, refused: EditRefused) -> list[GraphQLError]:
        """Why nothing was stored."""
        return [self._error(**problem) for problem in refused.refusals]

    def _error(
        self, edit: int | None, code: str, message: str, details: Mapping[str, Any] | None = None
    ) -> GraphQLError:
        if edit is None:
            return failure(code, message, None, None, details)
        return failure(code, message, self.nodes[edit], [self.keys[edit]], details)


def read_mutation(operation: Operation, base_iri: str, seed: bytes, *, by_shapes: bool) -> Mutation:
    """What an operation of type mutation wants. Raises Refused.

    New resources are named below base_iri; the names are made of the seed: of the same one the same.
    by_shapes: see `Edits`.
    """
    assert operation.type is OperationType.MUTATION
    demand = Demand()
    selector = operation.selector(demand)
    reader = _Reader(operation, selector, base_iri, seed)
    try:
        roots = [reader.read(one) for one in selector.roots(operation.definition)]
        queries = list(_queries(operation, demand))
    except RecursionError:
        raise Refused([failure(COMPLEXITY_EXCEEDED, "A filter is nested too deeply.")]) from None
    return Mutation(
        Edits(tuple(reader.edits), by_shapes),
        reader.keys,
        reader.nodes,
        queries,
        Plan(operation, demand, roots, None),
    )


class _Reader:
    """Of the root fields, one after the other."""

    def __init__(self, operation: Operation, selector: Selector, base_iri: str, seed: bytes) -> None:
        self._model, self._selector = operation.schema.model, selector
        self._base_iri, self._seed = base_iri.rstrip("/"), seed
        self._values = 0
        self.edits: list[ResourceEdit] = []
        self.keys: list[str] = []
        self.nodes: list[FieldNode] = []

    def read(self, entry: RootEntry) -> RootEntry:
        """The field, with what it shows; its edit is added. Raises Refused."""
        if entry.root is None:
            return entry
        node, kind = entry.nodes[0], entry.root.type
        assert kind is not None
        try:
            edit = self._edit(_KINDS[entry.root.kind], kind, entry.arguments)
        except UnfitInput as error:
            raise Refused([failure(VALIDATION_FAILED, str(error), node, [entry.key])]) from None
        if self._values > _VALUES_MAX:
            message = f"The inputs hold more than {_VALUES_MAX} values."
            raise Refused([failure(COMPLEXITY_EXCEEDED, message, node, [entry.key])])
        self.edits.append(edit)
        self.keys.append(entry.key)
        self.nodes.append(node)
        if edit.kind is EditKind.DELETE:
            return replace(entry, shown=self._selector.deletion(entry.nodes))
        graph = edit.graph.value if edit.graph is not None else None
        return replace(entry, shown=self._selector.resource(kind, edit.subject.value, graph, entry.nodes))

    def _edit(self, what: EditKind, kind: ObjectType, arguments: Mapping[str, Any]) -> ResourceEdit:
        """Raises UnfitInput."""
        graph = arguments.get("graph")
        named = None if graph is None else resource(graph, "graph")
        since = arguments.get("ifSnapshot")
        classes = tuple(one.class_iri for one in self._model.below(kind.name) if one.class_iri is not None)
        if what is EditKind.DELETE:
            return ResourceEdit(what, resource(arguments["id"], "id"), named, classes, {}, since)
        given = self._input(arguments)
        values = self._terms(kind, given, is_new=what is EditKind.CREATE)
        if what is EditKind.CREATE:
            assert kind.class_iri is not None
            subject, classes = self._new_subject(kind, given), (kind.class_iri,)
        else:
            subject = resource(given["id"], "id")
        return ResourceEdit(what, subject, named, classes, values, since)

    def _input(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        given = [arguments[one] for one in ("input", "data") if arguments.get(one) is not None]
        if len(given) != 1:
            raise UnfitInput("Exactly one of `input` and `data` must be given.")
        found: Mapping[str, Any] = given[0]
        return found

    def _terms(
        self, kind: ObjectType, given: Mapping[str, Any], *, is_new: bool
    ) -> dict[NamedNode, tuple[EditTerm, ...]]:
        found: dict[NamedNode, tuple[EditTerm, ...]] = {}
        for name, value in given.items():
            if name == "id":
                continue
            if isinstance(value, list):
                self._values += len(value)
                if self._values > _VALUES_MAX:
                    return {}
            field = kind.fields[name]
            terms = terms_of(field, value)
            if terms or not is_new:
                found[field.path.predicate] = terms
        return found

    def _new_subject(self, kind: ObjectType, given: Mapping[str, Any]) -> NamedNode:
        if given.get("id") is not None:
            return resource(given["id"], "id")
        number = len(self.edits).to_bytes(4, "big")
        random = hashlib.sha256(self._seed + number).digest()[:16]
        return resource(f"{self._base_iri}/{kind.name}/{UUID(bytes=random, version=4)}", "graphql.base_iri")


def _queries(operation: Operation, demand: Demand) -> Iterator[str]:
    """Of all resources together, or of some at a time where they are many."""
    model, rows_max = operation.schema.model, operation.limits.max_rows
    for part in _parts(demand):
        query = translate(model, part, rows_max)
        assert query is not None
        yield query


def _parts(demand: Demand) -> Iterator[Demand]:
    part = Demand()
    for key, level in demand.roots.items():
        size = _branches(level)
        if part.roots and part.branches + size > _BRANCHES_MAX:
            yield part
            part = Demand()
        part.roots[key] = level
        part.branches += size
    if part.roots:
        yield part


def _branches(level: Level) -> int:
    return 1 + len(level.values) + sum(_branches(below) for _, below in level.below.values())
