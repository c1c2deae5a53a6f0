"""What an index and an alias may be called, and what a date within a name stands for."""

from graphdb.search.errors import SearchError
from graphdb.search.mapping.dates import date_format, date_math
from graphdb.search.mapping.instants import zone_of

__all__ = ["check_alias_name", "check_index_name", "check_template_name", "with_dates"]

_NAME_BYTES_MAX = 255
_FORBIDDEN = ' "*,/<>?\\|'
_DATE_FORMAT = "uuuu.MM.dd"
_ISO = date_format("strict_date_optional_time")


def check_index_name(name: str) -> None:
    """Errors: invalid_index_name_exception."""
    problem = _problem(name) or ("must be lowercase" if name != name.lower() else None)
    if problem is not None:
        shown = name[:_NAME_BYTES_MAX]
        metadata = {"index_uuid": "_na_", "index": shown}
        reason = f"Invalid index name [{shown}], {problem}"
        raise SearchError("invalid_index_name_exception", reason, 400, metadata)


def check_alias_name(name: str) -> None:
    """An alias may have capitals. Errors: invalid_alias_name_exception."""
    problem = _problem(name)
    if problem is not None:
        reason = f"Invalid alias name [{name[:_NAME_BYTES_MAX]}]: {problem}"
        raise SearchError("invalid_alias_name_exception", reason, 400)


def check_template_name(name: str) -> None:
    """Errors: invalid_index_template_exception."""
    problem = _problem(name) or ("must be lower cased" if name != name.lower() else None)
    if problem is not None:
        shown = name[:_NAME_BYTES_MAX]
        reason = f"index_template [{shown}] invalid, cause [Validation Failed: 1: name {problem};]"
        raise SearchError("invalid_index_template_exception", reason, 400)


def _problem(name: str) -> str | None:
    """What is wrong with a name, as Elasticsearch says it."""
    if not name:
        return "must not be empty"
    if any(char in _FORBIDDEN for char in name):
        listed = ",".join(f"'{char}'" for char in _FORBIDDEN)
        return f"must not contain the following characters [{listed}]"
    if "#" in name:
        return "must not contain '#'"
    if ":" in name:
        return "must not contain ':'"
    if name[0] in "_-+":
        return "must not start with '_', '-', or '+'"
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > _NAME_BYTES_MAX:
        return f"index name is too long, ({length} > {_NAME_BYTES_MAX})"
    if name in (".", ".."):
        return "must not be '.' or '..'"
    if any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in name):
        return "must not contain control characters"  # ours: it would break `_cat` and logs
    return None


def with_dates(name: str, now_ms: int) -> str:
    """`<logs-{now/d{yyyy.MM|+01:00}}>` with its dates written out; any other name as it is.

    Errors: parse_exception, illegal_argument_exception.
    """
    if not (name.startswith("<") and name.endswith(">")):
        return name
    parts: list[str] = []
    at, text = 0, name[1:-1]
    while at < len(text):
        if text[at] == "{":
            end = _closing(text, at, name)
            parts.append(_date(text[at + 1 : end], now_ms, name))
            at = end + 1
        elif text[at] == "}":
            reserved = "`{` and `}` are reserved characters"
            raise _unparsable(name, f"invalid character at position [{at}]. {reserved}")
        elif text[at] == "\\":
            parts.append(text[at + 1 : at + 2])
            at += 2
        else:
            parts.append(text[at])
            at += 1
    if not parts:
        raise _unparsable(name, "nothing captured")
    return "".join(parts)


def _closing(text: str, start: int, name: str) -> int:
    """The place of the `}` that belongs to the `{` at start; there may be one pair in between."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] == "{":
            depth += 1
            if depth > 2:
                raise _unparsable(name, "too many open `{`")
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place
    raise _unparsable(name, "date math placeholder is open ended")


def _date(expression: str, now_ms: int, name: str) -> str:
    """`now/d{format|zone}` as a text."""
    math, brace, rest = expression.partition("{")
    pattern, _, zone_name = rest.removesuffix("}").partition("|")
    if (brace and not rest.endswith("}")) or (brace and not pattern):
        raise _unparsable(name, "missing date format")
    zone = zone_of(zone_name or "UTC")
    return date_format(pattern or _DATE_FORMAT).write(date_math(math, _ISO, now_ms, False, zone), zone)


def _unparsable(name: str, why: str) -> SearchError:
    reason = f"invalid dynamic name expression [{name[1:-1][:_NAME_BYTES_MAX]}]. {why}"
    return SearchError("parse_exception", reason)
