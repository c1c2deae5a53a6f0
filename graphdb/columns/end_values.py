"""Aggregates over one triple pattern from the values of one of its ends: `values_aggregated`.

Each distinct term at this end stands with its number of quads. What filters and aggregates need of it is
computed once for each term, in SQL or from the order of texts, and kept as an array beside the terms: no quad
is read, and no text of a string that is compared by its order. What is not exact in whole numbers of 64 bits,
and what depends on an error, is left to SQL.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from graphdb.columns.blocks import Block, Names
from graphdb.columns.catalog import Catalog, PredicateTable
from graphdb.columns.compiler import MARK
from graphdb.columns.expressions import Expressions, conjuncts
from graphdb.columns.numbers import as_number
from graphdb.columns.term_ids import INLINE_TAGS, PAYLOAD_BITS, XSD, Tag, inline_literal, tag_of
from graphdb.columns.text_order import Bound, TextOrder, UnorderedError
from graphdb.columns.values import DATES, STRINGS, NotExact, Rep, Tags, Value
from graphdb.sparql.algebra import Algebra, Bgp, Exists, Expression, Filter
from graphdb.sparql.patterns import Aggregate, BuiltInCall, Comparison, FunctionCall, TriplePattern
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import all_below, nodes_below

__all__ = ["EndTerms", "values_aggregated"]

Ids: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
_VALUES_MAX: Final = 4_000_000  # distinct terms at one end: 64 MB with their numbers of quads
_SUM_MAX: Final = 2.0**62
_UNITS_END: Final = 1 << 127  # of the engine's decimals, in units of 10^-18
_LOW: Final = 10**9
_PLACES: Final = 18  # of a decimal
_XSD_STRING: Final = XSD + "string"
_IN_ORDER: Final = DATES | {Tag.INTEGER, Tag.DECIMAL, Tag.DOUBLE, Tag.FLOAT}
_EXACT_TYPES: Final = (
    frozenset((Tag.INTEGER, Tag.BIG_INTEGER)),
    frozenset((Tag.DECIMAL, Tag.BIG_DECIMAL)),
)
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class EndTerms:
    """The distinct terms at one end of the quads of a predicate, ascending, and the quads of each, (n,)."""

    ids: Ids
    quads: Ids

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.quads.nbytes


@dataclass(frozen=True, slots=True)
class _Column:
    """What an expression gives for each term, (n,): high, or high * 10^9 + low, both with the same sign, in
    units of 10^-scale. valid is False where it is an error or no value, None if it nowhere is. rep is
    INTEGER, DECIMAL or BOOLEAN.
    """

    high: Ids
    low: Ids | None
    valid: Bools | None
    rep: Rep
    scale: int = 0

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.high, self.low, self.valid) if part is not None)


@dataclass(frozen=True, slots=True)
class _Text:
    text: str

    @property
    def nbytes(self) -> int:
        return len(self.text)


class _LeftError(Exception):
    """What SQL has to compute."""


def values_aggregated(
    where: Algebra, aggregates: Sequence[tuple[Variable, Aggregate]], catalog: Catalog
) -> dict[Variable, str] | None:
    """The value of each aggregate over all solutions of a pattern, as a computed cell of `compiler`. None of
    what has to be computed in SQL.
    """
    end = _End.of(where, aggregates, catalog)
    if end is None:
        return None
    try:
        kept = end.filtered()
        return {variable: end.aggregated(aggregate, kept) for variable, aggregate in aggregates}
    except (_LeftError, NotExact, UnorderedError):
        return None


@dataclass(frozen=True, slots=True)
class _End:
    """One end of one triple pattern that filters and aggregates name, and no other variable."""

    name: str
    predicate: int
    column: str
    table: PredicateTable
    filters: list[Expression]
    where: Algebra
    catalog: Catalog

    @classmethod
    def of(
        cls, where: Algebra, aggregates: Sequence[tuple[Variable, Aggregate]], catalog: Catalog
    ) -> "_End | None":
        """None of everything that is not so."""
        filters, pattern = list[Expression](), where
        while isinstance(pattern, Filter):
            filters += conjuncts(pattern.expression)
            pattern = pattern.pattern
        match pattern:
            case Bgp(triples=(TriplePattern(subject, Iri(value=iri), object_),)):
                ends = [_name(subject), _name(object_)]
            case _:
                return None
        asked = [each for _, each in aggregates if each.name != "COUNT" or each.distinct]
        used = {node.name for node in all_below(*filters, *asked) if isinstance(node, Variable)}
        if None in ends or ends[0] == ends[1] or len(used) != 1 or not used <= set(ends):
            return None
        if any(isinstance(node, Exists) for node in nodes_below(*filters)):
            return None
        number = catalog.id_of(NamedNode(iri))
        table = None if number is None else catalog.predicates.get(number)
        if number is None or table is None:
            return None
        counted = {each.expression for _, each in aggregates} - {None}
        if any(isinstance(each, Variable) and each.name not in ends for each in counted):
            return None
        [name] = used
        column = "s" if name == ends[0] else "o"
        if (table.subjects if column == "s" else table.objects) > _VALUES_MAX:
            return None
        return cls(name, number, column, table, filters, where, catalog)

    @property
    def _tags(self) -> Tags:
        return self.catalog.tags(self.predicate, self.column)

    @property
    def _source(self) -> str:
        where = f" WHERE p = {self.predicate}" if self.table.table == "rest" else ""
        return f"FROM {self.table.table}{where}"

    @property
    def terms(self) -> EndTerms:
        return self._kept("terms", self._read_terms)  # type: ignore[no-any-return]

    def _kept(self, key: str, make: Callable[[], Any]) -> Any:
        return self.catalog.arrays.get(((self.predicate,), self.column, key), make)

    def _read_terms(self) -> EndTerms:
        found = self.catalog.connection.execute(f"SELECT {self.column} AS id {self._source}").fetchnumpy()
        ids, quads = np.unique(found["id"], return_counts=True)
        return EndTerms(ids, quads)

    def filtered(self) -> EndTerms:
        """The terms that all filters let pass."""
        terms = self.terms
        quads = terms.quads
        for condition in self.filters:
            quads = quads * self._passing(condition)
        return EndTerms(terms.ids, quads)

    def aggregated(self, aggregate: Aggregate, kept: EndTerms) -> str:
        rows = int(kept.quads.sum())
        expression = aggregate.expression
        match aggregate.name:
            case "COUNT" if expression is None and not aggregate.distinct:
                return _integer(rows)
            case "COUNT" if isinstance(expression, Variable) and not aggregate.distinct:
                return _integer(rows)
            case "COUNT" if isinstance(expression, Variable):
                return _integer(int(np.count_nonzero(kept.quads)))
            case "SUM" | "AVG" if expression is not None and rows and not aggregate.distinct:
                column = self._number(expression)
                total = _total(column, kept.quads)
                if aggregate.name == "AVG":
                    whole = abs(total) * 10 ** (_PLACES - column.scale) // rows
                    return _decimal(-whole if total < 0 else whole, _PLACES)
                return _integer(total) if column.rep is Rep.INTEGER else _decimal(total, column.scale)
            case "MIN" | "MAX" as name if isinstance(expression, Variable) and rows:
                return self._text(self._extremes(expression, kept)[name == "MAX"])
        raise _LeftError

    def _extremes(self, variable: Variable, kept: EndTerms) -> tuple[int, int]:
        """The terms with the least and the greatest value."""
        having = kept.quads > 0
        ids = kept.ids[having]
        if len(self._tags) == 1 and self._tags <= _IN_ORDER:
            return int(ids[0]), int(ids[-1])
        if self._tags == {Tag.STRING}:
            order = self.catalog.text_order()
            if order is not None:
                return order.extremes(ids)
        if not any(self._tags <= of_one_type for of_one_type in _EXACT_TYPES):
            raise _LeftError
        column = self._number(variable)
        if column.valid is not None and not column.valid[having].all():
            raise _LeftError
        found = np.lexsort([part[having] for part in (column.low, column.high) if part is not None])
        return int(ids[found[0]]), int(ids[found[-1]])

    def _text(self, number: int) -> str:
        """A term in N-Triples."""
        if tag_of(number) in INLINE_TAGS:
            return str(inline_literal(number))
        sql = f"SELECT text FROM terms WHERE id = {number}"
        text: _Text = self._kept(sql, lambda: _Text(self.catalog.connection.execute(sql).fetchall()[0][0]))
        return text.text

    def _passing(self, condition: Expression) -> Bools:
        """Where a condition is true."""
        by_text = self._by_text(condition)
        if by_text is not None:
            return by_text[1]
        column = self._in_sql(condition, _truth)
        found: Bools = column.high != 0
        return found if column.valid is None else found & column.valid

    def _number(self, expression: Expression) -> _Column:
        match expression:
            case FunctionCall(function=Iri(value=cast), arguments=(BuiltInCall() as test,)) if (
                cast == XSD + "integer" and (by_text := self._by_text(test)) is not None
            ):
                tags, found = by_text
                kinds = [self.terms.ids >> PAYLOAD_BITS == tag for tag in tags]
                valid = None if self._tags <= tags else np.logical_or.reduce(kinds)
                return _Column(found.astype(np.int64), None, valid, Rep.INTEGER)
        return self._in_sql(expression, _summand)

    def _by_text(self, condition: Expression) -> tuple[Tags, Bools] | None:
        """A test of strings that their order answers: the tags of terms for which it has a truth, and where
        it is true; None of any other test, and while there is no order.
        """
        tested = _text_test(condition, self.name)
        order = None if tested is None else self.catalog.text_order()
        if tested is None or order is None:
            return None
        tags, test = tested
        try:
            found = test(order, self.terms.ids)
        except UnorderedError:
            return None
        for tag in (self._tags & STRINGS) - tags:
            found &= self.terms.ids >> PAYLOAD_BITS != tag
        return tags, found

    def _in_sql(self, expression: Expression, made: Callable[[Expressions, Expression], Value]) -> _Column:
        """Computed for each term. Raises NotExact, _LeftError."""
        block = Block(
            Names(self.catalog, self.where), [f"(SELECT DISTINCT {self.column} AS c0 {self._source}) q"]
        )
        block.columns[self.name] = Value("q.c0", Rep.ID, self._tags, nullable=False)
        value = made(Expressions(block), expression)
        if value.rep not in (Rep.INTEGER, Rep.DECIMAL, Rep.BOOLEAN):
            raise _LeftError  # sums of doubles depend on their order
        if "error(" in value.sql:
            raise _LeftError  # a failure would end the transaction
        # a term that is filtered out may fail; of a filter itself, a failure is no answer
        whole = f"({value.sql})" if made is _truth else f"TRY({value.sql})"
        parts = f"TRY_CAST({whole} AS BIGINT) AS high"
        if value.rep is Rep.DECIMAL:
            parts = ", ".join(
                f"TRY_CAST({whole}::HUGEINT {operator} {_LOW}::HUGEINT AS BIGINT) AS {part}"
                for operator, part in (("//", "high"), ("%", "low"))
            )
        sql = f"SELECT q.c0 AS id, {parts}{block.rest()}"
        return self._kept(sql, lambda: self._computed(sql, value))  # type: ignore[no-any-return]

    def _computed(self, sql: str, value: Value) -> _Column:
        """Raises duckdb.Error where a filter fails, as the SQL of the whole query would."""
        found: dict[str, Any] = self.catalog.connection.execute(sql).fetchnumpy()
        order = np.argsort(found["id"])
        if len(order) != len(self.terms.ids):
            raise _LeftError
        high = found["high"][order]
        low = np.ma.filled(found["low"][order], 0) if "low" in found else None
        valid = ~np.ma.getmaskarray(high) if np.ma.is_masked(high) else None
        return _Column(np.ma.filled(high, 0), low, valid, value.rep, value.scale)


def _truth(expressions: Expressions, condition: Expression) -> Value:
    return Value(expressions.condition(condition), Rep.BOOLEAN, frozenset((Tag.BOOLEAN,)))


def _summand(expressions: Expressions, expression: Expression) -> Value:
    return as_number(expressions.block, expressions.value(expression))


def _text_test(condition: Expression, name: str) -> tuple[Tags, Callable[[TextOrder, Ids], Bools]] | None:
    """A test of the strings of a variable by their order, and for which terms it has a truth."""
    match condition:
        case BuiltInCall(name="STRSTARTS", arguments=(Variable(name=named), RdfLiteral() as start)) if (
            named == name and start.datatype == _XSD_STRING and start.language is None
        ):
            prefix = Bound.of_prefix(start.value)
            return STRINGS, lambda order, ids: order.within(prefix, ids)
        case BuiltInCall(name="REGEX", arguments=(Variable(name=named), RdfLiteral() as pattern)) if (
            named == name and pattern.datatype == _XSD_STRING and _is_plain_prefix(pattern.value)
        ):
            prefix = Bound.of_prefix(pattern.value[1:])
            return STRINGS, lambda order, ids: order.within(prefix, ids)
        case Comparison(operator=operator, left=left, right=RdfLiteral() as text) if operator in _MIRRORED:
            return _compared(operator, left, text, name)
        case Comparison(operator=operator, left=RdfLiteral() as text, right=right) if operator in _MIRRORED:
            return _compared(_MIRRORED[operator], right, text, name)
    return None


def _compared(
    operator: str, side: Expression, text: RdfLiteral, name: str
) -> tuple[Tags, Callable[[TextOrder, Ids], Bools]] | None:
    if text.datatype != _XSD_STRING or text.language is not None:
        return None
    match side:
        case Variable(name=named) if named == name and operator != "=":
            bound = Bound.compared(operator, text.value)
            return frozenset((Tag.STRING,)), lambda order, ids: order.within(bound, ids)
        case BuiltInCall(name="LANG", arguments=(Variable(name=named),)) if named == name and operator == "=":
            wanted = text.value
            if wanted:
                return STRINGS, lambda order, ids: order.in_language(wanted.__eq__, ids)
    return None


def _is_plain_prefix(pattern: str) -> bool:
    """Whether a regular expression asks for a text at the beginning, and both engines read it alike."""
    return (
        pattern.startswith("^")
        and pattern[1:].replace(" ", "").replace("_", "").isalnum()
        and pattern.isascii()
    )


def _name(term: object) -> str | None:
    match term:
        case Variable(name=name):
            return name
        case BlankNodeLabel(label=label):
            return f"_:{label}"
    return None


def _total(column: _Column, quads: Ids) -> int:
    """The sum over all quads, exact. Raises _LeftError."""
    if column.rep is Rep.BOOLEAN or (column.valid is not None and (quads[~column.valid] > 0).any()):
        raise _LeftError
    if column.low is None:
        return _summed(column.high, quads)
    return _summed(column.high, quads) * _LOW + _summed(column.low, quads)


def _summed(values: Ids, quads: Ids) -> int:
    # no @ of doubles: BLAS wakes threads of its own for it
    if float((np.abs(values.astype(np.float64)) * quads).sum()) >= _SUM_MAX:
        raise _LeftError
    return int((values * quads).sum())


def _integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def _decimal(value: int, scale: int) -> str:
    units = value * 10 ** (_PLACES - scale)
    if abs(units) >= _UNITS_END:
        raise _LeftError
    return f"{MARK}D{units}"
