"""The SPARQL queries of a search's extension, also those that differ with each hit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.planning.complexity import Complexity, measure
from graphdb.planning.gate import read_query
from graphdb.search.extension.template import Slot, Template, value_as_iri, value_as_string
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    Bind,
    Exists,
    Filter,
    FunctionCall,
    GraphPattern,
    GroupGraphPattern,
    InversePath,
    OptionalPattern,
    RepeatedPath,
    SequencePath,
    SolutionModifiers,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.terms import Iri, RdfLiteral, Span, TripleTerm
from graphdb.sparql.tree_walk import parts_of

__all__ = ["Question", "Questions", "enumerates", "varies"]

# Where a placeholder may become a variable: whether one query with the values in front means the same as
# one query for each value.
#
#     { <{id}> :p ?x }                    { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ?iri :p ?x }
#
# It does where every part that has the placeholder is joined with the values, one by one: its solutions are
# then those of each constant, side by side. It does not where a part is evaluated before the join and what
# one value gives hides or changes what another gets (MINUS, OPTIONAL further in, sub-selects, filters of
# inner groups), and not at the end of a path of length zero, as a constant need not be in the graph for
# that but a variable does. Decided by the tree alone, and narrowly: what is not named here is asked for
# each value.


def varies(template: Template) -> bool:
    """Whether all placeholders may become variables."""
    query = template.query
    if query.where is None or query.values is not None or query.modifiers != SolutionModifiers():
        return False
    if query.select is not None and _has_aggregate(query.select):
        return False
    places = _Places()
    places.top(query.where)
    if query.select is not None:
        for projection in query.select.projections or ():
            places.expression(projection.expression, exists=False)
    return all(slot.span in places.free for slot in template.slots)


def enumerates(template: Template) -> bool:
    """Whether such a query finds the values by itself, with none in front: one kind of placeholder, which a
    triple pattern binds before anything else has it.
    """
    if len({slot.is_iri for slot in template.slots}) != 1 or template.query.where is None:
        return False
    spans = {slot.span for slot in template.slots}
    for element in template.query.where.elements:
        if isinstance(element, Filter) or not _holds(element, spans):
            continue
        places = _Places()
        if isinstance(element, TriplesBlock):
            places.triples(element)
        return any(span in places.free for span in spans)
    return False


class _Places:
    """Collects the spans of the terms that may become variables."""

    def __init__(self) -> None:
        self._found: set[Span] = set()
        self._fixed: set[Span] = (
            set()
        )  # a term stands once before several predicates, one of which forbids it

    @property
    def free(self) -> set[Span]:
        return self._found - self._fixed

    def top(self, group: GroupGraphPattern) -> None:
        """The outermost group: the values are joined to it before everything else in it."""
        for element in group.elements:
            if isinstance(element, Filter | Bind):
                self.expression(element.expression, exists=True)
            elif isinstance(element, OptionalPattern):
                self.joined(element.pattern)
            else:
                self._joined_element(element)

    def joined(self, group: GroupGraphPattern) -> None:
        """A group further in: only what it joins."""
        for element in group.elements:
            self._joined_element(element)

    def _joined_element(self, element: Any) -> None:
        match element:
            case TriplesBlock():
                self.triples(element)
            case GroupGraphPattern():
                self.joined(element)
            case UnionPattern():
                for branch in element.branches:
                    self.joined(branch)
            case GraphPattern():
                self.joined(element.pattern)
            case _:
                pass

    def triples(self, block: TriplesBlock) -> None:
        for triple in block.triples:
            self._triple(triple)

    def _triple(self, triple: TriplePattern) -> None:
        into = self._fixed if _may_be_empty(triple.predicate) else self._found
        if isinstance(triple.predicate, Iri):
            self._found.add(triple.predicate.span)
        waiting: list[Any] = [triple.subject, triple.object]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Iri | RdfLiteral):
                into.add(term.span)
            elif isinstance(term, TripleTerm):
                waiting += (term.subject, term.predicate, term.object)

    def expression(self, node: Any, exists: bool) -> None:
        """An expression over solutions that have the values. exists: whether to look into EXISTS."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Iri | RdfLiteral):
                self._found.add(one.span)
            elif isinstance(one, Exists):
                if exists:
                    self.joined(one.pattern)
            elif isinstance(one, FunctionCall):
                waiting.extend(one.arguments)  # the function itself is no term
            elif one is not None:
                waiting.extend(parts_of(one))


def _may_be_empty(path: Any) -> bool:
    """Whether any step of a path may be taken zero times."""
    match path:
        case RepeatedPath():
            return path.modifier in ("?", "*") or _may_be_empty(path.path)
        case InversePath():
            return _may_be_empty(path.path)
        case SequencePath():
            return any(map(_may_be_empty, path.steps))
        case AlternativePath():
            return any(map(_may_be_empty, path.choices))
        case _:
            return False


def _has_aggregate(node: Any) -> bool:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Aggregate):
            return True
        waiting.extend(parts_of(one))
    return False


def _holds(element: Any, spans: Iterable[Span]) -> bool:
    return any(element.span.start <= span.start and span.end <= element.span.end for span in spans)


# `Questions`: one SPARQL query for many candidates, in place of one for each.
#
# Where the placeholder may become a variable (`varying`), the candidates' values stand in front of the
# pattern:
#
#     SELECT ... ?n WHERE { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ... ?iri ... }
#
# Else the query is copied for each of them, as often as the gate admits in one query:
#
#   SELECT * WHERE { { { SELECT ... <a> ... } BIND(0 AS ?n) } UNION { { SELECT ... <b> ... } BIND(1 AS ?n) } }

VALUES_MAX = 2_000  # candidates of one query, so that no query keeps a reader long
_TEXT_BYTES = (
    64_000  # of the copies in one query: reading SPARQL takes far longer than evaluating little of it
)

Numbered = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Question:
    """A query about some candidates. In each row of its answer the column `number` says of which."""

    text: str
    number: str
    added: frozenset[str]  # the columns that are ours

    def rows(self, answer: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(candidate, binding as in SPARQL's results JSON) of an answer, in its order."""
        for binding in answer["results"]["bindings"]:
            shown = {name: value for name, value in binding.items() if name not in self.added}
            yield int(binding[self.number]["value"]), shown


class Questions:
    """Makes the questions of one template."""

    def __init__(self, template: Template, limits: GateLimits) -> None:
        self._template, self._limits = template, limits
        self.varies = varies(template)
        self.enumerates = self.varies and enumerates(template)
        fresh = (f"placeholder{number}" for number in count())
        names = (name for name in fresh if name not in template.text)
        self._number, self._iri, self._string = next(names), next(names), next(names)

    def about(self, values: Sequence[str], rows_max: int) -> Iterator[Question]:
        """Questions about all of the values that the template takes; a candidate's number is its place.

        rows_max: an answer has at most one row more.
        """
        taken = [(number, value) for number, value in enumerate(values) if self._template.takes(value)]
        limit = f"\nLIMIT {rows_max + 1}"
        make, chunks = (
            (self._with_values, self._chunks_of_values(taken))
            if self.varies
            else (self._with_copies, _chunks(taken, self._copies_max(taken) if taken else 1))
        )
        added = frozenset((self._number, self._iri, self._string))
        for chunk in chunks:
            yield Question(make(chunk) + limit, self._number, added)

    def all_values(self, rows_max: int) -> str:
        """A SELECT of one column: every value that the query holds for. Only where it `enumerates`."""
        body = self._body(self._variable)
        name = self._variable(self._template.slots[0])
        return f"{self._head(f'SELECT DISTINCT {name}')}{{ {body}\n}}\nLIMIT {rows_max + 1}"

    def _head(self, select: str) -> str:
        return f"{self._template.head}{select}\n{self._template.dataset}WHERE "

    def _variable(self, slot: Slot) -> str:
        return f"?{self._iri if slot.is_iri else self._string}"

    def _body(self, fill: Any) -> str:
        """What stands between the braces of WHERE."""
        where = self._template.query.where
        assert where is not None
        return self._template.written(fill, Span(where.span.start + 1, where.span.end - 1))

    # candidates in VALUES

    def _with_values(self, chunk: Sequence[Numbered]) -> str:
        select = self._template.query.select
        if select is None:
            columns = f"SELECT DISTINCT ?{self._number}"
        else:
            columns = self._template.written(self._variable, select.span)
            columns += "" if select.projections is None else f" ?{self._number}"
        rows = "\n".join(self._row(number, value) for number, value in chunk)
        values = f"VALUES (?{self._number} ?{self._iri} ?{self._string}) {{\n{rows} }}"
        return f"{self._head(columns)}{{ {values}\n{self._body(self._variable)}\n}}"

    def _row(self, number: int, value: str) -> str:
        """A column that the template does not use is undefined."""
        kinds = {slot.is_iri for slot in self._template.slots}
        iri = value_as_iri(value) if True in kinds else "UNDEF"
        string = value_as_string(value) if False in kinds else "UNDEF"
        return f"({number} {iri} {string})"

    def _chunks_of_values(self, taken: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
        """As many rows at a time as the text may be long."""
        room = self._limits.max_query_bytes - 2 * len(self._template.text.encode()) - 500
        chunk: list[Numbered] = []
        size = 0
        for number, value in taken:
            own = len(self._row(number, value).encode()) + 1
            if chunk and (size + own > room or len(chunk) >= VALUES_MAX):
                yield chunk
                chunk, size = [], 0
            chunk.append((number, value))
            size += own
        if chunk:
            yield chunk

    # copies for each candidate

    def _with_copies(self, chunk: Sequence[Numbered]) -> str:
        branches = "\nUNION\n".join(self._copy(number, value) for number, value in chunk)
        return f"{self._head('SELECT *')}{{\n{branches}\n}}"

    def _copy(self, number: int, value: str) -> str:
        template, query = self._template, self._template.query
        assert query.where is not None
        where = template.filled(value, query.where.span, number)
        rest = template.filled(value, Span(query.where.span.end, len(template.text)), number)
        if query.select is None:
            found = f"SELECT ({number} AS ?{self._number}) WHERE {where}{rest}"
            if query.modifiers.limit is None and query.values is None:
                return f"{{ {found}\nLIMIT 1\n}}"
            return f"{{ SELECT DISTINCT ?{self._number} WHERE {{ {{ {found}\n}} }} }}"  # one row will do
        columns = template.filled(value, query.select.span, number)
        return f"{{ {{ {columns} WHERE {where}{rest}\n}} BIND({number} AS ?{self._number}) }}"

    def _copies_max(self, taken: Sequence[Numbered]) -> int:
        """How many copies one query may have: each figure of the gate grows by the same with each of them."""
        value = taken[0][1]
        try:
            two, three = (self._figures([(number, value) for number in range(size)]) for size in (2, 3))
        except LimitExceeded:  # two of them are a text that is too long already
            return 1
        longest = max(len(self._copy(number, value).encode()) for number, value in taken)
        tokens = self._template.size + 40
        bounds = [
            min(_TEXT_BYTES, self._limits.max_query_bytes) // (longest + 10),
            self._limits.max_query_tokens // tokens - 1,
            *self._by_figures(two, three),
        ]
        return max(1, min(bounds))

    def _figures(self, copies: Sequence[Numbered]) -> Complexity:
        return measure(read_query(self._with_copies(copies), None, self._limits))

    def _by_figures(self, two: Complexity, three: Complexity) -> Iterable[int]:
        for name in Complexity.__slots__:
            figure, step = getattr(two, name), getattr(three, name) - getattr(two, name)
            if step > 0:
                yield 2 + (getattr(self._limits, f"max_{name}") - figure) // step


def _chunks(taken: Sequence[Numbered], size: int) -> Iterator[Sequence[Numbered]]:
    for start in range(0, len(taken), size):
        yield taken[start : start + size]
