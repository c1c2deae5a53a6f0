"""Algebra as text that the engine reads as the same algebra, and slots in it for what an index finds.

Everything is written in full: IRIs without prefixes, literals with their datatypes, columns by name. So the
text does not show where pyoxigraph's spelling differs from SPARQL's (TRUE, `BNODE ()`, comments within []).

What stands together in a group is written together, without braces: the engine plans what it joins directly.
Only a Filter that is not the last of its group needs them, for FILTER is about a whole group.

GROUP_CONCAT is given the texts of its values, for the engine has it for strings alone. With DISTINCT it has
STR around it: the engine would give its literal their language.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import BaseDirection, Literal, NamedNode

from graphdb.sparql import algebra, patterns
from graphdb.sparql.algebra import SELECT_NODES, AbstractQuery, Algebra, Bgp, Join, Select, spine_of
from graphdb.sparql.patterns import Aggregate, OrderCondition, TriplePattern
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.tree_walk import rewritten_expression

__all__ = [
    "Filling",
    "literal_of",
    "written_expression",
    "written_pieces",
    "written_query",
    "written_term",
]


_NO_PREDICATE = "urn:uuid:7d1f9a52-2c0e-4b6b-9a3f-6a0f6f1d8c41"  # drawn at random: nobody's


@dataclass(frozen=True, slots=True)
class Filling:
    """What stands in a slot: without anything found, and around what is found, every time it is written."""

    without: str = ""
    around: tuple[str, ...] = ("", "")


def written_query(query: AbstractQuery) -> str:
    """A whole query without slots."""
    pieces, _ = written_pieces(query)
    assert len(pieces) == 1
    return pieces[0]


def written_pieces(query: AbstractQuery) -> tuple[tuple[str, ...], dict[str, Filling]]:
    """Pieces of the text, with the name of a slot between each two; and the fillings that are not plain."""
    return _written(_query(query))


def written_expression(expression: Any) -> str:
    """An expression by itself."""
    (piece,), _ = _written(_expression(expression))
    return piece


# What is to be written: text, a slot, or a node with the function that tells its parts. A list of parts waits
# on a stack, so that nothing here recurses, however deep the algebra is.


@dataclass(frozen=True, slots=True)
class _Gap:
    """A slot by its name, with what it is filled with."""

    name: str
    without: tuple[Any, ...] = ()
    found: tuple[Any, ...] = ()


_Part: TypeAlias = "str | _Gap | tuple[Callable[[Any], Sequence[Any]], Any]"
_Parts: TypeAlias = "Sequence[_Part]"


def _written(parts: _Parts) -> tuple[tuple[str, ...], dict[str, Filling]]:
    """The pieces of a text, slots' names between them, and what fills the slots."""
    pieces: list[str] = []
    run: list[str] = []
    fillings: dict[str, Filling] = {}
    waiting = list(reversed(parts))
    while waiting:
        part = waiting.pop()
        if type(part) is str:
            run.append(part)
        elif type(part) is tuple:
            waiting.extend(reversed(part[0](part[1])))
        else:
            assert isinstance(part, _Gap)
            pieces += ("".join(run), part.name)
            run = []
            if part.found:
                (without,), _ = _written(part.without)
                around, _ = _written(part.found)
                fillings[part.name] = Filling(without, around[::2])
    pieces.append("".join(run))
    return tuple(pieces), fillings


def _separated(separator: str, parts: Iterable[_Parts]) -> list[_Part]:
    found: list[_Part] = []
    for each in parts:
        if found:
            found.append(separator)
        found += each
    return found


# Queries and sub-selects.


def _query(query: AbstractQuery) -> _Parts:
    head: list[_Part] = [f"BASE <{query.base}>\n"] if query.base is not None else []
    select = query.select
    if query.form == "CONSTRUCT":
        head += ("CONSTRUCT { ", *map(_triple, query.template), "} ")
    elif query.form == "DESCRIBE":
        head.append(f"DESCRIBE {' '.join(map(written_term, query.described)) or '*'} ")
    elif query.form == "ASK":
        head.append("ASK ")
    columns, where = _columns_and_where(select)
    from_ = [f"FROM {'NAMED ' if each.named else ''}<{each.graph.value}> " for each in query.dataset]
    return [*head, *columns, *from_, *where]


def _select(node: Algebra) -> _Parts:
    columns, where = _columns_and_where(Select.of(node))
    return [*columns, *where]


def _columns_and_where(select: Select) -> tuple[_Parts, _Parts]:
    """What comes before FROM, and what comes after."""
    aggregates = dict(select.aggregates)
    computed, where = _computed_columns(select)
    columns: list[_Part] = []
    if select.variables is not None:
        word = select.modifier.__name__.upper() + " " if select.modifier is not None else ""
        columns.append(f"SELECT {word}")
        columns += ["* "] if not select.variables else []
        for variable in select.variables:
            expression = computed.get(variable, aggregates.get(variable))
            if expression is None:
                columns.append(f"?{variable.name} ")
            else:
                columns += ("(", *_with_aggregates(expression, aggregates), f" AS ?{variable.name}) ")
    keys, where = _keys(select, where)
    parts: list[_Part] = ["WHERE { ", (_contents, where), "}", *keys]
    if select.having is not None:
        parts += (" HAVING (", *_with_aggregates(select.having, aggregates), ")")
    parts += _order(select.order, aggregates)
    if select.start is not None:
        parts.append(f" OFFSET {select.start}")
    if select.length is not None:
        parts.append(f" LIMIT {select.length}")
    if select.values is not None:
        parts += (" ", *_values(select.values))
    return columns, parts


def _computed_columns(select: Select) -> tuple[dict[Variable, Any], Algebra]:
    """The columns that are written with their expression, in the order in which they are computed; the
    pattern, with what is computed otherwise.
    """
    places = {variable: place for place, variable in enumerate(select.variables or ())}
    last, count = len(places), len(select.extends)
    while count and places.get(select.extends[count - 1][0], last) < last:
        count -= 1
        last = places[select.extends[count][0]]
    where = select.where
    for variable, expression in select.extends[:count]:
        assert not select.is_grouped
        where = algebra.Extend(where, variable, expression)
    return dict(select.extends[count:]), where


def _keys(select: Select, where: Algebra) -> tuple[_Parts, Algebra]:
    """GROUP BY, with the expressions that the pattern ends with; the pattern without them.

    The engine does not accept a variable under another name in GROUP BY: that one stays a BIND.
    """
    if not select.keys:
        return (), where
    places = {variable: place for place, variable in enumerate(select.keys)}
    last = len(places)
    computed: dict[Variable, Any] = {}
    while isinstance(where, algebra.Extend) and places.get(where.variable, last) < last:
        if isinstance(where.expression, Variable):
            break
        computed[where.variable] = where.expression
        last, where = places[where.variable], where.pattern
    parts: list[_Part] = [" GROUP BY"]
    for variable in select.keys:
        if variable in computed:
            parts += (" (", *_expression(computed[variable]), f" AS ?{variable.name})")
        else:
            parts.append(f" ?{variable.name}")
    return parts, where


def _order(conditions: Sequence[OrderCondition], aggregates: Mapping[Variable, Aggregate]) -> _Parts:
    parts: list[_Part] = [" ORDER BY"] if conditions else []
    for condition in conditions:
        way = "DESC" if condition.descending else "ASC"
        parts += (f" {way}(", *_with_aggregates(condition.expression, aggregates), ")")
    return parts


def _with_aggregates(expression: Any, aggregates: Mapping[Variable, Aggregate]) -> _Parts:
    if aggregates:

        def written_out(node: Any) -> Any:
            return aggregates.get(node, node) if isinstance(node, Variable) else node

        expression = rewritten_expression(expression, written_out)
    return _expression(expression)


# Patterns.


def _contents(node: Algebra) -> _Parts:
    """What stands between the braces of a group."""
    if isinstance(node, Bgp):
        return [_triple(triple) for triple in node.triples]
    filters: list[_Part] = []
    while isinstance(node, algebra.Filter):
        filters = [*_filter(node.expression), *filters]
        node = node.pattern
    first, steps = spine_of(node)
    begin = max((place for place, step in enumerate(steps) if isinstance(step, algebra.Filter)), default=-1)
    if begin >= 0:
        parts: list[_Part] = ["{ ", (_contents, steps[begin]), "} "]
    elif isinstance(first, SELECT_NODES) and not steps and not filters:
        return [*_select(first), " "]
    else:
        parts = list(_operand(first))
    for step in steps[begin + 1 :]:
        parts += _step(step)
    return parts + filters


def _step(step: Any) -> _Parts:
    """What is written after the operand on the left."""
    match step:
        case Join(right=right):
            return _operand(right)
        case algebra.LeftJoin(right=right, condition=condition):
            parts: _Parts = ((_contents, right),)
            if isinstance(right, algebra.Filter) or (
                condition is not None and isinstance(right, SELECT_NODES)
            ):
                parts = ("{ ", (_contents, right), "} ")
            return ["OPTIONAL { ", *parts, *(_filter(condition) if condition is not None else ()), "} "]
        case algebra.Minus(right=right):
            return ["MINUS { ", (_contents, right), "} "]
        case algebra.Extend(variable=variable, expression=expression):
            return ["BIND(", *_expression(expression), f" AS ?{variable.name}) "]
        case algebra.Lateral(right=right):
            return ["LATERAL { ", (_contents, right), "} "]
        case algebra.Narrowed(right=right, name=name, found=found):
            usual, narrowed = ("LATERAL { ", (_contents, right), "} "), ("{ ", (_contents, found), "} ")
            return [_Gap(name, usual, narrowed)]
    raise TypeError(f"{step!r} is no step of a group")


def _operand(node: Any) -> _Parts:
    """An element of a group."""
    match node:
        case Bgp(triples=triples):
            return [_triple(triple) for triple in triples]
        case algebra.Path():
            return [_triple(node)]
        case algebra.Values():
            return _values(node)
        case algebra.Union(branches=branches):
            return [*_separated("UNION ", [["{ ", (_contents, each), "} "] for each in branches])]
        case algebra.Graph(name=name, pattern=pattern):
            return [f"GRAPH {written_term(name)} {{ ", (_contents, pattern), "} "]
        case algebra.Service(endpoint=endpoint, pattern=pattern, silent=silent):
            word = "SERVICE SILENT" if silent else "SERVICE"
            return [f"{word} {written_term(endpoint)} {{ ", (_contents, pattern), "} "]
        case algebra.Slot(name=name) | algebra.TextSearch(name=name):
            return [_Gap(name), " "]
        case _:
            return ["{ ", (_contents, node), "} "]


def _filter(expression: Any) -> _Parts:
    if isinstance(expression, algebra.Slot):
        return _operand(expression)
    return ["FILTER(", *_expression(expression), ") "]


def _values(node: algebra.Values) -> _Parts:
    if len(node.variables) == 1:
        names = f"?{node.variables[0].name}"
        rows = " ".join(["UNDEF" if row[0] is None else written_term(row[0]) for row in node.rows])
    else:
        names = f"({' '.join([f'?{variable.name}' for variable in node.variables])})"
        rows = " ".join([f"({' '.join(map(_cell, row))})" for row in node.rows])
    return [f"VALUES {names} {{ {rows} }} "]


def _cell(term: Any) -> str:
    return "UNDEF" if term is None else written_term(term)


# Terms and paths.

_ESCAPED = re.compile(r'["\\\n\r]')
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"})
_XSD = "http://www.w3.org/2001/XMLSchema#"
_STRING = _XSD + "string"
_BARE = {  # by datatype, what needs no quotes
    _XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    _XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    _XSD + "double": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+"),
    _XSD + "boolean": re.compile("true|false"),
}


def written_term(term: Any) -> str:
    """A term, whole; IRIs in full."""
    match term:
        case Variable(name=name):
            return f"?{name}"
        case Iri(value=value):
            return f"<{value}>"
        case BlankNodeLabel(label=label):
            return f"_:{label}"
        case RdfLiteral(value=value, datatype=datatype, language=language, direction=direction):
            text = value.translate(_ESCAPES) if _ESCAPED.search(value) else value
            if language is not None:
                # as it is: the tag may be one that the engine refuses, which is for the evaluation to find
                return f'"{text}"@{language}{f"--{direction}" if direction else ""}'
            if datatype == _STRING:
                return f'"{text}"'
            bare = _BARE.get(datatype)
            return value if bare is not None and bare.fullmatch(value) else f'"{text}"^^<{datatype}>'
        case TripleTerm(subject, predicate, object_):
            inner = " ".join([written_term(part) for part in (subject, predicate, object_)])
            return f"<<( {inner} )>>"
    raise TypeError(f"{term!r} is no term")


def literal_of(literal: RdfLiteral) -> Literal:
    """The engine's literal. Raises ValueError for a language tag that the engine refuses."""
    if literal.language is None:
        return Literal(literal.value, datatype=NamedNode(literal.datatype))
    direction = BaseDirection(literal.direction) if literal.direction else None
    return Literal(literal.value, language=literal.language, direction=direction)


def _triple(triple: TriplePattern | algebra.Path) -> str:
    subject, object_ = written_term(triple.subject), written_term(triple.object)
    return f"{subject} {_verb(triple.predicate)} {object_} . "


def _verb(verb: Any) -> str:
    match verb:
        case Iri(value=value):
            return f"<{value}>"
        case patterns.InversePath(path=path):
            return f"^{_step_of_path(path)}"
        case patterns.SequencePath(steps=parts):
            return "/".join([_step_of_path(part) for part in parts])
        case patterns.AlternativePath(choices=parts):
            return "|".join([_step_of_path(part) for part in parts])
        case patterns.RepeatedPath(path=path, modifier=modifier):
            return f"{_step_of_path(path)}{modifier}"
        case patterns.NegatedPropertySet(members=()):  # which the engine does not read: any predicate
            return f"!(<{_NO_PREDICATE}>)"
        case patterns.NegatedPropertySet(members=members):
            return f"!({'|'.join([_verb(member) for member in members])})"
        case _:
            return written_term(verb)


def _step_of_path(path: Any) -> str:
    return _verb(path) if isinstance(path, Iri | patterns.NegatedPropertySet) else f"({_verb(path)})"


# Expressions. Brackets stand only where an operand binds no more tightly than the operator.

_OR, _AND, _RELATIONAL, _ADDITIVE, _MULTIPLICATIVE, _UNARY, _PRIMARY = range(7)


def _level(expression: Any) -> int:
    match expression:
        case patterns.Or():
            return _OR
        case patterns.And():
            return _AND
        case patterns.Comparison() | patterns.In():
            return _RELATIONAL
        case patterns.Arithmetic(rest=rest):
            return _ADDITIVE if rest[0][0] in "+-" else _MULTIPLICATIVE
        case patterns.Not() | patterns.Signed():
            return _UNARY
        case _:
            return _PRIMARY


def _bound(expression: Any, level: int) -> _Parts:
    """An operand, in brackets unless it binds at least as tightly as level."""
    if isinstance(expression, Variable):
        return (f"?{expression.name}",)
    if _level(expression) >= level:
        return ((_expression, expression),)
    return ("(", (_expression, expression), ")")


def _arguments(arguments: Iterable[Any]) -> _Parts:
    return ["(", *_separated(", ", [((_expression, each),) for each in arguments]), ")"]


def _expression(expression: Any) -> _Parts:
    match expression:
        case Variable(name=name):
            return (f"?{name}",)
        case Iri() | RdfLiteral() | TripleTerm():
            return (written_term(expression),)
        case patterns.BuiltInCall(name=name, arguments=arguments):
            return (name, *_arguments(arguments))
        case patterns.Comparison(operator=operator, left=left, right=right):
            return [*_bound(left, _ADDITIVE), f" {operator} ", *_bound(right, _ADDITIVE)]
        case patterns.And(operands=operands):
            return _separated(" && ", [_bound(each, _RELATIONAL) for each in operands])
        case patterns.Or(operands=operands):
            return _separated(" || ", [_bound(each, _AND) for each in operands])
        case patterns.Not(operand=operand):
            return ["!", *_bound(operand, _PRIMARY if isinstance(operand, patterns.Signed) else _UNARY)]
        case patterns.Signed(sign=sign, operand=RdfLiteral() as operand):
            return [f"{sign}({written_term(operand)})"]  # not to be read as one number
        case patterns.Signed(sign=sign, operand=operand):
            return [sign, *_bound(operand, _PRIMARY)]
        case patterns.Arithmetic(first=first, rest=rest):
            level = _level(expression) + 1
            parts = [*_bound(first, level)]
            for operator, operand in rest:
                parts += (f" {operator} ", *_bound(operand, level))
            return parts
        case patterns.In(expression=tested, options=options, negated=negated):
            word = " NOT IN " if negated else " IN "
            return [*_bound(tested, _ADDITIVE), word, *_arguments(options)]
        case patterns.FunctionCall(function=function, arguments=arguments, distinct=distinct):
            inner = _arguments(arguments)
            return [f"<{function.value}>", *(["(DISTINCT ", *inner[1:]] if distinct else inner)]
        case algebra.Exists(pattern=pattern, negated=negated):
            word = "NOT EXISTS" if negated else "EXISTS"
            return [f"{word} {{ ", (_contents, pattern), "}"]
        case Aggregate():
            return _aggregate(expression)
        case algebra.Spelled(text=text):
            return (text,)
    raise TypeError(f"{expression!r} is no expression")


def _aggregate(aggregate: Aggregate) -> _Parts:
    name = aggregate.name if aggregate.name.isupper() and ":" not in aggregate.name else f"<{aggregate.name}>"
    argument: _Parts = ("*",) if aggregate.expression is None else ((_expression, aggregate.expression),)
    if aggregate.name == "GROUP_CONCAT":
        argument = _concatenated(aggregate, argument)
    parts: list[_Part] = [f"{name}(", *(["DISTINCT "] if aggregate.distinct else []), *argument]
    if aggregate.separator is not None:
        parts.append(f"; SEPARATOR = {written_term(RdfLiteral(aggregate.separator, _STRING, None, None))}")
    parts.append(")")
    return ["STR(", *parts, ")"] if aggregate.name == "GROUP_CONCAT" and aggregate.distinct else parts


def _concatenated(aggregate: Aggregate, argument: _Parts) -> _Parts:
    """What GROUP_CONCAT is given: texts. Strings that differ in their language alone remain DISTINCT."""
    if aggregate.distinct:
        return ["IF(HASLANG(", *argument, "), ", *argument, ", STR(", *argument, "))"]
    return ["STR(", *argument, ")"]
