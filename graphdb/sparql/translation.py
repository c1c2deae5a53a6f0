"""A syntax tree as algebra (SPARQL 1.2, section 18.2)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from graphdb.sparql import algebra, patterns
from graphdb.sparql.algebra import (
    EMPTY,
    AbstractQuery,
    Algebra,
    Select,
    TextSearch,
    conjunction,
    join,
    operands_of,
    spine_of,
    variables_in_scope,
)
from graphdb.sparql.patterns import (
    Aggregate,
    GroupGraphPattern,
    OrderCondition,
    PatternElement,
    SolutionModifiers,
    SubSelect,
    TriplePattern,
)
from graphdb.sparql.search_requests import search_index_of
from graphdb.sparql.searches import SearchReader
from graphdb.sparql.syntax import Prologue, QuadPattern, Query
from graphdb.sparql.terms import Iri, Variable
from graphdb.sparql.tree_walk import (
    all_below,
    expression_nodes,
    nodes_below,
    nodes_of,
    renamed,
    rewritten,
    rewritten_expression,
)

__all__ = [
    "FreshNames",
    "abstract_query",
    "beside",
    "columns_of",
    "pattern_of_group",
    "pattern_of_quads",
    "searches_of",
    "select_of",
]


_RESOLVES = re.compile(r"\b[IU]RI\b", re.IGNORECASE)  # wherever a text may call what resolves IRIs


class FreshNames:
    """Names of variables that a tree does not have."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._used: set[str] | None = None

    def prefix(self, start: str) -> str:
        """A start with a number behind it, with which no name begins that the tree has or that was given."""
        if self._used is None:
            self._used = {node.name for node in all_below(self._root) if isinstance(node, Variable)}
        used = self._used
        free = (f"{start}{number}" for number in count())
        found = next(name for name in free if not any(other.startswith(name) for other in used))
        used.add(found)
        return found


def abstract_query(query: Query) -> AbstractQuery:
    """A whole query. Of `SELECT *` and `DESCRIBE *` all variables are the columns.

    It is made once and kept with the tree, because every decision on a query and its text for the engine
    need it. Only trees that the gate has admitted may come here: this recurses with the nesting of groups.
    """
    made: AbstractQuery | None = getattr(query, "algebra", None)
    if made is None:
        made = _translated(query)
        object.__setattr__(query, "algebra", made)  # threads that come at once make equal ones
    return made


def searches_of(query: Query) -> tuple[TextSearch, ...]:
    """The searches in a query, in no particular order. Raises InvalidParameter if one cannot be read."""
    return tuple([node for node in nodes_of(abstract_query(query)) if isinstance(node, TextSearch)])


def _translated(query: Query) -> AbstractQuery:
    described: tuple[Iri | Variable, ...] = ()
    if query.form == "DESCRIBE":
        described = tuple(dict.fromkeys(query.described or ())) or tuple(
            map(Variable, sorted(_variables(query)))
        )
    return AbstractQuery(
        query.form,
        _Translator(query).query(query),
        query.graph_clauses,
        query.template or (),
        described,
        query.prologue.base if _RESOLVES.search(query.text) else None,
    )


def select_of(pattern: Algebra, names: Iterable[str], prologue: Prologue) -> AbstractQuery:
    """A SELECT of these columns over a pattern; of one that is never bound where there is no name."""
    columns = tuple(map(Variable, names))
    return AbstractQuery("SELECT", algebra.Project(pattern, columns), base=prologue.base)


def pattern_of_group(group: GroupGraphPattern) -> Algebra:
    """The pattern of an update's WHERE."""
    return _Translator(group).group(group)


def pattern_of_quads(quads: Iterable[QuadPattern]) -> Algebra:
    """The pattern of DELETE WHERE."""
    found: Algebra = EMPTY
    for quad in quads:
        triples = algebra.Bgp((TriplePattern(quad.subject, quad.predicate, quad.object),))
        found = join(found, triples if quad.graph is None else algebra.Graph(quad.graph, triples))
    return found


def columns_of(query: Query) -> list[str]:
    """What a SELECT shows, in order, each once; a star the variables as they first appear. Another form
    shows none.
    """
    if query.select is None:
        return []
    if query.select.projections is not None:
        return list(dict.fromkeys(each.variable.name for each in query.select.projections))
    shown = _variables(query)
    roots = [query.where] if query.values is None else [query.where, query.values]
    found = [node for node in all_below(*roots) if isinstance(node, Variable) and node.name in shown]
    return list(dict.fromkeys(variable.name for variable in sorted(found, key=_start)))


def _start(variable: Variable) -> int:
    return variable.span.start


def _variables(query: Query) -> set[str]:
    """Those of a query's solutions."""
    found = set(query.where.variables) if query.where is not None else set()
    if query.values is not None:
        found.update(variable.name for variable in query.values.variables)
    return found


def beside(left: Algebra, pattern: Algebra) -> tuple[Algebra, Any]:
    """left joined with a pattern, and the filter that is to stand around that; None for none.

    Operands with a filter on what they bind are joined one by one, so that they are planned with left.
    """
    condition, inner = None, pattern
    if isinstance(pattern, algebra.Filter):
        condition, inner = pattern.expression, pattern.pattern
    _, steps = spine_of(inner)
    parts = operands_of(inner)
    known = variables_in_scope(inner)
    asked = () if condition is None else tuple(nodes_below(condition))
    is_plain = all(isinstance(step, algebra.Join) for step in steps) and all(
        isinstance(part, algebra.Bgp | algebra.Path | TextSearch) for part in parts
    )
    if not is_plain or any(
        isinstance(node, algebra.Exists) or (isinstance(node, Variable) and node.name not in known)
        for node in asked
    ):
        return join(left, pattern), None
    for part in parts:
        left = join(left, part)
    return left, condition


class _Translator:
    """Of one text, within which the names of aggregates are its own."""

    def __init__(self, root: Any) -> None:
        self._fresh = FreshNames(root)
        self._searches = SearchReader(self._fresh.prefix)
        self._graph: Iri | Variable | None = None  # of the GRAPH around what is translated

    def query(self, query: Query) -> Algebra:
        pattern = self._query(query)
        return renamed(pattern, self._searches.renamed) if self._searches.renamed else pattern

    def _query(self, query: Query) -> Algebra:
        where = EMPTY if query.where is None else self.group(query.where)
        if query.select is not None:
            return self._select(query, where, list(map(Variable, columns_of(query))))
        if isinstance(where, algebra.Project | algebra.Distinct | algebra.Reduced | algebra.Slice):
            where = algebra.Join(EMPTY, where)  # its columns are not those of the query
        return self._select(query, where, None)

    def group(self, group: GroupGraphPattern) -> Algebra:
        """Section 18.2.2.6."""
        pattern, condition = self._parts(group)
        return pattern if condition is None else algebra.Filter(condition, pattern)

    def _parts(self, group: GroupGraphPattern) -> tuple[Algebra, Any]:
        """A group without its FILTERs, and these."""
        if _is_restricted(group):
            return self._restricted(group)
        pattern: Algebra = EMPTY
        conditions = []
        for element in group.elements:
            match element:
                case GroupGraphPattern() if _is_restricted(element):
                    pattern, condition = beside(pattern, self.group(element))
                    conditions += [] if condition is None else [condition]
                case patterns.Filter(expression=expression):
                    conditions.append(self._expression(expression))
                case patterns.OptionalPattern():
                    pattern = algebra.LeftJoin(pattern, *self._parts(element.pattern))
                case patterns.MinusPattern():
                    pattern = algebra.Minus(pattern, self.group(element.pattern))
                case patterns.Bind():
                    pattern = algebra.Extend(pattern, element.variable, self._expression(element.expression))
                case patterns.TriplesBlock():
                    searches, triples = self._searches.taken_from(element.triples, self._graph)
                    for part in (*searches, *_paths_apart(triples)):
                        pattern = join(pattern, part)
                case _:
                    pattern = join(pattern, self._element(element))
        return pattern, conjunction(conditions)

    def _element(self, element: PatternElement) -> Algebra:
        match element:
            case GroupGraphPattern():
                return self.group(element)
            case patterns.UnionPattern():
                return algebra.Union(tuple([self.group(branch) for branch in element.branches]))
            case patterns.GraphPattern():
                around, self._graph = self._graph, element.name
                pattern = self.group(element.pattern)
                self._graph = around
                return algebra.Graph(element.name, pattern)
            case patterns.ServicePattern() if search_index_of(element.endpoint) is not None:
                return self._service_search(element, None)
            case patterns.ServicePattern():
                return algebra.Service(element.endpoint, self.group(element.pattern), element.silent)
            case patterns.InlineData():
                return algebra.Values(element.variables, element.rows)
            case SubSelect():
                columns = element.select.projections
                shown = list(dict.fromkeys(one.variable for one in columns or ()))
                if columns is None:
                    shown = list(map(Variable, sorted(element.variables)))
                return self._select(element, self.group(element.where), shown)
        raise TypeError(f"{element!r} is no element of a group")

    def _restricted(self, group: GroupGraphPattern) -> tuple[Algebra, Any]:
        """A search and the pattern in its braces: their join."""
        service, *others = group.elements
        assert isinstance(service, patterns.ServicePattern)
        within = self.group(replace(group, elements=tuple(others)))
        named = within if self._graph is None else algebra.Graph(self._graph, within)
        return beside(self._service_search(service, named), within)

    def _service_search(self, service: patterns.ServicePattern, within: Algebra | None) -> Algebra:
        triples: list[TriplePattern] = []
        for element in service.pattern.elements:
            assert isinstance(element, patterns.TriplesBlock)
            triples += element.triples
        found: Algebra = EMPTY
        for search in self._searches.of_service(service.endpoint, tuple(triples), within):
            found = join(found, search)
        return found

    def _expression(self, expression: Any) -> Any:
        """An expression with the patterns of EXISTS as algebra."""
        if not any(isinstance(node, patterns.Exists) for node in nodes_below(expression)):
            return expression
        return rewritten(expression, self._exists)

    def _exists(self, node: Any) -> Any:
        if isinstance(node, patterns.Exists):
            return algebra.Exists(self.group(node.pattern), node.negated)
        return node

    def _select(self, node: Query | SubSelect, where: Algebra, columns: "list[Variable] | None") -> Algebra:
        """Section 18.2.4 and 18.2.5."""
        modifiers, clause = node.modifiers, node.select
        projections = (clause.projections or ()) if clause is not None else ()
        computed = [(one.variable, one.expression) for one in projections if one.expression is not None]
        values = algebra.Values(node.values.variables, node.values.rows) if node.values is not None else None
        select = Select(
            where,
            extends=tuple([(variable, self._expression(expression)) for variable, expression in computed]),
            order=tuple([self._expression(condition) for condition in modifiers.order_by]),
            having=conjunction([self._expression(condition) for condition in modifiers.having]),
            variables=None if columns is None else tuple(columns),
            start=modifiers.offset,
            length=modifiers.limit,
        )
        if clause is not None and (clause.distinct or clause.reduced):
            select = replace(select, modifier=algebra.Distinct if clause.distinct else algebra.Reduced)
        grouped = self._grouped(select, modifiers)
        if grouped is not None:
            return replace(grouped, values=values).pattern()
        return (select if values is None else replace(select, where=join(where, values))).pattern()

    def _grouped(self, select: Select, modifiers: SolutionModifiers) -> Select | None:
        """Section 18.2.4.1; None where nothing is grouped."""
        if not (modifiers.group_by or modifiers.having or _has_aggregate(select)):
            return None
        found: list[tuple[Variable, Aggregate]] = []

        def named(node: Any) -> Any:
            if not isinstance(node, Aggregate):
                return node
            found.append((Variable(self._fresh.prefix("aggregate")), node))
            return found[-1][0]

        def without_aggregates(expression: Any) -> Any:
            match expression:
                case Variable() | OrderCondition(expression=Variable()):  # most are: no need to look further
                    return expression
                case Aggregate():
                    return named(expression)
            return rewritten_expression(expression, named)

        having = without_aggregates(select.having) if select.having is not None else None
        extends = [(variable, without_aggregates(each)) for variable, each in select.extends]
        order = [without_aggregates(condition) for condition in select.order]
        keys, where = [], select.where
        for key in modifiers.group_by:
            if isinstance(key.expression, Variable) and key.variable is None:
                keys.append(key.expression)
                continue
            variable = key.variable or Variable(self._fresh.prefix("key"))
            where = algebra.Extend(where, variable, self._expression(key.expression))
            keys.append(variable)
        return replace(
            select,
            where=where,
            keys=tuple(keys),
            aggregates=tuple(found),
            is_grouped=True,
            having=having,
            extends=tuple(extends),
            order=tuple(order),
        )


def _has_aggregate(select: Select) -> bool:
    """Whether a column or the order has one, outside of EXISTS."""
    expressions = (*(expression for _, expression in select.extends), *select.order)
    return any(
        isinstance(node, Aggregate) for expression in expressions for node in expression_nodes(expression)
    )


def _is_restricted(group: GroupGraphPattern) -> bool:
    """Whether it is for the braces of a search with a pattern beside it."""
    first = group.elements[0] if group.elements else None
    return isinstance(first, patterns.ServicePattern) and first.is_restricted


def _paths_apart(triples: Iterable[TriplePattern]) -> Iterator[Algebra]:
    plain: list[TriplePattern] = []
    for triple in triples:
        if isinstance(triple.predicate, Iri | Variable):
            plain.append(triple)
            continue
        if plain:
            yield algebra.Bgp(tuple(plain))
            plain = []
        yield algebra.Path(triple.subject, triple.predicate, triple.object)  # type: ignore[arg-type]
    if plain:
        yield algebra.Bgp(tuple(plain))
