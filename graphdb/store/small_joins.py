"""Small joins: patterns that may be evaluated at once, found by joining them, up to a budget.

The algebra alone cannot tell: `<s> :knows ?x . ?x :name ?n` is three rows or a million. So the join is walked
over the store's indexes, in the order in which the engine would take it, until it is done or has looked at
too many entries.

The engine joins triple patterns by looking up one for each solution of those before it (sparopt's
`reorder_joins`). It does not where they share no variable that is bound for sure, or where an OPTIONAL has
several patterns: these it evaluates apart, whole. And it orders only what it joins directly, so a BIND before
a pattern, or a filter within GRAPH beside others, can have it evaluate anything whole.

What is computed for each solution counts too, and so does the length of what it is computed from: else a few
long texts and a few hundred calls would be seconds.

Where a filter on geometries can be looked up in the store's spatial index, the engine is given the few values
that this finds as VALUES, and joins them as it joins patterns. What a search found comes first.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import prod
from typing import Any, cast

from pyoxigraph import Literal, NamedNode, QueryResultsFormat, QuerySolutions, Triple, parse_query_results

from graphdb.geo.entailment import is_derived
from graphdb.geo.function_calls import CallCosts, are_loaded, vertices_of
from graphdb.geo.lookups import Lookup
from graphdb.planning.bounded_expressions import are_bounded, cost_of
from graphdb.planning.decisions import is_index_scan
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.algebra import (
    EMPTY,
    AbstractQuery,
    Algebra,
    Bgp,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Path,
    Select,
    TextSearch,
    spine_of,
)
from graphdb.sparql.patterns import SequencePath
from graphdb.sparql.printing import literal_of
from graphdb.sparql.search_requests import LiteralSearch
from graphdb.sparql.search_requests import Part as SearchPart
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.translation import abstract_query
from graphdb.store.join_walk import (
    Choice,
    Found,
    OverBudget,
    Part,
    Pattern,
    Walk,
    after_searches,
    connected_parts,
    in_engine_order,
)
from graphdb.store.quad_store import QuadStore, Term
from graphdb.store.search_tables import Table

__all__ = [
    "ENTRIES_AT_ONCE",
    "LargePatterns",
    "SearchedStar",
    "SmallJoin",
    "is_one_scan",
    "small_join",
    "written",
]

ENTRIES_AT_ONCE = 128  # of a join on the event loop, which looking at them may block for a millisecond
_PATTERNS_AT_ONCE = 8  # of a query: the engine plans so many in well under a millisecond
_CHARACTERS_AN_ENTRY = 512  # of an object; a longer one counts as several entries
_GEOMETRY_CHARACTERS_AN_ENTRY = 64  # where objects may be read as geometries
_A_SOLUTION, _A_KEY = 1, 2  # of a query, in operators: each solution, and each variable that it is grouped by
_LARGE_MAX = 1024  # patterns that are remembered as large
_COMPUTED_AN_ENTRY = 16  # calls, operators and operands that take as long as looking at an entry


@dataclass(slots=True)
class _Group:
    """What there is in a group."""

    required: list[Pattern] = field(default_factory=list)
    searches: list[TextSearch] = field(default_factory=list)
    optional: list[Pattern] = field(default_factory=list)
    computed: int = 0  # what its expressions cost
    calls: CallCosts = field(default_factory=CallCosts)
    has_bind: bool = False

    def compute(self, *expressions: Any) -> None:
        self.computed += cost_of(*expressions)
        self.calls.count(*expressions)


class _Undecided(Exception):
    """A pattern that this module does not decide about."""


def small_join(query: Query) -> "SmallJoin | None":
    """The join that a whole query is, if it may be evaluated at once where the join fits; None for others."""
    if query.form == "DESCRIBE" or query.dataset or query.service_hosts:
        return None
    asked = abstract_query(query)
    select = asked.select
    expressions = _computed_after(select)
    if select.values is not None or not are_bounded(Group(EMPTY, (), select.aggregates), *expressions):
        return None
    group = _Group(computed=_A_SOLUTION + len(asked.template) + _A_KEY * len(select.keys))
    # an aggregate counts as the variable that has its value, and what it is computed from
    group.compute(*expressions, *(each.expression for _, each in select.aggregates if each.expression))
    try:
        _Collector(group, is_stated=False).collect(select.where, None)
        join = SmallJoin(group, engine_text(query).lookups if group.calls else ())
    except _Undecided:
        return None
    if group.computed == _A_SOLUTION and not (group.optional or group.has_bind):
        join.show(asked)
    return join if join.patterns <= _PATTERNS_AT_ONCE else None


def _computed_after(select: Select) -> list[Any]:
    """What is computed behind the pattern of a query, but for its aggregates."""
    found = [*(expression for _, expression in select.extends), *select.order]
    return found if select.having is None else [*found, select.having]


class _Objects:
    """What is seen of the objects in a walk."""

    characters_an_entry = _CHARACTERS_AN_ENTRY
    vertices = 1  # of none are there more, as far as one may be read as a geometry

    def weight(self, term: Term) -> int:
        """As how many entries one with this object counts."""
        return 1 + _characters(term) // self.characters_an_entry


class _Geometries(_Objects):
    """Any of them may be read as a geometry."""

    characters_an_entry = _GEOMETRY_CHARACTERS_AN_ENTRY

    def weight(self, term: Term) -> int:
        """See `_Objects.weight`. Raises OverBudget for what may be slow to read."""
        if isinstance(term, Literal | Triple):
            vertices = vertices_of(term.value if isinstance(term, Literal) else str(term))
            if vertices is None:
                raise OverBudget
            self.vertices = max(self.vertices, vertices)
        return super().weight(term)


@dataclass(frozen=True, slots=True)
class SearchedStar:
    """A search of literals, and patterns that each say one thing of the subjects of its hits."""

    search: TextSearch
    patterns: Sequence[Pattern]  # with a constant predicate; an object is a constant or a variable of its own
    columns: tuple[str, ...]  # names, with ?, in the order of the answer
    length: int | None  # of the answer, at most


class SmallJoin:
    """The patterns of one group, ready to be joined."""

    def __init__(self, group: _Group, lookups: Sequence[Lookup] = ()) -> None:
        self.searches = tuple(group.searches)  # their hits come first
        parts: list[Pattern | Found] = [*map(_found_by, group.searches), *group.required]
        self._parts: list[list[Part]] = [[*part] for part in connected_parts(parts)]
        self._optional = group.optional
        self._computed = group.computed
        self._calls = group.calls
        self._lookups = lookups
        self.patterns = len(parts) + len(group.optional)
        self.columns: tuple[str, ...] = ()  # of the answer, if this is all that it takes to find it
        self._length: int | None = None
        self._optional_apart = _optional_apart(group)
        if group.optional and len(self._parts) > 1:  # planned otherwise than without OPTIONAL
            raise _Undecided
        if self.searches:
            if lookups or len(self._parts) > 1:
                raise _Undecided
            self._parts = [after_searches(part) for part in self._parts]
        elif not lookups:  # what these find is to be ordered with the patterns
            self._parts = [in_engine_order(part) for part in self._parts]

    @property
    def looks_at_triples_only(self) -> bool:
        """Whether only changes of the store change what it comes to: no index that is being made, no library
        that is being loaded.
        """
        return not (self._lookups or self._calls)

    def filled(self, terms: Mapping[Any, Term]) -> "SmallJoin":
        """The same join with other constants in the place of some; not for one with lookups."""
        made = copy(self)
        made._parts = [[each.filled(terms) for each in part] for part in self._parts]
        made._optional = [pattern.filled(terms) for pattern in self._optional]
        made._optional_apart = [pattern.filled(terms) for pattern in self._optional_apart]
        made.searches = tuple(_filled(search, terms) for search in self.searches)
        made.__dict__.pop("star", None)
        return made

    def seeking(self, terms: Mapping[Any, Term]) -> "SmallJoin":
        """The same where only searches have such constants: see `looks_at`."""
        made = copy(self)
        made.searches = tuple([_filled(search, terms) for search in self.searches])
        made.star = None if self.star is None else replace(self.star, search=made.searches[0])
        return made

    def looks_at(self, terms: Container[Term]) -> bool:
        """Whether a pattern has one of these constants."""
        patterns = (*self._optional, *(each for part in self._parts for each in part))
        return any(
            isinstance(pattern, Pattern) and any(term in terms for term in pattern.terms)
            for pattern in patterns
        )

    @property
    def sought(self) -> list[str]:
        """The texts that its searches look for."""
        return [each.request.text for each in self.searches if isinstance(each.request, LiteralSearch)]

    @cached_property
    def star(self) -> SearchedStar | None:
        """The same, if it is one."""
        if not self.columns or len(self.searches) != 1:
            return None
        (search,), (part,) = self.searches, self._parts
        subject = next((f"?{name.name}" for what, name in search.columns if what == SearchPart.SUBJECT), None)
        known, patterns = set[Term | str](f"?{name.name}" for _, name in search.columns), list[Pattern]()
        for each in part[1:]:
            if not isinstance(each, Pattern) or each.terms[0] != subject or each.terms[2] in known:
                return None
            if isinstance(each.terms[1], str):
                return None
            known.update(each.variables)
            patterns.append(each)
        return SearchedStar(search, patterns, self.columns, self._length)

    def with_tables(self, tables: Mapping[str, Table]) -> "SmallJoin":
        """The same join with what its searches found, without which it finds nothing."""
        made = copy(self)
        made._parts = [
            [
                replace(each, rows=tables[each.search].solutions) if isinstance(each, Found) else each
                for each in part
            ]
            for part in self._parts
        ]
        return made

    @classmethod
    def of_pattern(
        cls, pattern: Algebra, graph: NamedNode | None = None, *, is_stated: bool = False
    ) -> "SmallJoin | None":
        """Of triple patterns, bounded filters and BINDs, and then OPTIONALs of one pattern each; else None.

        graph is the one that patterns outside of GRAPH are matched in, None for the default graph. is_stated:
        triple patterns match stated triples only, as those of DELETE WHERE do.
        """
        group = _Group()
        try:
            _Collector(group, is_stated).collect(pattern, graph)
            return cls(group)
        except _Undecided:
            return None

    def fits(self, store: QuadStore, entries_max: int, large: "LargePatterns | None" = None) -> bool:
        """Whether it looks at no more index entries of the store, has no more solutions, and computes little
        for each. large are patterns that match more in the state that the store is in; more are added.
        """
        if large is not None and large.has(self._looked_up_whole, store):
            return False
        try:
            return self._fits(store, entries_max)
        except OverBudget:
            if large is not None:
                large.note(self._looked_up_whole, store, entries_max)
            return False

    @property
    def _looked_up_whole(self) -> list[Pattern]:
        """The patterns of which a walk looks at all that matches, whatever the others match."""
        if self._lookups:  # which pattern comes first depends on what they find
            return self._optional_apart
        first = [part[0] for part in self._parts if part]
        return [*self._optional_apart, *(pattern for pattern in first if isinstance(pattern, Pattern))]

    def _fits(self, store: QuadStore, entries_max: int) -> bool:
        """Raises OverBudget."""
        if self._calls and not are_loaded():
            return False  # loading what reads geometries takes a fifth of a second
        objects = _Geometries() if self._calls else _Objects()
        walk = Walk(store, entries_max, objects.weight)
        parts = self._parts
        if self._lookups:
            choices = self._choices(store)
            parts = [in_engine_order(_with_choices(part, choices)) for part in self._parts]
        # what shares no variable the engine evaluates apart, then multiplies
        for pattern in self._optional_apart:
            walk.scan(pattern)
        apart = [list(walk.solutions(part, {})) for part in parts[1:]]
        first = walk.solutions(parts[0], {}) if parts else ({},)
        rows = sum(walk.count_with(solution, self._optional) for solution in first)
        rows *= prod(map(len, apart))
        computed = self._computed
        if self._calls:
            called = self._calls.for_each(objects.vertices)
            if called is None:
                return False
            computed += called
        work = max(rows, walk.looked) * computed
        return rows <= entries_max and work <= entries_max * _COMPUTED_AN_ENTRY

    def show(self, asked: AbstractQuery) -> None:
        """Take the columns of a query that only joins these patterns, if it does nothing else with the
        solutions.
        """
        select = asked.select
        if asked.form != "SELECT" or select.modifier is not None or select.extends or select.is_grouped:
            return
        if select.order or select.start or select.having is not None or len(self._parts) != 1:
            return
        if select.length is not None and self.patterns > 1:
            return
        bound = set[str]().union(*(part.variables for part in self._parts[0]))
        columns = tuple(f"?{variable.name}" for variable in select.variables or ())
        is_path = any(name.startswith("/") for name in bound)
        if bound.issuperset(columns) and len(set(columns)) == len(columns) and not is_path:
            self.columns, self._length = columns, select.length

    def answer(self, store: QuadStore, entries_max: int) -> QuerySolutions | None:
        """The rows of the columns, found by looking at no more index entries; None where the engine has to
        find them. Each pattern is looked up in the state at that moment. Raises OverBudget.

        The engine takes as long to read and plan a text as to look up a few entries, and does that once more.
        """
        if not self.columns or store.unites_graphs:
            return None
        walk, part = Walk(store, entries_max, _Objects().weight), self._parts[0]
        rows: Iterable[list[Term | None]]
        if len(part) == 1 and isinstance(part[0], Pattern):
            rows = walk.rows(part[0], self.columns)
        else:
            rows = walk.table(part, self.columns)
        lines = ["\t".join(self.columns)]
        lines += ["\t".join(map(written, row)) for row in islice(rows, self._length)]
        table = "\n".join([*lines, ""]).encode()
        return cast(QuerySolutions, parse_query_results(table, format=QueryResultsFormat.TSV))

    def _choices(self, store: QuadStore) -> list[Choice]:
        """What the engine will be given for the lookups that the store's index has an answer to."""
        choices = []
        for lookup in self._lookups:
            terms = store.candidates(lookup)
            if terms is not None:
                choices.append(Choice(f"?{lookup.binding.variable}", terms))
        return choices


class LargePatterns:
    """The patterns that were found to match more than a walk looks at in one state of a store, so that the
    next query with one of them is not walked; whichever default graph its queries read. On one thread.
    """

    def __init__(self) -> None:
        self._state: object = None
        self._known: set[tuple[object, ...]] = set()

    def at(self, state: object) -> "LargePatterns":
        """Itself, for the store in this state: of another it forgets everything."""
        if state != self._state or len(self._known) >= _LARGE_MAX:
            self._state, self._known = state, set()
        return self

    def has(self, patterns: Sequence[Pattern], store: QuadStore) -> bool:
        """Whether one of the patterns is known to be large."""
        unites = store.unites_graphs
        return any((unites, *_constants(pattern)) in self._known for pattern in patterns)

    def note(self, patterns: Sequence[Pattern], store: QuadStore, entries_max: int) -> None:
        """Find out which patterns are."""
        for pattern in patterns:
            constants = _constants(pattern)
            if next(islice(store.matching(*constants), entries_max, None), None) is not None:
                self._known.add((store.unites_graphs, *constants))


def _constants(pattern: Pattern) -> tuple[Term | None, Term | None, Term | None, NamedNode | None]:
    """A pattern without the names of its variables, of which none stands in it twice."""
    subject, predicate, object_ = (None if isinstance(term, str) else term for term in pattern.terms)
    return subject, predicate, object_, pattern.graph


def _found_by(search: TextSearch) -> Found:
    return Found(search.name, tuple(f"?{variable.name}" for _, variable in search.columns))


def _filled(search: TextSearch, terms: Mapping[Any, Term]) -> TextSearch:
    """A search of another text, where that is a constant to be filled in."""
    request = search.request
    if not isinstance(request, LiteralSearch):
        return search
    text = terms.get(Literal(request.text))
    return replace(search, request=replace(request, text=text.value)) if isinstance(text, Literal) else search


def written(term: Term | None) -> str:
    """In N-Triples; nothing of what is unbound."""
    if term is None:
        return ""
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


def _characters(term: Term) -> int:
    return len(str(term) if isinstance(term, Triple) else term.value)


def _with_choices(part: list[Part], choices: list[Choice]) -> list[Part]:
    """The patterns of a part with the choices of its variables."""
    names = set[str]().union(*(pattern.variables for pattern in part))
    return [*(choice for choice in choices if choice.name in names), *part]


def _optional_apart(group: _Group) -> list[Pattern]:
    """The OPTIONALs that share no variable with anything: the engine evaluates them whole.

    One that shares only what another OPTIONAL binds is in doubt.
    """
    required = set[str]().union(*(pattern.variables for pattern in group.required))
    apart = [pattern for pattern in group.optional if required.isdisjoint(pattern.variables)]
    for pattern in apart:
        others = (other.variables for other in group.optional if other is not pattern)
        if any(not names.isdisjoint(pattern.variables) for names in others):
            raise _Undecided
    return apart


def is_one_scan(pattern: Algebra, *, is_stated: bool = False) -> bool:
    """Whether a WHERE is one pattern of which all that is looked at is a solution.

    is_stated as in `SmallJoin.of_pattern`.
    """
    names: tuple[object, ...] = ()
    where = pattern
    if isinstance(pattern, Graph):
        where, names = pattern.pattern, (pattern.name,)
    match where:
        case Bgp(triples=(triple,)) if is_stated or not is_derived(triple):
            return is_index_scan(triple.subject, triple.predicate, triple.object, *names)
    return False


class _Collector:
    """Takes a pattern apart into what `_Group` has. Its methods raise _Undecided."""

    def __init__(self, group: _Group, is_stated: bool) -> None:
        self._group, self._is_stated = group, is_stated

    def collect(self, pattern: Algebra, graph: NamedNode | None) -> None:
        """The pattern of a whole WHERE."""
        group = self._group
        where = pattern
        match pattern:
            case Graph(name=Iri(value=name)):  # all that there is
                where, graph = pattern.pattern, NamedNode(name)
        first, steps = spine_of(where)
        self._operand(first, graph)
        is_filtered = False
        for step in steps:
            match step:
                case Join(right=right) if not (group.optional or group.has_bind or is_filtered):
                    self._operand(right, graph)
                case LeftJoin(right=right, condition=condition) if not is_filtered:
                    self._optional(right, condition, graph)
                case Filter(expression=expression) if are_bounded(expression):
                    group.compute(expression)
                    is_filtered = True  # what follows is not within the same braces
                case Extend(expression=expression) if are_bounded(expression):
                    group.compute(expression)
                    group.has_bind = True
                case _:
                    raise _Undecided

    def _operand(self, operand: Algebra, graph: NamedNode | None) -> None:
        """Triple patterns, and GRAPH with nothing else in it."""
        match operand:
            case Bgp(triples=triples) if self._is_stated or not any(map(is_derived, triples)):
                self._group.required += [
                    _pattern(each.subject, each.predicate, each.object, graph) for each in triples
                ]
            case Path(predicate=SequencePath(steps=steps)):
                self._sequence(operand, steps, graph)
            case TextSearch(request=LiteralSearch()):
                self._group.searches.append(operand)
            case Graph(name=Iri(value=name), pattern=pattern):
                first, others = spine_of(pattern)
                self._operand(first, NamedNode(name))
                for step in others:
                    if not isinstance(step, Join):
                        raise _Undecided
                    self._operand(step.right, NamedNode(name))
            case _:
                raise _Undecided

    def _sequence(self, path: Path, steps: tuple[object, ...], graph: NamedNode | None) -> None:
        """A pattern for each step."""
        required = self._group.required
        start: object = path.subject
        for step in steps[:-1]:
            end = Variable(f"/{len(required)}")  # no name that a text can have
            required.append(_pattern(start, step, end, graph))
            start = end
        required.append(_pattern(start, steps[-1], path.object, graph))

    def _optional(self, pattern: Algebra, condition: Any, graph: NamedNode | None) -> None:
        """One pattern, without more than filters beside it."""
        inner = _Group()
        _Collector(inner, self._is_stated)._operand(pattern, graph)
        if len(inner.required) != 1:
            raise _Undecided
        group = self._group
        group.optional += inner.required
        if condition is not None:
            if not are_bounded(condition):
                raise _Undecided
            group.compute(condition)


def _pattern(subject: object, predicate: object, object_: object, graph: NamedNode | None) -> Pattern:
    terms = (_term(subject), _term(predicate), _term(object_))
    names = [term for term in terms if isinstance(term, str)]
    if len(set(names)) < len(names):  # a filter behind a scan, which the engine plans in its own way
        raise _Undecided
    return Pattern(terms, graph)


def _term(term: object) -> "Term | str":
    """A term to look for, or the name of a variable, which a blank node is too."""
    match term:
        case Variable(name=name):
            return f"?{name}"
        case BlankNodeLabel(label=label):
            return f"_:{label}"
        case Iri(value=value):
            return NamedNode(value)
        case RdfLiteral():
            return _literal(term)
        case _:
            raise _Undecided


def _literal(literal: RdfLiteral) -> Literal:
    try:
        return literal_of(literal)
    except ValueError:
        raise _Undecided from None
