"""`Moment`: which state of the past is asked for, by a log index or by a time."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graphdb.errors import InvalidParameter
from graphdb.sparql.syntax import AS_OF_SCHEME, Query

__all__ = ["Moment", "moment_of_query", "read_moment"]

_NAME = "as_of"
_INDEX = re.compile(r"\d{1,18}", re.ASCII)  # a log index is less than 2^63
_TIME = re.compile(  # RFC 3339, section 5.6
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at a log index; or, where that is None, after the last entry that is not after time_ms,
    milliseconds since 1970.
    """

    text: str  # as the client has sent it
    log_index: int | None
    time_ms: int = 0

    def __str__(self) -> str:
        return self.text


def read_moment(text: str, name: str = _NAME) -> Moment:
    """A log index, or a time of RFC 3339. name: of the parameter. Raises InvalidParameter."""
    if _INDEX.fullmatch(text):
        return Moment(text, int(text))
    found = _TIME.fullmatch(text)
    if found is None:
        hint = "; a + in an address is written %2B" if " " in text else ""
        raise InvalidParameter(
            name,
            f"{text[:_SHOWN_CHARACTERS]!r} is neither a log index nor a time like 2026-11-27T08:00:00Z{hint}",
        )
    day, time, fraction, sign, hours, minutes = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC)
        if sign is not None:
            if int(hours) > 23 or int(minutes) > 59:
                raise ValueError("an offset of a day or more")
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            at = at - offset if sign == "+" else at + offset
    except (ValueError, OverflowError):
        shown = text[:_SHOWN_CHARACTERS]
        raise InvalidParameter(name, f"{shown!r} is not a time that there is") from None
    milliseconds = int(((fraction or "") + "000")[:3])
    return Moment(text, None, int(at.timestamp()) * 1000 + milliseconds)


def moment_of_query(query: Query) -> Moment | None:
    """The state that a query asks for by `FROM <as-of:...>`; None without that. Raises InvalidParameter."""
    if not query.dataset:
        return None
    clauses = [clause for clause in query.dataset if clause.names_state]
    if not clauses:
        return None
    if len(clauses) > 1:
        raise InvalidParameter("FROM", "asks for more than one state")
    if clauses[0].named:
        raise InvalidParameter("FROM NAMED", f"<{AS_OF_SCHEME}...> stands in a FROM without NAMED")
    return read_moment(clauses[0].graph.value.removeprefix(AS_OF_SCHEME))
