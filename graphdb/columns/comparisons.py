"""=, < and the orders of ORDER BY, MIN and MAX, as the engine has them, with NULL for its errors.

SQL sorts by the order of `graphdb.sparql.term_order` where all literals are of one kind. Other orders are
left to a reader.
"""

from collections.abc import Iterator

from graphdb.columns.blocks import Block, as_id, kind_is, lexical
from graphdb.columns.numbers import any_double, compared_numbers, exact_number
from graphdb.columns.term_ids import XSD, Tag
from graphdb.columns.values import (
    BOOLEAN,
    DATES,
    DOUBLES,
    NUMBERS,
    NotExact,
    Rep,
    Tags,
    Value,
    has_tag,
    inexact,
    payload,
    quoted,
)

__all__ = ["compared", "equal", "sort_keys", "sort_value", "tie_keys"]

_ZONELESS = {Tag.DATE_TIME: Tag.DATE_TIME_UTC, Tag.DATE: Tag.DATE_UTC}
_ZONE = {Tag.DATE_TIME: 14 * 3600 * 10**6, Tag.DATE: 0}  # 14 hours in the units of the payload, whole ones
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNORDERED = frozenset((Tag.IRI, Tag.BLANK_NODE))  # but the same term is <= itself
_NO_LITERAL = frozenset((Tag.IRI, Tag.BLANK_NODE, Tag.LANGUAGE_STRING, Tag.TRIPLE))
_TEXTS = (Tag.BLANK_NODE, Tag.IRI)
_EXACT = frozenset((Tag.INTEGER, Tag.DECIMAL, Tag.BIG_INTEGER, Tag.BIG_DECIMAL))
_TYPES = tuple(
    frozenset(pair)
    for pair in (
        (Tag.INTEGER, Tag.BIG_INTEGER),
        (Tag.DECIMAL, Tag.BIG_DECIMAL),
        (Tag.DOUBLE, Tag.BIG_DOUBLE),
    )
)
_INLINE_EXACT = frozenset((Tag.INTEGER, Tag.DECIMAL))
_DECIMALS = frozenset((Tag.DECIMAL, Tag.BIG_DECIMAL))


def compared(block: Block, operator: str, left: Value, right: Value) -> str:
    """left < right, or with > <= >=: NULL where the engine knows no order."""
    branches: list[tuple[Tags, Tags, str]] = []  # the tags of either side, and what holds for these

    def add(tags: Tags, sql: str) -> None:
        branches.append((tags, tags, sql))

    common = left.tags & right.tags
    if left.tags & NUMBERS and right.tags & NUMBERS:
        add(NUMBERS, compared_numbers(block, operator, left, right))
    if Tag.STRING in common:
        sql = f"{lexical(block, left)} {operator} {lexical(block, right)}"
        add(frozenset((Tag.STRING,)), sql)
    if Tag.LANGUAGE_STRING in common:
        sql = f"{lexical(block, left)} {operator} {lexical(block, right)}"
        same = f"{_language(block, left)} = {_language(block, right)}"
        add(frozenset((Tag.LANGUAGE_STRING,)), f"CASE WHEN {same} THEN {sql} END")
    if Tag.TRIPLE in common:
        raise NotExact("an order of triple terms")
    if unordered := common & _UNORDERED:
        same = f"{as_id(left).sql} = {as_id(right).sql}"
        is_whole = "TRUE" if operator in ("<=", ">=") else "FALSE"
        add(unordered, f"CASE WHEN {same} THEN {is_whole} END")
    if Tag.BOOLEAN in common:
        add(BOOLEAN, f"{as_id(left).sql} {operator} {as_id(right).sql}")
    for tag in sorted(common & DATES):
        add(frozenset((tag,)), f"{left.sql} {operator} {right.sql}")
    branches += _across_zones(block, operator, left, right)
    branches += _compared_typed(block, operator, left, right)
    if len(branches) == 1 and left.tags <= branches[0][0] and right.tags <= branches[0][1]:
        return f"({branches[0][2]})"
    whens = "".join(
        f" WHEN {kind_is(left, *tags)} AND {kind_is(right, *others)} THEN {sql}"
        for tags, others, sql in branches
    )
    return f"CASE{whens} END" if whens else "NULL::BOOLEAN"


def _across_zones(block: Block, operator: str, left: Value, right: Value) -> Iterator[tuple[Tags, Tags, str]]:
    """Dates with and without a time zone: ordered where they are more than 14 hours apart, which a zone can
    be from UTC (XML Schema, part 2, section 3.2.7.4).
    """
    is_less, is_greater = ("TRUE", "FALSE") if operator[0] == "<" else ("FALSE", "TRUE")
    for local, utc in _ZONELESS.items():
        for one, other in ((local, utc), (utc, local)):
            if one in left.tags and other in right.tags:
                if not block.names.catalog.compares_dates:
                    raise NotExact("an order of dates with and without a time zone")
                apart = f"({payload(left)} - {payload(right)})"
                sql = f"CASE WHEN {apart} < {-_ZONE[local]} THEN {is_less} WHEN {apart} > {_ZONE[local]} "
                yield frozenset((one,)), frozenset((other,)), f"{sql}THEN {is_greater} END"


def _compared_typed(
    block: Block, operator: str, left: Value, right: Value
) -> Iterator[tuple[Tags, Tags, str]]:
    """Literals of other datatypes and a date: an error, unless they are of XML Schema too."""
    for typed, other, turned in ((left, right, operator), (right, left, _MIRRORED[operator])):
        if Tag.TYPED in typed.tags & other.tags:
            raise NotExact("comparison with literals of other datatypes")
        if Tag.TYPED in typed.tags and other.tags & DATES and _is_xsd(block, typed):
            sql = _asked(block, turned, typed, other)
            if sql is None:
                raise NotExact("comparison with literals of other datatypes")
            kinds = frozenset((Tag.TYPED,)), other.tags
            yield (*(kinds if typed is left else kinds[::-1]), sql)


def _asked(block: Block, operator: str, typed: Value, other: Value) -> str | None:
    """Literals of other datatypes of XML Schema and a constant, as the engine compares them; None where the
    other is not constant, or they are many.
    """
    if not block.names.catalog.compares_dates or other.constant is None or typed.constant is not None:
        return None
    truths = block.names.catalog.compared_with_typed(operator, block.names.literal_of(other.constant))
    if truths is None:
        return None
    whens = "".join(
        f" WHEN {typed.sql} IN ({', '.join(map(str, numbers))}) THEN {truth}"
        for truth, numbers in truths.items()
        if numbers
    )
    return f"CASE{whens} END" if whens else "NULL::BOOLEAN"


def equal(block: Block, left: Value, right: Value) -> str:
    """left = right."""
    if left.lang or right.lang:
        raise NotExact("= of computed strings with a language")
    common = left.tags & right.tags
    if Tag.TRIPLE in common:
        raise NotExact("= of triple terms")
    branches = []
    if Tag.TYPED in left.tags | right.tags:
        branches.append(_typed(block, left, right))
    if left.rep is right.rep is Rep.ID:
        last = f"{left.sql} = {right.sql}"
    elif Rep.STRING in (left.rep, right.rep) and Tag.STRING in common:
        last = f"{lexical(block, left)} = {lexical(block, right)}"
        branches += [f"WHEN NOT {kind_is(each, Tag.STRING)} THEN FALSE" for each in (left, right)]
    elif left.rep is right.rep is Rep.BOOLEAN:
        last = f"{left.sql} = {right.sql}"
    elif Tag.BOOLEAN in common:
        raise NotExact("= of a stored and a computed truth value")
    else:
        last = f"CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL THEN FALSE END"
    numbers = left.tags & NUMBERS, right.tags & NUMBERS
    if all(numbers) and (numbers[0] != numbers[1] or len(numbers[0]) > 1 or not _is_by_id(left, right)):
        both = f"{kind_is(left, *NUMBERS)} AND {kind_is(right, *NUMBERS)}"
        branches.append(f"WHEN {both} THEN {compared_numbers(block, '=', left, right)}")
    if not branches:
        return f"({last})"
    unbound = [f"{value.sql} IS NULL" for value in (left, right) if value.nullable]
    if unbound:
        branches.insert(0, f"WHEN {' OR '.join(unbound)} THEN NULL")
    return f"CASE {' '.join(branches)} ELSE {last} END"


def _is_by_id(left: Value, right: Value) -> bool:
    """Whether two numbers of the same one tag are equal exactly where their ids are."""
    only = left.tags & NUMBERS
    return left.rep is right.rep is Rep.ID and not only & {Tag.BIG_DOUBLE, Tag.BIG_FLOAT}


def _typed(block: Block, left: Value, right: Value) -> str:
    """= with a literal of another datatype: an error, unless the other is no literal or has a language.

    Of the other datatypes of XML Schema the engine knows some (durations, times), whose values equal no other
    ones, and some literals of them are none (`"x"^^xsd:time`).
    """
    if Tag.TYPED in left.tags and Tag.TYPED in right.tags:
        raise NotExact("= of literals of other datatypes")
    typed, other = (left, right) if Tag.TYPED in left.tags else (right, left)
    terms = other.tags & _NO_LITERAL
    if other.tags != terms and _is_xsd(block, typed):
        sql = None if terms else _asked(block, "=", typed, other)
        if sql is None:
            raise NotExact("= with literals of other datatypes of XML Schema")
        return f"WHEN {kind_is(typed, Tag.TYPED)} THEN {sql}"
    if not terms:
        return f"WHEN {kind_is(typed, Tag.TYPED)} THEN NULL"
    return f"WHEN {kind_is(typed, Tag.TYPED)} AND NOT {kind_is(other, *terms)} THEN NULL"


def _is_xsd(block: Block, typed: Value) -> bool:
    """Whether a literal of another datatype can be one of XML Schema."""
    if typed.constant is not None:
        return block.names.datatype_of(typed.constant).startswith(XSD)
    return block.names.catalog.has_other_xsd()


def _language(block: Block, value: Value) -> str:
    if value.constant is not None:
        return quoted(block.names.language_of(value.constant))
    return block.lookup(value)["lang"]


def sort_keys(block: Block, value: Value, descending: bool) -> list[str]:
    """What sorts by one condition of ORDER BY. Raises NotExact where literals of several kinds may meet."""
    direction = "DESC NULLS LAST" if descending else "ASC NULLS FIRST"
    if value.constant is not None:
        return []  # to DuckDB, a number alone is the place of a column
    if value.rep is not Rep.ID:
        return [f"{sort_value(block, value)} {direction}"]
    kinds = _kinds(value)
    if not kinds:
        return []
    if len(kinds) == 1:
        return [f"{_key(block, value, kinds[0])} {direction}"]
    ranks = " ".join(f"WHEN {has_tag(value, kind)} THEN {rank}" for rank, kind in enumerate(kinds))
    keys = [f"CASE {ranks} END {direction}"]
    for kind in kinds:
        keys.append(f"CASE WHEN {has_tag(value, kind)} THEN {_key(block, value, kind)} END {direction}")
    return keys


def tie_keys(value: Value, descending: bool) -> list[str]:
    """What sorts terms of equal value, after all conditions of an ORDER BY."""
    if value.rep is not Rep.ID:
        return []
    later = value.tags & _DECIMALS if value.tags & (_EXACT - _DECIMALS) else frozenset[Tag]()
    if Tag.BIG_DOUBLE in value.tags:  # a zero among these is the negative one
        later = value.tags & {Tag.DOUBLE}
    direction = "DESC" if descending else "ASC"
    return [f"CASE WHEN {has_tag(value, later)} THEN 1 ELSE 0 END {direction}"] if later else []


def sort_value(block: Block, value: Value) -> str:
    """One expression that sorts terms of one kind; the value itself where it sorts as its terms do."""
    match value.rep:
        case Rep.BOOLEAN:
            raise NotExact("an order of truth values")
        case Rep.DOUBLE | Rep.FLOAT:
            return f"CASE WHEN isnan({value.sql}) THEN {inexact('an order with NaN')} ELSE {value.sql} END"
        case Rep.ID:
            kinds = _kinds(value)
            if len(kinds) > 1:
                raise NotExact("the least of terms of several kinds")
            if kinds and any(
                len(kinds[0] & each) < len(kinds[0] & NUMBERS) for each in _TYPES if kinds[0] & each
            ):
                raise NotExact("the least of numbers of several types")
            return _key(block, value, kinds[0]) if kinds else value.sql
    return value.sql


def _kinds(value: Value) -> list[frozenset[Tag]]:
    """The tags in groups that sort one after the other."""
    if Tag.TRIPLE in value.tags:
        raise NotExact("an order of triple terms")
    kinds = [frozenset((tag,)) for tag in _TEXTS if tag in value.tags]
    literals = value.tags.difference(_TEXTS)
    if literals:
        kinds.append(literals)
    return kinds


def _key(block: Block, value: Value, kind: frozenset[Tag]) -> str:
    if kind <= frozenset(_TEXTS) or kind == {Tag.STRING}:
        return lexical(block, value)
    if kind == {Tag.LANGUAGE_STRING}:
        if len(block.names.catalog.languages()) > 1:
            raise NotExact("an order of strings of several languages")
        return lexical(block, value)
    if len(kind) == 1 and kind <= DATES | _INLINE_EXACT | {Tag.DOUBLE, Tag.FLOAT}:
        return value.sql
    if kind <= _EXACT:
        number = exact_number(block, value)
        assert number is not None
        return number.sql
    if kind <= DOUBLES:
        double = any_double(block, value)
        return f"CASE WHEN isnan({double}) THEN {inexact('an order with NaN')} ELSE {double} END"
    raise NotExact("an order of literals of several kinds")
