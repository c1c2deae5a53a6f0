"""`Moment`: which state of the past is asked for, by a log index, a time or a name; and `index_of`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from graphdb.errors import HistoryForgotten, IndexNotReached, InvalidParameter
from graphdb.sparql.terms import AS_OF_SCHEME

if TYPE_CHECKING:
    from graphdb.sparql.syntax import Query

__all__ = ["NAME_RULE", "Moment", "index_of", "is_state_name", "moment_of_query", "read_moment"]

_PARAMETER = "as_of"
NAME_RULE = (
    "a letter, and up to 63 letters, digits, dots, hyphens and underscores of ASCII; not now"  # the present
)
_STATE_NAME = re.compile(r"(?!now\Z)[A-Za-z][A-Za-z0-9._-]{0,63}", re.ASCII)
_INDEX = re.compile(r"\d{1,18}", re.ASCII)  # a log index is less than 2^63
_TIME = re.compile(  # RFC 3339, section 5.6
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at a log index; where that is None, the one of a name; where that is None too, the one after
    the last entry that is not after time_ms, milliseconds since 1970.
    """

    text: str  # as the client has sent it
    log_index: int | None
    time_ms: int = 0
    name: str | None = None
    parameter: str = _PARAMETER  # that has asked for it

    def __str__(self) -> str:
        return self.text


class _Log(Protocol):
    """See `PastLog`."""

    def index_at(self, time_ms: int, last_index: int) -> int | None: ...
    def first_index(self, last_index: int) -> int: ...


def is_state_name(text: str) -> bool:
    """Whether a state can have this name. No name is a log index or a time."""
    return _STATE_NAME.fullmatch(text) is not None


def index_of(moment: Moment, log: _Log, last_index: int, named: Callable[[str], int | None]) -> int:
    """The log index of a moment, where last_index is the present. named: the log index of a named state.

    An index that is found may be older than what is kept. Raises InvalidParameter (no state has that name; a
    time before the first entry there was), HistoryForgotten (a time before the first entry that is kept),
    IndexNotReached (an index after last_index), LogUnavailable, CorruptionError.
    """
    if moment.log_index is not None:
        if moment.log_index > last_index:
            raise IndexNotReached(f"the node is at index {last_index}, not yet at {moment.log_index}")
        return moment.log_index
    if moment.name is not None:
        found = named(moment.name)
        if found is None:
            raise InvalidParameter(moment.parameter, f"no state has the name {moment.name}")
        return found
    found = log.index_at(moment.time_ms, last_index)
    if found is not None:
        return found
    first_index = log.first_index(last_index)
    if first_index > 1:
        raise HistoryForgotten(moment.text, first_index - 1)
    raise InvalidParameter(moment.parameter, f"{moment} is before the first change")


def read_moment(text: str, name: str = _PARAMETER) -> Moment:
    """A log index, a time of RFC 3339, or the name of a state. name: of the parameter.

    Raises InvalidParameter.
    """
    if _INDEX.fullmatch(text):
        return Moment(text, int(text), parameter=name)
    if is_state_name(text):
        return Moment(text, None, name=text, parameter=name)
    found = _TIME.fullmatch(text)
    if found is None:
        hint = "; a + in an address is written %2B" if " " in text else ""
        raise InvalidParameter(
            name,
            f"{text[:_SHOWN_CHARACTERS]!r} is no log index, no time like 2026-11-27T08:00:00Z, no name{hint}",
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
    return Moment(text, None, int(at.timestamp()) * 1000 + milliseconds, parameter=name)


def moment_of_query(query: "Query") -> Moment | None:
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
    text = clauses[0].graph.value.removeprefix(AS_OF_SCHEME)
    try:
        return read_moment(text)
    except InvalidParameter as error:
        raise InvalidParameter(
            "FROM",
            f"{error.reason}. Behind FROM, <{AS_OF_SCHEME}...> names a state of the past; GRAPH reads a "
            "graph of that name",
        ) from None
