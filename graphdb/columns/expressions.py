"""Expressions as SQL: NULL is the error of SPARQL, so that AND, OR and NOT mean the same in both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, TypeAlias, cast

from pyoxigraph import Literal, NamedNode

from graphdb.columns.blocks import Block, as_id, bound, lexical
from graphdb.columns.comparisons import compared, equal
from graphdb.columns.functions import FUNCTIONS, cast_call
from graphdb.columns.numbers import arithmetic, as_number
from graphdb.columns.term_ids import PAYLOAD_MASK, Tag
from graphdb.columns.values import (
    BOOLEAN,
    DATES,
    NUMBERS,
    SQL_LENGTH_MAX,
    NotExact,
    Rep,
    Value,
    has_tag,
)
from graphdb.sparql.algebra import Exists, Expression
from graphdb.sparql.patterns import (
    Aggregate,
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    FunctionCall,
    In,
    Not,
    Or,
    Signed,
)
from graphdb.sparql.terms import Iri, RdfLiteral, Variable
from graphdb.store.stored_form import stored_term

__all__ = ["KINDS_OF_TERMS", "Expressions", "conjuncts", "literal_of", "narrow"]

_DECIMAL_OF = {"+": "+", "-": "-", "*": "*", "/": "/"}
_PLAIN: Final = frozenset(
    (Tag.IRI, Tag.BLANK_NODE, Tag.STRING, Tag.LANGUAGE_STRING, Tag.INTEGER, Tag.BOOLEAN)
)
_TIMES: Final = DATES | {Tag.TYPED}
KINDS_OF_TERMS: Final = {  # by the functions that test for them
    "ISIRI": frozenset((Tag.IRI,)),
    "ISURI": frozenset((Tag.IRI,)),
    "ISBLANK": frozenset((Tag.BLANK_NODE,)),
    "ISLITERAL": frozenset(Tag) - {Tag.IRI, Tag.BLANK_NODE, Tag.TRIPLE},
    "ISNUMERIC": NUMBERS,
}
_UNBOUND: Final = Value("NULL::BIGINT", Rep.ID, frozenset())
CompileExists: TypeAlias = Callable[[Exists, Block], str]


def literal_of(literal: RdfLiteral) -> Literal:
    """The literal in the engine's form: numbers and dates by value."""
    if literal.language is not None:
        if literal.direction is not None:
            raise NotExact("a string with a direction")
        return Literal(literal.value, language=literal.language.lower())
    return cast(Literal, stored_term(Literal(literal.value, datatype=NamedNode(literal.datatype))))


@dataclass(slots=True)
class Expressions:
    """Compiles the expressions of one group; look-ups of terms are added to the block."""

    block: Block
    exists: CompileExists | None = None
    outer: dict[str, Value] = field(default_factory=dict)  # of the solution that EXISTS is asked of

    def condition(self, expression: Expression) -> str:
        """The effective boolean value."""
        if isinstance(expression, And):
            return "(" + " AND ".join(map(self.condition, expression.operands)) + ")"
        if isinstance(expression, Or):
            return "(" + " OR ".join(map(self.condition, expression.operands)) + ")"
        if isinstance(expression, Not):
            return f"(NOT {self.condition(expression.operand)})"
        return self.truth(self.value(expression))

    def value(self, expression: Expression) -> Value:
        """Raises NotExact, as well for one whose SQL would be too long: a column that is used twice stands in
        it twice, so that columns made of each other would grow without end.
        """
        made = self._value(expression)
        if len(made.sql) > SQL_LENGTH_MAX:
            raise NotExact("an expression that is too long in SQL")
        return made

    def _value(self, expression: Expression) -> Value:
        match expression:
            case Variable(name=name):
                found = self.block.columns.get(name) or self.outer.get(name)
                return found if found is not None else _UNBOUND
            case Iri(value=iri):
                return self.block.names.constant(NamedNode(iri))
            case RdfLiteral():
                return self.block.names.constant(literal_of(expression))
            case And() | Or() | Not():
                return _truth(self.condition(expression))
            case Comparison():
                return self._comparison(expression)
            case In():
                return _truth(self._membership(expression))
            case Arithmetic():
                of_times = expression.rest[0][0] in "+-"
                first = self._operand(expression.first, of_times)
                steps = [(op, self._operand(part, of_times)) for op, part in expression.rest]
                return reduce(lambda left, step: arithmetic(step[0], left, step[1]), steps, first)
            case Signed():
                operand = self._operand(expression.operand, True)
                if expression.sign == "+":
                    return operand
                return replace(operand, sql=f"(-({operand.sql}))", constant=None)
            case BuiltInCall():
                return self._call(expression)
            case FunctionCall():
                arguments = [self.value(each) for each in expression.arguments]
                return cast_call(self.block, expression.function.value, arguments)
            case Aggregate():
                raise NotExact(f"{expression.name} outside of a group")
            case Exists():
                if self.exists is None:
                    raise NotExact("EXISTS within OPTIONAL's own condition")
                return _truth(self.exists(expression, self.block))
        raise NotExact("a triple term in an expression")

    def truth(self, value: Value) -> str:
        """The effective boolean value (SPARQL 1.1, section 17.2.2)."""
        match value.rep:
            case Rep.BOOLEAN:
                return value.sql
            case Rep.STRING:
                return f"({value.sql} <> '')" if value.lang is None else "NULL::BOOLEAN"
            case Rep.INTEGER | Rep.DECIMAL:
                return f"({value.sql} <> 0)"
            case Rep.DOUBLE | Rep.FLOAT:
                return f"({value.sql} <> 0 AND NOT isnan({value.sql}))"
        if Tag.TYPED in value.tags:
            raise NotExact("the truth of literals of other datatypes")
        branches = []
        if Tag.BOOLEAN in value.tags:
            branches.append((BOOLEAN, f"({value.sql} & {PAYLOAD_MASK}) = 1"))
        if Tag.STRING in value.tags:
            branches.append((frozenset((Tag.STRING,)), f"{lexical(self.block, value)} <> ''"))
        if value.tags & NUMBERS:
            number = as_number(self.block, value)
            branches.append((NUMBERS, self.truth(number)))
        whens = "".join(f" WHEN {has_tag(value, tags)} THEN {sql}" for tags, sql in branches)
        return f"CASE{whens} END" if whens else "NULL::BOOLEAN"

    def _operand(self, expression: Expression, of_times: bool) -> Value:
        """A number. Raises NotExact for what may be a date or a duration, where the operator has them too."""
        value = self.value(expression)
        if of_times and value.rep is Rep.ID and value.tags & _TIMES:
            raise NotExact("arithmetic of dates and durations")
        return as_number(self.block, value)

    def _comparison(self, expression: Comparison) -> Value:
        left, right = self.value(expression.left), self.value(expression.right)
        match expression.operator:
            case "=":
                return _truth(equal(self.block, left, right))
            case "!=":
                return _truth(f"(NOT {equal(self.block, left, right)})")
        if left.lang or right.lang:
            raise NotExact("an order of computed strings with a language")
        return _truth(compared(self.block, expression.operator, left, right))

    def _membership(self, expression: In) -> str:
        value = self.value(expression.expression)
        options = [self.value(option) for option in expression.options]
        if not options:
            raise NotExact("IN of nothing")  # to the engine an error, where the value has no truth
        if (
            value.rep is Rep.ID
            and value.tags <= _PLAIN
            and all(option.constant is not None and option.tags <= _PLAIN for option in options)
        ):
            found = f"({value.sql} IN ({', '.join(option.sql for option in options)}))"
        else:
            found = "(" + " OR ".join(equal(self.block, value, option) for option in options) + ")"
        return f"(NOT {found})" if expression.negated else found

    def _call(self, call: BuiltInCall) -> Value:
        match call.name, call.arguments:
            case "BOUND", (Variable() as variable,):
                return replace(_truth(bound(self.value(variable))), nullable=False)
            case "IF", (test, first, second):
                branches = _alike([self.value(first), self.value(second)])
                test_sql = self.condition(test)
                sql = f"CASE WHEN {test_sql} THEN {branches[0].sql} "
                sql += f"WHEN NOT {test_sql} THEN {branches[1].sql} END"
                return _one_of(branches, sql, nullable=True)
            case "COALESCE", (_, *_) as options:
                branches = _alike([self.value(option) for option in options])
                sql = f"COALESCE({', '.join(branch.sql for branch in branches)})"
                return _one_of(branches, sql, nullable=all(branch.nullable for branch in branches))
            case "SAMETERM", (first, second):
                left, right = as_id(self.value(first)), as_id(self.value(second))
                return _truth(f"({left.sql} = {right.sql})")
        function = FUNCTIONS.get(call.name)
        if function is None:
            raise NotExact(call.name)
        return function(self.block, [self.value(argument) for argument in call.arguments])


def _truth(sql: str) -> Value:
    return Value(sql, Rep.BOOLEAN, BOOLEAN)


def _one_of(branches: list[Value], sql: str, *, nullable: bool) -> Value:
    """A choice among values that stand in SQL in the same way."""
    tags = frozenset[Tag]().union(*(branch.tags for branch in branches))
    is_local = all(branch.is_local for branch in branches)
    return replace(branches[0], sql=sql, tags=tags, nullable=nullable, constant=None, is_local=is_local)


def _alike(values: list[Value]) -> list[Value]:
    """Values in one representation, for one column."""
    if any(value.lang for value in values):
        raise NotExact("a choice among computed strings with a language")
    known = [value for value in values if value is not _UNBOUND]
    if len({(value.rep, value.scale) for value in known}) > 1:
        return [as_id(value) for value in values]
    return [
        replace(known[0], sql="NULL", constant=None) if value is _UNBOUND and known else value
        for value in values
    ]


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that all hold where this one does; none of None."""
    if isinstance(condition, And):
        for operand in condition.operands:
            yield from conjuncts(operand)
    elif condition is not None:
        yield condition


def narrow(block: Block, condition: Expression) -> None:
    """Note what one of `conjuncts` that holds says of the kinds of a variable's terms."""
    match condition:
        case BuiltInCall(name=name, arguments=(Variable(name=variable),)) if name in KINDS_OF_TERMS:
            value = block.columns.get(variable)
            if value is not None and value.rep is Rep.ID and value.constant is None:
                kinds = value.tags & KINDS_OF_TERMS[name]
                block.columns[variable] = replace(value, tags=kinds or value.tags, nullable=False)
