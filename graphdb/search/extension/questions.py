"""The SPARQL queries of a search's extension, also those that differ with each hit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.planning.complexity import Complexity, measure
from graphdb.planning.gate import read_query
from graphdb.search.extension.template import Template, iri_of, string_of
from graphdb.sparql.algebra import (
    AbstractQuery,
    Algebra,
    Bgp,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Path,
    Project,
    Select,
    Slice,
    Step,
    Union,
    Values,
    spine_of,
)
from graphdb.sparql.lexer import tokens
from graphdb.sparql.patterns import (
    AlternativePath,
    FunctionCall,
    InversePath,
    RepeatedPath,
    SequencePath,
    TriplePattern,
)
from graphdb.sparql.printing import written_query, written_term
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import Iri, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.tree_walk import all_below, rewritten_expression

__all__ = ["Question", "Questions"]

_XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

# Where a placeholder may become a variable: whether one query with the values in front means the same as
# one query for each value.
#
#     { <{id}> :p ?x }                    { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ?iri :p ?x }
#
# It does where every part that has the placeholder is joined with the values, one by one: its solutions are
# then those of each constant, side by side. It does not where a part is evaluated before the join and what
# one value gives hides or changes what another gets (MINUS, OPTIONAL further in, sub-selects, filters of
# inner groups), and not at the end of a path of length zero, as a constant need not be in the graph for
# that but a variable does. Decided by the algebra alone, and narrowly: what is not named here is asked for
# each value.


class _Generalization:
    """Puts variables in the place of a template's placeholders, wherever they may become variables."""

    def __init__(self, template: Template, iri: Variable, string: Variable) -> None:
        self._function = Iri(template.mark)
        literal = string_of(template.mark)
        self._variables: Mapping[Any, Variable] = {self._function: iri, literal: string}

    def query(self, asked: AbstractQuery) -> AbstractQuery | None:
        """None where what follows the pattern depends on all solutions."""
        select = asked.select
        if select.is_grouped or select.order or select.start is not None or select.length is not None:
            return None
        inner = Select(select.where, extends=select.extends).pattern()
        made = replace(select, where=self.outermost(inner), extends=())
        return replace(asked, pattern=made.pattern())

    def outermost(self, node: Algebra) -> Algebra:
        """The outermost group: the values are joined to it before everything else in it."""
        first, steps = spine_of(node)
        made = self._operand(first)
        for step in steps:
            match step:
                case Filter(expression=expression):
                    made = Filter(self._expression(expression), made)
                case Extend(variable=variable, expression=expression):
                    made = Extend(made, variable, self._expression(expression))
                case LeftJoin(right=right):
                    made = replace(step, left=made, right=self._joined(right))
                case Join(right=right):
                    made = Join(made, self._joined(right))
                case _:
                    made = _around(step, made)
        return made

    def _joined(self, node: Algebra) -> Algebra:
        """A group further in: only what it joins."""
        first, steps = spine_of(node)
        made = self._operand(first)
        for step in steps:
            match step:
                case Join(right=right):
                    made = Join(made, self._joined(right))
                case _:
                    made = _around(step, made)
        return made

    def _operand(self, node: Algebra) -> Algebra:
        match node:
            case Bgp(triples=triples):
                return Bgp(tuple(map(self._triple, triples)))
            case Path() if not _has_empty_step(node.predicate):
                return replace(node, subject=self._term(node.subject), object=self._term(node.object))
            case Union(branches=branches):
                return Union(tuple(map(self._joined, branches)))
            case Graph(pattern=pattern):
                return replace(node, pattern=self._joined(pattern))
        return node

    def _triple(self, triple: TriplePattern) -> TriplePattern:
        return TriplePattern(*map(self._term, (triple.subject, triple.predicate, triple.object)))

    def _term(self, term: Any) -> Any:
        if isinstance(term, TripleTerm):
            return TripleTerm(*map(self._term, (term.subject, term.predicate, term.object)))
        return self._variables.get(term, term)

    def _expression(self, expression: Any) -> Any:
        """An expression over solutions that have the values."""

        def change(node: Any) -> Any:
            match node:
                case Iri() | RdfLiteral():
                    return self._variables.get(node, node)
                case FunctionCall(function=Variable()):  # the function itself is not a term
                    return replace(node, function=self._function)
                case Exists(pattern=pattern):
                    return replace(node, pattern=self._joined(pattern))
            return node

        return rewritten_expression(expression, change)


def _has_empty_step(path: Any) -> bool:
    """Whether any step of a path may be taken zero times."""
    match path:
        case RepeatedPath():
            return path.modifier in ("?", "*") or _has_empty_step(path.path)
        case InversePath():
            return _has_empty_step(path.path)
        case SequencePath():
            return any(map(_has_empty_step, path.steps))
        case AlternativePath():
            return any(map(_has_empty_step, path.choices))
        case _:
            return False


# `Questions`: one SPARQL query for many candidates, in place of one for each.
#
# Where the placeholder may become a variable (`varies`), the candidates' values stand in front of the
# pattern:
#
#     SELECT ... ?n WHERE { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ... ?iri ... }
#
# Else the query is copied for each of them, as often as the gate admits in one query:
#
#   SELECT ... ?n WHERE {
#       { { SELECT ... <a> ... } BIND(0 AS ?n) } UNION { { SELECT ... <b> ... } BIND(1 AS ?n) } }

VALUES_MAX = 2_000  # candidates of one query, so that no query keeps a reader long
_TEXT_BYTES = (
    64_000  # of the copies in one query: reading SPARQL takes far longer than evaluating little of it
)

Numbered: TypeAlias = tuple[int, str]
_Row: TypeAlias = tuple[Iri | RdfLiteral, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A query about some candidates. In each row of its answer the column `number` says of which."""

    text: str
    number: str

    def rows(self, answer: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(candidate, binding as in SPARQL's results JSON) of an answer, in its order."""
        for binding in answer["results"]["bindings"]:
            shown = {name: value for name, value in binding.items() if name != self.number}
            yield int(binding[self.number]["value"]), shown


class Questions:
    """Makes the questions of one template."""

    def __init__(self, template: Template, limits: GateLimits) -> None:
        self._template, self._limits = template, limits
        fresh = (f"placeholder{number}" for number in count())
        names = (Variable(name) for name in fresh if name not in template.query.text)
        self._number, self._iri, self._string = next(names), next(names), next(names)
        varied = _Generalization(template, self._iri, self._string).query(template.asked)
        self._varied = None if varied is None or template.has_placeholder(varied) else varied

    @property
    def varies(self) -> bool:
        """Whether all placeholders may become variables."""
        return self._varied is not None

    @property
    def enumerates(self) -> bool:
        """Whether an ASK finds the values by itself, with none in front: one kind of placeholder, which a
        triple pattern binds before anything else has it.
        """
        template = self._template
        if self._varied is None or template.asked.form != "ASK" or template.has_iri == template.has_string:
            return False
        first, steps = spine_of(template.asked.pattern)
        if template.has_placeholder(first):
            return isinstance(first, Bgp | Path)
        for step in steps:
            match step:
                case Filter():
                    continue
                case Join(right=part) | LeftJoin(right=part):
                    pass
                case Extend(expression=part):
                    pass
                case _:
                    return False
            if template.has_placeholder(part):
                return isinstance(step, Join) and isinstance(part, Bgp | Path)
        return False

    def about(self, values: Sequence[str], rows_max: int) -> Iterator[Question]:
        """Questions about all of the values that the template takes; a candidate's number is its place.

        rows_max: an answer has at most one row more.
        """
        taken = [(number, value) for number, value in enumerate(values) if self._template.takes(value)]
        made: Iterator[AbstractQuery]
        varied = self._varied
        if varied is not None:
            made = (self._with_values(varied, rows) for rows in self._chunks_of_rows(varied, taken))
        else:
            made = map(self._with_copies, _chunks(taken, self._copies_max(taken) if taken else 1))
        for asked in made:
            pattern = Slice(asked.pattern, None, rows_max + 1)
            yield Question(written_query(replace(asked, pattern=pattern)), self._number.name)

    def all_values(self, rows_max: int) -> str:
        """A SELECT of one column: every value that the query holds for. Only where it `enumerates`."""
        assert self._varied is not None
        pattern = Project(self._varied.pattern, (self._iri if self._template.has_iri else self._string,))
        asked = replace(self._varied, form="SELECT", pattern=Slice(Distinct(pattern), None, rows_max + 1))
        return written_query(asked)

    # candidates in VALUES

    def _with_values(self, varied: AbstractQuery, rows: Sequence[_Row]) -> AbstractQuery:
        select = varied.select
        variables = [self._number]
        variables += [self._iri] if self._template.has_iri else []
        variables += [self._string] if self._template.has_string else []
        made = replace(
            select,
            where=_behind(Values(tuple(variables), tuple(rows)), select.where),
            variables=(*(select.variables or ()), self._number),
            modifier=Distinct if varied.form == "ASK" else select.modifier,
        )
        return replace(varied, form="SELECT", pattern=made.pattern())

    def _row(self, number: int, value: str) -> _Row:
        iri = iri_of(value) if self._template.has_iri else None
        string = string_of(value) if self._template.has_string else None
        return tuple([term for term in (_integer(number), iri, string) if term is not None])

    def _chunks_of_rows(self, varied: AbstractQuery, taken: Sequence[Numbered]) -> Iterator[Sequence[_Row]]:
        """As many rows at a time as the text may be long."""
        room = self._limits.max_query_bytes - len(written_query(varied).encode()) - 500
        chunk: list[_Row] = []
        size = 0
        for number, value in taken:
            row = self._row(number, value)
            own = sum(len(written_term(term).encode()) + 1 for term in row) + 3
            if chunk and (size + own > room or len(chunk) >= VALUES_MAX):
                yield chunk
                chunk, size = [], 0
            chunk.append(row)
            size += own
        if chunk:
            yield chunk

    # copies for each candidate

    def _with_copies(self, chunk: Sequence[Numbered]) -> AbstractQuery:
        asked = self._template.asked
        copies = tuple([self._copy(number, value) for number, value in chunk])
        columns = asked.select.variables if asked.form == "SELECT" else ()
        pattern = Project(copies[0] if len(copies) == 1 else Union(copies), (*(columns or ()), self._number))
        return replace(asked, form="SELECT", pattern=pattern)

    def _copy(self, number: int, value: str) -> Algebra:
        filled = self._template.filled(value, number)
        if filled.form == "SELECT":
            return Extend(filled.pattern, self._number, _integer(number))
        select = filled.select
        made = replace(
            select,
            extends=(*select.extends, (self._number, _integer(number))),
            order=(),
            variables=(self._number,),
            length=1 if select.length is None else min(select.length, 1),
        )
        return made.pattern()

    def _copies_max(self, taken: Sequence[Numbered]) -> int:
        """How many copies one query may have: each figure of the gate grows by the same with each of them."""
        value = taken[0][1]
        try:
            two, three = (self._figures([(number, value) for number in range(size)]) for size in (2, 3))
        except LimitExceeded:  # two of them are a text that is too long already
            return 1
        longest = max(len(written_term(term).encode()) for _, each in taken for term in self._row(0, each))
        one = written_query(self._with_copies([(len(taken), value)]))
        uses = sum(map(self._template.is_placeholder, all_below(self._template.asked)))
        bounds = [
            min(_TEXT_BYTES, self._limits.max_query_bytes) // (len(one.encode()) + uses * longest),
            self._limits.max_query_tokens // (sum(1 for _ in tokens(load_tables(), one)) + 10) - 1,
            *self._by_figures(two, three),
        ]
        return max(1, min(bounds))

    def _figures(self, copies: Sequence[Numbered]) -> Complexity:
        return measure(read_query(written_query(self._with_copies(copies)), None, self._limits))

    def _by_figures(self, two: Complexity, three: Complexity) -> Iterable[int]:
        for name in Complexity.__slots__:
            figure, step = getattr(two, name), getattr(three, name) - getattr(two, name)
            if step > 0:
                yield 2 + (getattr(self._limits, f"max_{name}") - figure) // step


def _behind(values: Values, pattern: Algebra) -> Algebra:
    """A group that begins with these values."""
    first, steps = spine_of(pattern)
    made: Algebra = values if first == Bgp(()) else Join(values, first)
    for step in steps:
        made = _around(step, made)
    return made


def _around(step: Step, made: Algebra) -> Algebra:
    """A node of a group around something else."""
    if isinstance(step, Filter | Extend):
        return replace(step, pattern=made)
    return replace(step, left=made)


def _integer(number: int) -> RdfLiteral:
    return RdfLiteral(str(number), _XSD_INTEGER, None, None)


def _chunks(taken: Sequence[Numbered], size: int) -> Iterator[Sequence[Numbered]]:
    for start in range(0, len(taken), size):
        yield taken[start : start + size]
