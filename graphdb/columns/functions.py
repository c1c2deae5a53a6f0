"""The built-in functions that mean in SQL exactly what they mean in the engine."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pyoxigraph import NamedNode

from graphdb.columns.blocks import Block, kind_is, lexical
from graphdb.columns.numbers import as_double, as_float, as_number, guarded
from graphdb.columns.term_ids import OFFSET, PAYLOAD_MASK, Tag
from graphdb.columns.text_order import Bound, UnorderedError
from graphdb.columns.values import (
    BOOLEAN,
    DATES,
    NUMBERS,
    STRINGS,
    NotExact,
    Rep,
    Value,
    has_tag,
    inexact,
    payload,
    quoted,
)

__all__ = ["FUNCTIONS", "cast_call", "text_of"]

Function: TypeAlias = Callable[[Block, Sequence[Value]], Value]
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_STRING: Final = frozenset((Tag.STRING,))
_INTEGER: Final = frozenset((Tag.INTEGER,))
_RESOURCES: Final = frozenset((Tag.IRI, Tag.BLANK_NODE, Tag.TRIPLE))
# What RE2 and the engine read alike: no classes with a backslash, whose letters differ.
_SAFE_PATTERN: Final = re.compile(r"[A-Za-z0-9 _,:;@#%&=~'\"/<>!\-^$.*+?|()\[\]À-ɏ]*|")
_LISTED_MAX: Final = 200  # of an IN, which DuckDB tests one after the other
_INTEGERS_END: Final = 9_223_372_036_854_775_807  # to the engine, a larger double is no integer
_TWO_DATES: Final = frozenset((Tag.DATE_TIME, Tag.DATE_TIME_UTC))


def text_of(block: Block, value: Value) -> Value:
    """STR."""
    match value.rep:
        case Rep.STRING:
            return Value(value.sql, Rep.STRING, _STRING, value.nullable)
        case Rep.INTEGER:
            return Value(f"({value.sql})::VARCHAR", Rep.STRING, _STRING, value.nullable)
        case Rep.BOOLEAN:
            return Value(f"({value.sql})::VARCHAR", Rep.STRING, _STRING, value.nullable)
        case Rep.DECIMAL | Rep.DOUBLE | Rep.FLOAT:
            raise NotExact(f"the text of a computed {value.rep.value}")
    branches = []
    texts = value.tags & {Tag.IRI, Tag.STRING, Tag.LANGUAGE_STRING, Tag.TYPED, *(t for t in Tag if t >= 20)}
    if value.tags & (DATES | {Tag.DOUBLE, Tag.FLOAT}):
        raise NotExact("the text of dates, doubles and floats")
    if texts:
        branches.append(f"WHEN {has_tag(value, texts)} THEN {lexical(block, value)}")
    if Tag.INTEGER in value.tags:
        branches.append(f"WHEN {has_tag(value, _INTEGER)} THEN ({payload(value)})::VARCHAR")
    if Tag.BOOLEAN in value.tags:
        one = f"({value.sql} & {PAYLOAD_MASK}) = 1"
        branches.append(f"WHEN {has_tag(value, BOOLEAN)} THEN ({one})::VARCHAR")
    if Tag.DECIMAL in value.tags:
        number = f"(({payload(value)})::DECIMAL(20,0) * 0.000001::DECIMAL(7,6))::VARCHAR"
        text = f"rtrim(rtrim({number}, '0'), '.')"
        branches.append(f"WHEN {has_tag(value, (Tag.DECIMAL,))} THEN {text}")
    nullable = value.nullable or not value.tags.isdisjoint({Tag.BLANK_NODE, Tag.TRIPLE})
    if value.tags == texts:
        return Value(lexical(block, value), Rep.STRING, _STRING, nullable)
    return Value(f"CASE {' '.join(branches)} END" if branches else "NULL", Rep.STRING, _STRING, nullable)


def _string(block: Block, value: Value) -> Value:
    """A string argument, with its language where it can have one; NULL for anything else."""
    if value.rep is Rep.STRING:
        return value
    tags = value.tags & STRINGS
    if value.rep is not Rep.ID or not tags:
        return Value("NULL::VARCHAR", Rep.STRING, _STRING)
    sql = guarded(value, tags, lexical(block, value))
    nullable = value.nullable or value.tags != tags
    if Tag.LANGUAGE_STRING not in tags:
        return Value(sql, Rep.STRING, _STRING, nullable)
    if value.constant is not None:
        lang = quoted(block.names.language_of(value.constant))
    else:
        lang = block.lookup(value)["lang"]
    return Value(sql, Rep.STRING, tags, nullable, lang=lang)


def _needle(block: Block, hay: Value, value: Value) -> str:
    """The second argument, NULL where the two are not compatible (section 17.4.3.1.2)."""
    text = _string(block, value)
    if text.lang is None:
        return text.sql
    if hay.lang is None:
        return guarded(value, _STRING, text.sql) if value.rep is Rep.ID else "NULL::VARCHAR"
    return f"CASE WHEN {text.lang} IS NULL OR {text.lang} = {hay.lang} THEN {text.sql} END"


def _found(name: str) -> Function:
    def call(block: Block, arguments: Sequence[Value]) -> Value:
        needle = arguments[1]
        if name == "starts_with" and needle.constant is not None and needle.only is Tag.STRING:
            listed = _with_prefix(block, arguments[0], block.names.lexical_of(needle.constant))
            if listed is not None:
                return listed
        hay = _string(block, arguments[0])
        return _truth(f"{name}({hay.sql}, {_needle(block, hay, needle)})")

    return call


def _with_prefix(block: Block, value: Value, prefix: str) -> Value | None:
    """Whether a string begins with a text, by the numbers of those that do; None where they are many, or not
    in order.
    """
    tags = value.tags & STRINGS
    if value.rep is not Rep.ID or value.constant is not None or not tags:
        return None
    order = block.names.catalog.text_order()
    try:
        numbers = None if order is None else order.listed(Bound.of_prefix(prefix), _LISTED_MAX)
    except UnorderedError:
        return None
    if numbers is None:
        return None
    # no number is negative: FALSE of a term, NULL of none
    found = f"({value.sql} IN ({', '.join(map(str, numbers))}))" if numbers else f"({value.sql} < 0)"
    return _truth(guarded(value, tags, found))


def _beside(name: str) -> Function:
    """STRBEFORE and STRAFTER: what is not found leaves a plain empty string, whatever the language was."""

    def call(block: Block, arguments: Sequence[Value]) -> Value:
        hay = _string(block, arguments[0])
        needle = _needle(block, hay, arguments[1])
        place = f"strpos({hay.sql}, {needle})"
        part = f"left({hay.sql}, {place} - 1)"
        if name == "after":
            part = f"substring({hay.sql}, {place} + length({needle}))"
        sql = f"CASE WHEN {place} = 0 THEN '' WHEN {place} > 0 THEN {part} END"
        lang = None if hay.lang is None else f"CASE WHEN {place} > 0 THEN {hay.lang} END"
        return Value(sql, Rep.STRING, hay.tags, lang=lang)

    return call


def _strlen(block: Block, arguments: Sequence[Value]) -> Value:
    text = _string(block, arguments[0])
    return Value(f"length({text.sql})", Rep.INTEGER, _INTEGER, text.nullable)


def _cased(name: str) -> Function:
    """Letters beyond ASCII that become several letters are the engine's: DuckDB keeps them one."""

    def call(block: Block, arguments: Sequence[Value]) -> Value:
        text = _string(block, arguments[0])
        if name == "lower":
            odd = f"contains({text.sql}, 'İ') OR contains({text.sql}, 'Σ')"
        else:
            odd = f"strlen({text.sql}) <> length({text.sql})"
        sql = f"CASE WHEN {odd} THEN {inexact('letters beyond ASCII')} ELSE {name}({text.sql}) END"
        return Value(sql, Rep.STRING, text.tags, text.nullable, lang=text.lang)

    return call


def _substr(block: Block, arguments: Sequence[Value]) -> Value:
    text = _string(block, arguments[0])
    numbers = [as_number(block, argument) for argument in arguments[1:]]
    if any(number.rep is not Rep.INTEGER for number in numbers):
        raise NotExact("SUBSTR by numbers that are no integers")
    if any(argument.constant is None for argument in arguments[1:]):
        raise NotExact("SUBSTR by numbers that are not constant")
    bounds = [int(number.sql) for number in numbers]
    if bounds[0] < 1 or (len(bounds) > 1 and bounds[1] < 0):
        raise NotExact("SUBSTR from before the first character")
    sql = f"substring({', '.join([text.sql, *map(str, bounds)])})"
    return Value(sql, Rep.STRING, text.tags, text.nullable, lang=text.lang)


def _concat(block: Block, arguments: Sequence[Value]) -> Value:
    texts = [_string(block, argument) for argument in arguments]
    if any(text.lang is not None for text in texts):
        raise NotExact("CONCAT of strings that may have a language")
    sql = " || ".join(text.sql for text in texts)
    return Value(f"({sql})" if sql else "''", Rep.STRING, _STRING, any(text.nullable for text in texts))


def _regex(block: Block, arguments: Sequence[Value]) -> Value:
    text = _string(block, arguments[0])
    pattern = _constant_text(block, arguments[1], "REGEX with a pattern that is not constant")
    flags = _constant_text(block, arguments[2], "REGEX with flags") if len(arguments) > 2 else ""
    if flags not in ("", "i") or not _SAFE_PATTERN.fullmatch(pattern) or "(?" in pattern or "[[" in pattern:
        raise NotExact("REGEX that the two engines may read differently")
    if not flags and re.fullmatch(r"\^?[A-Za-z0-9 _]*", pattern):
        listed = _with_prefix(block, arguments[0], pattern[1:]) if pattern.startswith("^") else None
        if listed is not None:
            return listed
        name = "starts_with" if pattern.startswith("^") else "contains"
        return _truth(f"{name}({text.sql}, {quoted(pattern.removeprefix('^'))})")
    option = ", 'i'" if flags else ""
    return _truth(f"regexp_matches({text.sql}, {quoted(pattern)}{option})")


def _constant_text(block: Block, value: Value, refused: str) -> str:
    if value.constant is None or value.only is not Tag.STRING:
        raise NotExact(refused)
    return block.names.lexical_of(value.constant)


def _tag_of(lang: str) -> str:
    """A language without its direction. DuckDB 2.0 fails at split_part where it knows that all are NULL."""
    return f"string_split({lang}, '--')[1]"


def _language(block: Block, arguments: Sequence[Value]) -> Value:
    value = arguments[0]
    if value.rep is not Rep.ID:
        own = "''" if value.lang is None else f"coalesce({_tag_of(value.lang)}, '')"
        sql = f"CASE WHEN {value.sql} IS NOT NULL THEN {own} END"
        return Value(sql, Rep.STRING, _STRING, value.nullable)
    if not value.tags & {Tag.LANGUAGE_STRING}:
        sql = guarded(value, frozenset(Tag) - _RESOURCES, "''")
        if value.nullable and not value.tags & _RESOURCES:
            sql = f"CASE WHEN {value.sql} IS NOT NULL THEN '' END"
        return Value(sql, Rep.STRING, _STRING)
    lang = _tag_of(block.lookup(value)["lang"])
    literals = value.tags - _RESOURCES
    whens = f"WHEN {has_tag(value, (Tag.LANGUAGE_STRING,))} THEN {lang}"
    if literals != {Tag.LANGUAGE_STRING}:
        whens += f" WHEN {has_tag(value, literals)} THEN ''"
    return Value(f"CASE {whens} END", Rep.STRING, _STRING)


def _lang_matches(block: Block, arguments: Sequence[Value]) -> Value:
    text = _string(block, arguments[0])
    language_range = _constant_text(block, arguments[1], "LANGMATCHES with a range that is not constant")
    if text.lang is not None:
        raise NotExact("LANGMATCHES of a string with a language")
    if language_range == "*":
        return _truth(f"({text.sql} <> '')")
    if not re.fullmatch("[A-Za-z0-9-]+", language_range):
        raise NotExact("LANGMATCHES with a range that is no language")
    lowered = f"lower({text.sql})"
    wanted = quoted(language_range.lower())
    return _truth(f"({lowered} = {wanted} OR starts_with({lowered}, {wanted} || '-'))")


def _kinds(*tags: Tag) -> Function:
    def call(block: Block, arguments: Sequence[Value]) -> Value:
        value = arguments[0]
        return Value(kind_is(value, *tags), Rep.BOOLEAN, BOOLEAN, value.nullable)

    return call


def _date_part(sql: str, *, of_time: bool) -> Function:
    def call(block: Block, arguments: Sequence[Value]) -> Value:
        value = arguments[0]
        if value.rep is not Rep.ID or Tag.TYPED in value.tags:
            raise NotExact("parts of dates that are not kept inline")
        branches = []
        if value.tags & _TWO_DATES:
            instant = f"make_timestamp(({value.sql} & {PAYLOAD_MASK}) - {OFFSET})"
            branches.append(f"WHEN {has_tag(value, _TWO_DATES)} THEN {sql.format(instant)}")
        days = value.tags & (DATES - _TWO_DATES)
        if days and not of_time:
            day = f"(DATE '1970-01-01' + (({value.sql} & {PAYLOAD_MASK}) - {OFFSET})::INTEGER)"
            branches.append(f"WHEN {has_tag(value, days)} THEN {sql.format(day)}")
        return Value(f"CASE {' '.join(branches)} END" if branches else "NULL::BIGINT", Rep.INTEGER, _INTEGER)

    return call


def _rounded(name: str) -> Function:
    def call(block: Block, arguments: Sequence[Value]) -> Value:
        number = as_number(block, arguments[0])
        if number.rep is Rep.INTEGER:
            return (
                Value(f"abs({number.sql})", Rep.INTEGER, _INTEGER, number.nullable)
                if name == "abs"
                else number
            )
        if number.rep in (Rep.DOUBLE, Rep.FLOAT):
            sql = f"{name}({number.sql})"
            if name == "round":  # DuckDB rounds a half away from zero, SPARQL up
                fraction = f"{number.sql} - trunc({number.sql})"
                sql = f"CASE WHEN {fraction} = -0.5 THEN ceil({number.sql}) ELSE {sql} END"
            return number.over(sql)
        if name == "abs":
            return number.over(f"abs({number.sql})")
        unit = f"{10**number.scale}::HUGEINT"
        value = f"({number.sql})::HUGEINT"
        match name:
            case "floor":
                sql = _floored(value, unit)
            case "ceil":
                sql = f"({value} // {unit} + CASE WHEN {value} % {unit} > 0 THEN 1 ELSE 0 END)"
            case _:
                sql = _floored(f"({value} + {unit} // 2)", unit)
        return Value(sql, Rep.DECIMAL, frozenset((Tag.DECIMAL,)), number.nullable, scale=0)

    return call


def _floored(value: str, unit: str) -> str:
    """How many whole units; `//` leaves out what is behind the point."""
    return f"({value} // {unit} - CASE WHEN {value} % {unit} < 0 THEN 1 ELSE 0 END)"


def _datatype(block: Block, arguments: Sequence[Value]) -> Value:
    value = arguments[0]
    names = {
        Tag.STRING: "string",
        Tag.INTEGER: "integer",
        Tag.DECIMAL: "decimal",
        Tag.DOUBLE: "double",
        Tag.BIG_DOUBLE: "double",
        Tag.BIG_INTEGER: "integer",
        Tag.BIG_DECIMAL: "decimal",
        Tag.BOOLEAN: "boolean",
        Tag.FLOAT: "float",
        Tag.BIG_FLOAT: "float",
        Tag.DATE: "date",
        Tag.DATE_UTC: "date",
        Tag.DATE_TIME: "dateTime",
        Tag.DATE_TIME_UTC: "dateTime",
    }
    if Tag.TYPED in value.tags or Tag.LANGUAGE_STRING in value.tags or value.lang:
        raise NotExact("DATATYPE of literals of other datatypes")
    whens = "".join(
        f" WHEN {kind_is(value, tag)} THEN {block.names.constant(NamedNode(_XSD + names[tag])).sql}"
        for tag in sorted(value.tags & names.keys())
    )
    return Value(f"CASE{whens} END" if whens else "NULL::BIGINT", Rep.ID, frozenset((Tag.IRI,)))


def cast_call(block: Block, function: str, arguments: Sequence[Value]) -> Value:
    """A call of a function that has an IRI: the casts of numbers to wider ones, and to strings."""
    name = function.removeprefix(_XSD)
    if name == function or len(arguments) != 1:
        raise NotExact(f"<{function}>")
    value = arguments[0]
    if name == "string":
        return text_of(block, value)
    if value.tags <= NUMBERS | {Tag.IRI, Tag.BLANK_NODE, Tag.LANGUAGE_STRING}:
        number = as_number(block, value)
        if name == "double":
            return Value(as_double(number), Rep.DOUBLE, frozenset((Tag.DOUBLE,)), number.nullable)
        if name == "float":
            return Value(as_float(number), Rep.FLOAT, frozenset((Tag.FLOAT,)), number.nullable)
        if (name, number.rep) in (("integer", Rep.INTEGER), ("decimal", Rep.DECIMAL)):
            return number
        if (name, number.rep) == ("decimal", Rep.INTEGER):
            return Value(number.sql, Rep.DECIMAL, frozenset((Tag.DECIMAL,)), number.nullable, scale=0)
        if (name, number.rep) == ("integer", Rep.DECIMAL):
            whole = f"(({number.sql})::HUGEINT // {10**number.scale}::HUGEINT)"
            return Value(whole, Rep.INTEGER, _INTEGER, number.nullable)
        if name == "integer":
            sql = f"CASE WHEN abs({number.sql}) < {_INTEGERS_END} THEN trunc({number.sql})::BIGINT END"
            return Value(sql, Rep.INTEGER, _INTEGER)
    if value.rep is Rep.BOOLEAN and name == "integer":
        return Value(f"({value.sql})::BIGINT", Rep.INTEGER, _INTEGER, value.nullable)
    if value.tags <= _STRING and name == "integer":
        text = _string(block, value).sql
        sql = f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]{{1,18}}') THEN ({text})::BIGINT "
        sql += f"WHEN regexp_matches({text}, '[0-9]') THEN {inexact('integer of many digits')} END"
        return Value(sql, Rep.INTEGER, _INTEGER)
    if value.tags <= _STRING and name in ("double", "float"):
        text = _string(block, value).sql
        form = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
        sql = f"CASE WHEN regexp_full_match({text}, '{form}') THEN ({text})::{name.upper()} "
        sql += f"WHEN regexp_matches({text}, '[0-9]|INF|NaN') THEN {inexact(name)} END"
        rep, tag = (Rep.DOUBLE, Tag.DOUBLE) if name == "double" else (Rep.FLOAT, Tag.FLOAT)
        return Value(sql, rep, frozenset((tag,)))
    raise NotExact(f"the cast to xsd:{name}")


def _truth(sql: str) -> Value:
    return Value(f"({sql})", Rep.BOOLEAN, BOOLEAN)


FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": _rounded("abs"),
    "CEIL": _rounded("ceil"),
    "CONCAT": _concat,
    "CONTAINS": _found("contains"),
    "DATATYPE": _datatype,
    "DAY": _date_part("day({})", of_time=False),
    "FLOOR": _rounded("floor"),
    "HOURS": _date_part("hour({})", of_time=True),
    "ISBLANK": _kinds(Tag.BLANK_NODE),
    "ISIRI": _kinds(Tag.IRI),
    "ISLITERAL": _kinds(*(frozenset(Tag) - _RESOURCES)),
    "ISNUMERIC": _kinds(*NUMBERS),
    "ISTRIPLE": _kinds(Tag.TRIPLE),
    "ISURI": _kinds(Tag.IRI),
    "LANG": _language,
    "LANGMATCHES": _lang_matches,
    "LCASE": _cased("lower"),
    "MINUTES": _date_part("minute({})", of_time=True),
    "MONTH": _date_part("month({})", of_time=False),
    "REGEX": _regex,
    "ROUND": _rounded("round"),
    "STR": lambda block, arguments: text_of(block, arguments[0]),
    "STRAFTER": _beside("after"),
    "STRBEFORE": _beside("before"),
    "STRENDS": _found("ends_with"),
    "STRLEN": _strlen,
    "STRSTARTS": _found("starts_with"),
    "SUBSTR": _substr,
    "UCASE": _cased("upper"),
    "YEAR": _date_part("year({})", of_time=False),
}
