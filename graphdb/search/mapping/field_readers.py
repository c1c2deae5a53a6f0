"""From one JSON value to what a segment stores for it, by field type."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.dates import date_format
from graphdb.search.mapping.range_fields import RANGE_TYPES, range_reader
from graphdb.search.mapping.readers import (
    FLOAT_TYPES,
    INTEGER_RANGES,
    Read,
    address_term,
    checked_nanos,
    float_reader,
    integer_reader,
    point_of,
    text_of,
)
from graphdb.search.mapping.shapes import shape_of

__all__ = ["TERM_BYTES_MAX", "reader_of"]

TERM_BYTES_MAX = 32_766


def reader_of(type_name: str, path: str, options: Mapping[str, Any]) -> Read:
    """What reads the values of a field; options are a FieldSpec's."""
    if type_name in INTEGER_RANGES:
        return integer_reader(type_name, options["coerce"])
    if type_name in FLOAT_TYPES:
        return float_reader(type_name, options["coerce"], options.get("scaling_factor") or 1.0)
    if type_name == "rank_feature":
        return _feature_reader(path, options["positive_score_impact"])
    if type_name == "date":
        parse = date_format(options["format"]).parse
        return lambda value: parse(text_of(value))
    if type_name == "date_nanos":
        parse_nanos = date_format(options["format"]).parse_nanos
        return lambda value: checked_nanos(parse_nanos(text_of(value)))
    if type_name == "geo_point":
        return lambda value: point_of(value, path, options["ignore_z_value"])
    if type_name == "token_count":
        counts: Read = options["counts"]
        return counts
    if type_name == "geo_shape":
        return lambda value: shape_of(value, options["ignore_z_value"])
    if type_name in RANGE_TYPES:
        return range_reader(type_name, path, options)
    if type_name == "constant_keyword":
        return _constant_reader(path, options["value"])
    if type_name in ("keyword", "version", "wildcard"):
        return _keyword_reader(path, options.get("normalize"))
    return {"boolean": _boolean, "ip": _address, "binary": _binary}.get(type_name, text_of)


def _keyword_reader(path: str, normalize: Callable[[str], str] | None) -> Read:
    def read(value: Any) -> str:
        text = value if isinstance(value, str) else text_of(value)
        term = text if normalize is None else normalize(text)
        if len(term) * 4 > TERM_BYTES_MAX and len(term.encode()) > TERM_BYTES_MAX:
            raise illegal_argument(
                f'Document contains at least one immense term in field="{path}" (whose UTF8 encoding is '
                f"longer than the max length {TERM_BYTES_MAX}), all of which were skipped. Please correct "
                "the analyzer to not produce such terms. The prefix of the first immense term is: "
                f"'{list(term[:30].encode())}...'"
            )
        return term

    return read


def _constant_reader(path: str, constant: str | None) -> Read:
    """None is not known yet: then the first value that comes becomes it, see `dynamic.py`."""

    def read(value: Any) -> str:
        text = text_of(value)
        if constant is not None and text != constant:
            raise illegal_argument(
                f"[constant_keyword] field [{path}] only accepts values that are equal to the value defined "
                f"in the mappings [{constant}], but got [{text[:1000]}]"
            )
        return text

    return read


def _feature_reader(path: str, positive: bool) -> Read:
    """With the nine significant bits that Lucene keeps; the inverse where a greater value is worse."""
    read_number = float_reader("float", True)

    def read(value: Any) -> float | None:
        number = read_number(value)
        if number is None:
            return None
        least = float(np.finfo(np.float32).tiny)
        number = number if positive or number == 0 else float(np.float32(1 / number))
        if number < least:
            raise illegal_argument(
                f"featureValue must be a positive normal float, got: {number} for feature [{path}]"
            )
        bits = int(np.float32(number).view(np.int32)) >> 15 << 15
        return float(np.int32(bits).view(np.float32))

    return read


def _boolean(value: Any) -> int:
    if value is True or value == "true":
        return 1
    if value is False or value in ("false", ""):
        return 0
    raise illegal_argument(
        f"Failed to parse value [{text_of(value)[:100]}] as only [true] or [false] are allowed."
    )


def _address(value: Any) -> str:
    return address_term(text_of(value))


def _binary(value: Any) -> int:
    """Checked only: a binary field is in the source, elsewhere there is no more than that it has a value."""
    try:
        base64.b64decode(text_of(value), validate=True)
    except (binascii.Error, ValueError):
        raise illegal_argument("Illegal base64 character") from None
    return 0
