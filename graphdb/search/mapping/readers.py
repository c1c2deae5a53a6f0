"""From one JSON value to what a segment stores for it, by field type."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.addresses import address_term
from graphdb.search.mapping.date_formats import DEFAULT_NANOS_FORMAT, date_format
from graphdb.search.mapping.numbers import FLOAT_TYPES, INTEGER_RANGES, float_reader, integer_reader
from graphdb.search.mapping.points import point_of

__all__ = ["Read", "checked_nanos", "reader_of", "text_of"]

Read = Callable[[Any], Any]
"""None is the answer for a value that counts as none. Errors: SearchError, the cause of the document's."""

_TERM_BYTES_MAX = 32_766


def reader_of(type_name: str, path: str, options: Mapping[str, Any]) -> Read:
    """What reads the values of a field; options are a FieldSpec's."""
    if type_name in INTEGER_RANGES:
        return integer_reader(type_name, options["coerce"])
    if type_name in FLOAT_TYPES:
        return float_reader(type_name, options["coerce"], options.get("scaling_factor") or 1.0)
    if type_name == "date":
        parse = date_format(options["format"]).parse
        return lambda value: parse(text_of(value))
    if type_name == "date_nanos":
        parse_nanos = date_format(options["format"]).parse_nanos
        return lambda value: checked_nanos(parse_nanos(text_of(value)))
    if type_name == "geo_point":
        return lambda value: point_of(value, path, options["ignore_z_value"])
    if type_name in ("keyword", "wildcard"):
        return _keyword_reader(path, options.get("normalize"))
    return {"boolean": _boolean, "ip": _address, "binary": _binary}.get(type_name, text_of)


def text_of(value: Any) -> str:
    """A value as text, as it stands in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        token = "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
        raise SearchError("illegal_state_exception", f"Can't get text on a {token}")
    return json.dumps(value)


def checked_nanos(nanos: int) -> int:
    """Nanoseconds since 1970, given that date_nanos has them: from 1970 to 2262.

    Source: Elasticsearch's DateUtils.toLong.
    """
    if 0 <= nanos < 2**63:
        return nanos
    where = "before the epoch in 1970" if nanos < 0 else "after 2262-04-11T23:47:16.854775807"
    text = date_format(DEFAULT_NANOS_FORMAT).write_nanos(nanos)
    raise illegal_argument(f"date[{text}] is {where} and cannot be stored in nanosecond resolution")


def _keyword_reader(path: str, normalize: Callable[[str], str] | None) -> Read:
    def read(value: Any) -> str:
        text = value if isinstance(value, str) else text_of(value)
        term = text if normalize is None else normalize(text)
        if len(term) * 4 > _TERM_BYTES_MAX and len(term.encode()) > _TERM_BYTES_MAX:
            raise illegal_argument(
                f'Document contains at least one immense term in field="{path}" (whose UTF8 encoding is '
                f"longer than the max length {_TERM_BYTES_MAX}), all of which were skipped. Please correct "
                "the analyzer to not produce such terms. The prefix of the first immense term is: "
                f"'{list(term[:30].encode())}...'"
            )
        return term

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
