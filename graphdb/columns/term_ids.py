"""The number of a term in the column view, and the term of a number; `DESIGN.md` has the table of tags."""

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import IntEnum
from typing import Final

import regex
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

__all__ = [
    "BIG_DECIMAL_FORM",
    "DATE_FORM",
    "DATE_TIME_FORM",
    "DECIMAL_FORM",
    "DECIMAL_MAX",
    "DEFAULT_GRAPH",
    "DICTIONARY_TAGS",
    "DOUBLE_FORM",
    "INLINE_TAGS",
    "INTEGER_FORM",
    "OFFSET",
    "PAYLOAD_BITS",
    "PAYLOAD_MASK",
    "XSD",
    "Tag",
    "Term",
    "inline_id",
    "inline_literal",
    "tag_of",
    "tag_of_term",
    "tagged",
    "text_of",
]

Term = NamedNode | BlankNode | Literal | Triple
PAYLOAD_BITS: Final = 56
PAYLOAD_MASK: Final = (1 << PAYLOAD_BITS) - 1
OFFSET: Final = 1 << 55  # added to signed payloads
DEFAULT_GRAPH: Final = 0
XSD: Final = "http://www.w3.org/2001/XMLSchema#"


class Tag(IntEnum):
    """The upper 8 bits of a term's number. They are on disk: they never change meaning."""

    IRI = 1
    BLANK_NODE = 2
    STRING = 3
    LANGUAGE_STRING = 4
    TYPED = 5
    TRIPLE = 6
    INTEGER = 10
    DECIMAL = 11
    DOUBLE = 12
    FLOAT = 13
    BOOLEAN = 14
    DATE_TIME = 15
    DATE = 16
    DATE_TIME_UTC = 17
    DATE_UTC = 18
    BIG_INTEGER = 20
    BIG_DECIMAL = 21
    BIG_DOUBLE = 22
    BIG_FLOAT = 23


INLINE_TAGS: Final = frozenset(tag for tag in Tag if 10 <= tag <= 18)
DICTIONARY_TAGS: Final = frozenset(Tag) - INLINE_TAGS
_DATATYPES: Final = {
    Tag.INTEGER: NamedNode(XSD + "integer"),
    Tag.DECIMAL: NamedNode(XSD + "decimal"),
    Tag.DOUBLE: NamedNode(XSD + "double"),
    Tag.FLOAT: NamedNode(XSD + "float"),
    Tag.BOOLEAN: NamedNode(XSD + "boolean"),
    Tag.DATE_TIME: NamedNode(XSD + "dateTime"),
    Tag.DATE: NamedNode(XSD + "date"),
    Tag.DATE_TIME_UTC: NamedNode(XSD + "dateTime"),
    Tag.DATE_UTC: NamedNode(XSD + "date"),
}
INTEGER_FORM: Final = r"0|-?[1-9][0-9]{0,18}"
DECIMAL_FORM: Final = r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{0,5}[1-9])?"
BIG_DECIMAL_FORM: Final = r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{0,17}[1-9])?"
DOUBLE_FORM: Final = r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?|-?INF|NaN"
DATE_FORM: Final = r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}Z?"
DATE_TIME_FORM: Final = (
    r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{0,5}[1-9])?Z?"
)
DECIMAL_MAX: Final = 1.7014118346046923e20  # the engine has 128 bits, 18 digits of them after the point
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)


def tagged(tag: Tag, payload: int) -> int:
    """The number made of these."""
    return int(tag) * (1 << PAYLOAD_BITS) + payload


def tag_of(term_id: int) -> Tag:
    """Raises ValueError for DEFAULT_GRAPH, which is not a term."""
    return Tag(term_id >> PAYLOAD_BITS)


def text_of(term: Term) -> str:
    """A term in N-Triples, as `terms` has it. (pyoxigraph writes a triple as what stands in the brackets.)"""
    if not isinstance(term, Triple):
        return str(term)
    return f"<<( {text_of(term.subject)} {text_of(term.predicate)} {text_of(term.object)} )>>"


def inline_id(term: Term) -> int | None:
    """The number of a term, in the engine's form, that needs no dictionary; None for others."""
    if not isinstance(term, Literal) or not term.datatype.value.startswith(XSD):
        return None
    return _inline(term.value, term.datatype.value[len(XSD) :])


def tag_of_term(term: Term) -> Tag:
    """The tag of a term in the engine's form."""
    if isinstance(term, NamedNode):
        return Tag.IRI
    if isinstance(term, BlankNode):
        return Tag.BLANK_NODE
    if isinstance(term, Triple):
        return Tag.TRIPLE
    if term.language is not None:
        return Tag.LANGUAGE_STRING
    datatype = term.datatype.value
    if datatype == XSD + "string":
        return Tag.STRING
    if not datatype.startswith(XSD):
        return Tag.TYPED
    kind = datatype[len(XSD) :]
    inline = _inline(term.value, kind)
    return tag_of(inline) if inline is not None else _dictionary_tag(term.value, kind)


def inline_literal(term_id: int) -> Literal:
    """The term of a number with one of INLINE_TAGS."""
    tag, payload = tag_of(term_id), term_id & PAYLOAD_MASK
    return Literal(_lexical(tag, payload), datatype=_DATATYPES[tag])


@dataclass(frozen=True, slots=True)
class _Float:
    """A binary format: its order-preserving form and back."""

    value_code: str
    bits_code: str
    bits: int

    def ordered(self, value: float) -> int:
        bits: int = struct.unpack(self.bits_code, struct.pack(self.value_code, value))[0]
        top = 1 << (self.bits - 1)
        return bits ^ ((1 << self.bits) - 1) if bits & top else bits | top

    def value(self, ordered: int) -> float:
        top = 1 << (self.bits - 1)
        bits = ordered ^ top if ordered & top else ordered ^ ((1 << self.bits) - 1)
        (value,) = struct.unpack(self.value_code, struct.pack(self.bits_code, bits))
        return float(value)


_DOUBLE, _SINGLE = _Float(">d", ">Q", 64), _Float(">f", ">I", 32)


def _inline(lexical: str, kind: str) -> int | None:
    match kind:
        case "integer" if regex.fullmatch(INTEGER_FORM, lexical):
            value = int(lexical)
            return tagged(Tag.INTEGER, value + OFFSET) if -OFFSET <= value < OFFSET else None
        case "decimal" if lexical != "-0" and regex.fullmatch(DECIMAL_FORM, lexical):
            return tagged(Tag.DECIMAL, int(Decimal(lexical).scaleb(6)) + OFFSET)
        case "double" if regex.fullmatch(DOUBLE_FORM, lexical):
            return _inline_double(float(lexical))
        case "float" if regex.fullmatch(DOUBLE_FORM, lexical):
            number = float(lexical)
            return None if _is_odd(number) else tagged(Tag.FLOAT, _SINGLE.ordered(number))
        case "boolean" if lexical in ("true", "false"):
            return tagged(Tag.BOOLEAN, int(lexical == "true"))
        case "dateTime" if regex.fullmatch(DATE_TIME_FORM, lexical):
            return _inline_date_time(lexical)
        case "date" if regex.fullmatch(DATE_FORM, lexical):
            return _inline_date(lexical)
    return None


def _inline_double(number: float) -> int | None:
    if _is_odd(number):
        return None
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    return None if bits & 0xFF else tagged(Tag.DOUBLE, _DOUBLE.ordered(number) >> 8)


def _is_odd(number: float) -> bool:
    """NaN and -0, which are no value of their own place in the order."""
    return math.isnan(number) or (number == 0 and math.copysign(1, number) < 0)


def _inline_date_time(lexical: str) -> int | None:
    tag = Tag.DATE_TIME_UTC if lexical.endswith("Z") else Tag.DATE_TIME
    try:
        since = datetime.fromisoformat(lexical.removesuffix("Z")) - _EPOCH
    except ValueError:
        return None
    return tagged(tag, since // timedelta(microseconds=1) + OFFSET)


def _inline_date(lexical: str) -> int | None:
    tag = Tag.DATE_UTC if lexical.endswith("Z") else Tag.DATE
    try:
        since = date.fromisoformat(lexical.removesuffix("Z")) - _EPOCH_DAY
    except ValueError:
        return None
    return tagged(tag, since.days + OFFSET)


def _dictionary_tag(lexical: str, kind: str) -> Tag:
    match kind:
        case "integer" if regex.fullmatch(INTEGER_FORM, lexical) and -(1 << 63) <= int(lexical) < 1 << 63:
            return Tag.BIG_INTEGER
        case "decimal" if regex.fullmatch(BIG_DECIMAL_FORM, lexical) and abs(float(lexical)) < DECIMAL_MAX:
            return Tag.BIG_DECIMAL
        case "double" if regex.fullmatch(DOUBLE_FORM, lexical):
            return Tag.BIG_DOUBLE
        case "float" if regex.fullmatch(DOUBLE_FORM, lexical):
            return Tag.BIG_FLOAT
    return Tag.TYPED


def _lexical(tag: Tag, payload: int) -> str:
    match tag:
        case Tag.INTEGER:
            return str(payload - OFFSET)
        case Tag.DECIMAL:
            return _plain(Decimal(payload - OFFSET).scaleb(-6))
        case Tag.DOUBLE:
            is_negative = not payload >> (PAYLOAD_BITS - 1)
            return _written(_DOUBLE.value(payload << 8 | (0xFF if is_negative else 0)))
        case Tag.FLOAT:
            return _written_single(_SINGLE.value(payload))
        case Tag.BOOLEAN:
            return "true" if payload else "false"
        case Tag.DATE_TIME | Tag.DATE_TIME_UTC:
            text = (_EPOCH + timedelta(microseconds=payload - OFFSET)).isoformat()
            text = text.rstrip("0") if "." in text else text
            return text + ("Z" if tag is Tag.DATE_TIME_UTC else "")
        case Tag.DATE | Tag.DATE_UTC:
            text = (_EPOCH_DAY + timedelta(days=payload - OFFSET)).isoformat()
            return text + ("Z" if tag is Tag.DATE_UTC else "")
    raise ValueError(f"the tag {tag.name} is of the dictionary")


def _plain(value: Decimal) -> str:
    """Digits without an exponent and without trailing zeros after the point."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _written(number: float) -> str:
    """As the engine writes a double: the fewest digits that tell it from others, without an exponent."""
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return _plain(Decimal(repr(number)))


_SINGLE_MAX = Decimal(2**128 - 2**103 - 1)  # what is more is rounded to infinity


def _written_single(number: float) -> str:
    """As the engine writes a float: fewest digits that tell it from others; of two as near, the larger."""
    if math.isinf(number):
        return _written(number)
    for digits in range(1, 10):
        rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal_from_float(number)
        if abs(rounded) <= _SINGLE_MAX and struct.pack(">f", rounded) == struct.pack(">f", number):
            return _plain(rounded)
    raise AssertionError("nine digits tell any float from all others")
