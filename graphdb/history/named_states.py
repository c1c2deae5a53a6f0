"""Names that users give to states of the past, which are kept for as long as they have one: the commands that
change them in the log, and `NamedStateBook`, all of them as the log has them.

In bytes, for the data directory: `graphdb.checked_json` with the mark "GLST": `through` and the states.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import orjson

from graphdb.checked_json import ExpectedJson, from_checked_json, read_command, to_checked_json
from graphdb.errors import AlreadyExists, InvalidParameter, LimitExceeded, NotFound, RequestError
from graphdb.history.moments import NAME_RULE, is_state_name

__all__ = [
    "STATES_MAX",
    "ForgetState",
    "KeptState",
    "NameState",
    "NamedState",
    "NamedStateBook",
    "NamedStateCommand",
    "decode_named_state_command",
    "encode_named_state_command",
]

STATES_MAX = 1_000  # all are in memory, and written whole with each checkpoint

_MARK = b"GLST"
_KIND = "named state"


@dataclass(frozen=True, slots=True)
class NamedState:
    """The state at log_index. needed_from: the first entry that leads back to it (`PastLog.needed_from`).

    named_by: `Principal.qualified_name`, empty where nobody has signed in. named_at_ms: the clock of the node
    that was asked, Unix epoch.
    """

    name: str
    log_index: int
    needed_from: int
    named_by: str
    named_at_ms: int


class KeptState(NamedTuple):
    """A named state on one node: whether its history leads back to it, and the disk that the history takes
    from there on; what is in the log still does not count.
    """

    state: NamedState
    is_kept: bool
    history_bytes: int


@dataclass(frozen=True, slots=True)
class NameState:
    """A state has its name from here on; no effect where it has the name already."""

    state: NamedState
    do: Literal["name"] = "name"


@dataclass(frozen=True, slots=True)
class ForgetState:
    """The name means nothing any more."""

    name: str
    do: Literal["forget"] = "forget"


NamedStateCommand: TypeAlias = NameState | ForgetState
_COMMANDS = ExpectedJson[NamedStateCommand](NamedStateCommand, "do")


def encode_named_state_command(command: NamedStateCommand) -> bytes:
    """The payload of an entry. Raises TypeError for text that is no Unicode (a lone surrogate)."""
    return orjson.dumps(command)


def decode_named_state_command(payload: bytes) -> NamedStateCommand:
    """See `read_command`."""
    return read_command(payload, _COMMANDS, "named states")


@dataclass(frozen=True, slots=True)
class _State:
    through: int  # the log index of the last entry that was taken
    states: dict[str, NamedState]  # by name; it is not changed


_STATES = ExpectedJson[_State](_State)


class NamedStateBook:
    """Fed by a `Replayer` with every entry that concerns it, in order, on one thread; any may read.

    The same entries make the same names everywhere; a command that does not fit the present names has no
    effect.
    """

    def __init__(self) -> None:
        """Empty."""
        self._state = _State(0, {})  # another one after each change, so that readers need no lock

    @property
    def states(self) -> Mapping[str, NamedState]:
        """By name, in the order of the names."""
        return dict(sorted(self._state.states.items()))

    def find(self, name: str) -> NamedState:
        """Raises NotFound."""
        found = self._state.states.get(name)
        if found is None:
            raise NotFound(_KIND, name[:100])
        return found

    def index_of(self, name: str) -> int | None:
        """The log index that a name means; None where it means nothing."""
        found = self._state.states.get(name)
        return None if found is None else found.log_index

    @property
    def needed_from(self) -> int | None:
        """The first entry that a named state needs, and all after it; None without a named state."""
        return min((state.needed_from for state in self._state.states.values()), default=None)

    def plan(self, command: NamedStateCommand) -> bytes:
        """The payload of the entry that makes a command true.

        Raises InvalidParameter for what cannot be a name; AlreadyExists for the name of another state;
        NotFound, LimitExceeded.
        """
        if isinstance(command, NameState) and not is_state_name(command.state.name):
            raise InvalidParameter("name", f"{command.state.name[:100]!r} is not a name: {NAME_RULE}")
        count = len(self._changed(command))
        if count > STATES_MAX and count > len(self._state.states):
            raise LimitExceeded("number of named states", count, STATES_MAX)
        return encode_named_state_command(command)

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index. Raises CorruptionError."""
        if log_index <= self._state.through:
            return
        command, states = decode_named_state_command(payload), self._state.states
        with suppress(RequestError):  # on every node: it fitted nowhere
            states = self._changed(command)
        self._state = _State(log_index, states)

    def _changed(self, command: NamedStateCommand) -> dict[str, NamedState]:
        """All states behind a command. Raises AlreadyExists, NotFound where it does not fit."""
        states = self._state.states
        if isinstance(command, ForgetState):
            self.find(command.name)
            return {name: state for name, state in states.items() if name != command.name}
        state = command.state
        known = states.get(state.name)
        if known is None:
            return states | {state.name: state}
        if known.log_index != state.log_index:
            raise AlreadyExists(_KIND, state.name)
        return states

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        return to_checked_json(_MARK, self._state)

    @classmethod
    def from_bytes(cls, data: bytes) -> "NamedStateBook":
        """What to_bytes has written. Raises CorruptionError."""
        book = cls()
        book._state = from_checked_json(_MARK, data, _STATES, "the file of named states", "named-states")
        return book
