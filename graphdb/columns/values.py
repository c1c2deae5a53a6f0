"""What an expression of SQL stands for: a term's number or a computed value, and which terms it can be."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from graphdb.columns.term_ids import OFFSET, PAYLOAD_BITS, PAYLOAD_MASK, Tag

__all__ = [
    "ANY",
    "BOOLEAN",
    "DATES",
    "DICTIONARY",
    "DOUBLES",
    "NUMBERS",
    "SQL_LENGTH_MAX",
    "STRINGS",
    "Elsewhere",
    "NotExact",
    "Rep",
    "Tags",
    "Value",
    "has_tag",
    "inexact",
    "payload",
    "quoted",
]

Tags: TypeAlias = frozenset[Tag]
ANY: Final = frozenset(Tag)
NUMBERS: Final = frozenset(
    (
        Tag.INTEGER,
        Tag.DECIMAL,
        Tag.DOUBLE,
        Tag.FLOAT,
        Tag.BIG_INTEGER,
        Tag.BIG_DECIMAL,
        Tag.BIG_DOUBLE,
        Tag.BIG_FLOAT,
    )
)
DOUBLES: Final = frozenset((Tag.DOUBLE, Tag.BIG_DOUBLE))
STRINGS: Final = frozenset((Tag.STRING, Tag.LANGUAGE_STRING))
DATES: Final = frozenset((Tag.DATE_TIME, Tag.DATE, Tag.DATE_TIME_UTC, Tag.DATE_UTC))
BOOLEAN: Final = frozenset((Tag.BOOLEAN,))
SQL_LENGTH_MAX: Final = 1 << 18  # characters; DuckDB takes about a second to plan so much
DICTIONARY: Final = frozenset(tag for tag in Tag if not 10 <= tag <= 18)


class NotExact(Exception):
    """A construct that has no exact meaning in SQL; its argument names it."""


class Elsewhere(NotExact):
    """The text of a term is asked of a shard that may not have it."""


class Rep(Enum):
    """How a value stands in SQL. NULL is "unbound" and "error" in all of them."""

    ID = "id"  # BIGINT, a term's number
    INTEGER = "integer"  # BIGINT or HUGEINT, an xsd:integer
    DECIMAL = "decimal"  # BIGINT or HUGEINT, an xsd:decimal times 10^scale
    DOUBLE = "double"  # DOUBLE, an xsd:double
    FLOAT = "float"  # FLOAT, an xsd:float
    BOOLEAN = "boolean"  # BOOLEAN
    STRING = "string"  # VARCHAR, a plain string


@dataclass(frozen=True, slots=True)
class Value:
    """sql is an expression without side effects. tags are those that its terms can have, and only of
    computed values one; nullable says whether it can be NULL.

    constant is the number of a constant term, for Rep.ID. lang is an expression for the language that a
    computed string has, if any; such a string lives within an expression only. is_local: the terms are in
    quads of the database that the SQL runs in, so their texts are there too, also in one of several shards.
    """

    sql: str
    rep: Rep
    tags: Tags
    nullable: bool = True
    scale: int = 0
    constant: int | None = None
    lang: str | None = None
    is_local: bool = False

    def over(self, sql: str, nullable: bool | None = None) -> "Value":
        """The same kind of value out of another expression."""
        return replace(
            self,
            sql=sql,
            constant=None,
            nullable=self.nullable if nullable is None else nullable,
        )

    @property
    def only(self) -> Tag | None:
        """The tag, where there is only one that it can have."""
        return next(iter(self.tags)) if len(self.tags) == 1 else None


def quoted(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def inexact(reason: str) -> str:
    """An expression that ends the query: the reader has to answer it."""
    return f"error({quoted('not exact: ' + reason)})"


def has_tag(value: Value, tags: Iterable[Tag]) -> str:
    """Whether a term has one of these tags: an expression that is NULL where the term is."""
    possible = sorted(frozenset(tags) & value.tags)
    if value.constant is not None or frozenset(possible) == value.tags:
        whether = bool(possible)
        if not value.nullable:
            return "TRUE" if whether else "FALSE"
        return f"({value.sql} IS NOT NULL OR NULL)" if whether else f"({value.sql} IS NULL AND NULL)"
    if not possible:
        return "FALSE" if not value.nullable else f"({value.sql} < 0)"
    runs: list[tuple[Tag, Tag]] = []
    for tag in possible:
        if runs and not any(runs[-1][1] < other < tag for other in value.tags):
            runs[-1] = (runs[-1][0], tag)
        else:
            runs.append((tag, tag))
    parts = [
        f"{value.sql} BETWEEN {first << PAYLOAD_BITS} AND {(last << PAYLOAD_BITS) | PAYLOAD_MASK}"
        for first, last in runs
    ]
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def payload(value: Value) -> str:
    """The signed payload of an inline number, decimal or date."""
    if value.constant is not None:
        return str((value.constant & PAYLOAD_MASK) - OFFSET)
    if value.only is not None:
        return f"({value.sql} - {(value.only << PAYLOAD_BITS) + OFFSET})"
    return f"(({value.sql} & {PAYLOAD_MASK}) - {OFFSET})"
