"""=, < and the orders of ORDER BY, MIN and MAX, as the engine has them, with NULL for its errors.

SQL sorts by the order of `graphdb.sparql.term_order` where all literals are of one kind. Other orders are
left to a reader.
"""

from graphdb.columns.blocks import Block, as_id, kind_is, lexical
from graphdb.columns.numbers import any_double, compared_numbers, exact_number
from graphdb.columns.term_ids import XSD, Tag
from graphdb.columns.values import DATES, DOUBLES, NUMBERS, NotExact, Rep, Value, has_tag, inexact, quoted

__all__ = ["compared", "equal", "sort_keys", "sort_value", "tie_keys"]

_ZONELESS = {Tag.DATE_TIME: Tag.DATE_TIME_UTC, Tag.DATE: Tag.DATE_UTC}
_UNORDERED = frozenset((Tag.IRI, Tag.BLANK_NODE, Tag.BOOLEAN))  # but the same term is <= itself
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
    _check_dates(left, right)
    branches = []
    common = left.tags & right.tags
    if left.tags & NUMBERS and right.tags & NUMBERS:
        branches.append((NUMBERS, compared_numbers(block, operator, left, right)))
    if Tag.STRING in common:
        sql = f"{lexical(block, left)} {operator} {lexical(block, right)}"
        branches.append((frozenset((Tag.STRING,)), sql))
    if Tag.LANGUAGE_STRING in common:
        sql = f"{lexical(block, left)} {operator} {lexical(block, right)}"
        same = f"{_language(block, left)} = {_language(block, right)}"
        branches.append((frozenset((Tag.LANGUAGE_STRING,)), f"CASE WHEN {same} THEN {sql} END"))
    if Tag.TRIPLE in common:
        raise NotExact("an order of triple terms")
    if unordered := common & _UNORDERED:
        same = f"{as_id(left).sql} = {as_id(right).sql}"
        is_whole = "TRUE" if operator in ("<=", ">=") else "FALSE"
        branches.append((unordered, f"CASE WHEN {same} THEN {is_whole} END"))
    for tag in sorted(common & DATES):
        branches.append((frozenset((tag,)), f"{left.sql} {operator} {right.sql}"))
    if len(branches) == 1 and left.tags <= branches[0][0] and right.tags <= branches[0][0]:
        return f"({branches[0][1]})"
    whens = "".join(
        f" WHEN {kind_is(left, *tags)} AND {kind_is(right, *tags)} THEN {sql}" for tags, sql in branches
    )
    return f"CASE{whens} END" if whens else "NULL::BOOLEAN"


def equal(block: Block, left: Value, right: Value) -> str:
    """left = right."""
    _check_dates(left, right)
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
        raise NotExact("= with literals of other datatypes of XML Schema")
    if not terms:
        return f"WHEN {kind_is(typed, Tag.TYPED)} THEN NULL"
    return f"WHEN {kind_is(typed, Tag.TYPED)} AND NOT {kind_is(other, *terms)} THEN NULL"


def _is_xsd(block: Block, typed: Value) -> bool:
    """Whether a literal of another datatype can be one of XML Schema."""
    if typed.constant is not None:
        return block.names.datatype_of(typed.constant).startswith(XSD)
    return block.names.catalog.has_other_xsd()


def _check_dates(left: Value, right: Value) -> None:
    tags = left.tags | right.tags
    mixed = any(first in tags and second in tags for first, second in _ZONELESS.items())
    if mixed and left.tags & DATES and right.tags & DATES:
        raise NotExact("comparison of dates with and without a time zone")
    for one, other in ((left, right), (right, left)):
        if Tag.TYPED in one.tags and other.tags & (DATES | {Tag.TYPED}):
            raise NotExact("comparison with literals of other datatypes")


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
