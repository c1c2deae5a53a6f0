"""Alert definitions: their condition, and the state of an alert."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from graphdb.alerts.signature import signing_key
from graphdb.errors import InvalidParameter
from graphdb.timestamps import iso_timestamp

__all__ = ["Alert", "Condition", "Definition", "Delivery", "Value", "iso_time", "number_of"]

# The condition of an alert: `result`, a comparison, a number.

Value: TypeAlias = int | float  # integers are exact, whatever their size

_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_TEXT = re.compile(
    r"\s*result\s*(?P<comparison>[<>]=?|[=!]=)\s*"
    r"(?P<number>[+-]?(?:[0-9]+(?P<fraction>\.[0-9]*)?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]+)?)\s*"
)
_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """What a result is compared with, and how."""

    comparison: str
    number: Value

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raises InvalidParameter where the text is not of the form `result > 5`."""
        found = _TEXT.fullmatch(text) if len(text) <= _CHARACTERS_MAX else None
        if found is None:
            raise InvalidParameter(
                "condition",
                f"has to be the word result, one of {' '.join(_COMPARISONS)} and a number: result > 5",
            )
        return cls(found["comparison"], number_of(found["number"]))

    def holds(self, value: Value) -> bool:
        """Whether it holds for a result; for what is no number (NaN) only != does."""
        return _COMPARISONS[self.comparison](value, self.number)


def number_of(text: str) -> Value:
    """A number as it is written: whole ones exactly. Raises ValueError."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)


# What an alert is, as its maker has said it, and what becomes of it: the nouns of this room.

NAME_CHARACTERS_MAX = 200
WEBHOOK_CHARACTERS_MAX = 2_048
SECRET_CHARACTERS = 16, 512
INTERVAL_SECONDS_MAX = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Definition:
    """The members of the creation body, and whose it is. The query, and where the webhook leads, are checked
    elsewhere.

    maker: who has made it and does not see everything. sight: what they saw of the graph
    (`graphdb.access.visibility.Visibility.to_json`), and the query sees; None: everything. Logs have it by
    this name.
    """

    name: str
    query: str
    condition: str  # see `Condition`
    interval_seconds: int
    webhook: str
    notify: Literal["interval", "change"] = "interval"  # change: only when the condition begins to hold
    secret: str | None = field(default=None, repr=False)  # what deliveries are signed with
    maker: str | None = None
    sight: str | None = None

    def check(self) -> None:
        """Raises InvalidParameter for what no alert can be."""
        if not self.name.strip() or not self.name.isprintable():
            raise InvalidParameter("name", "has to be printable text, and some")
        _check_length("name", self.name, 1, NAME_CHARACTERS_MAX)
        Condition.parse(self.condition)
        if not 1 <= self.interval_seconds <= INTERVAL_SECONDS_MAX:
            raise InvalidParameter("interval_seconds", f"has to be 1 to {INTERVAL_SECONDS_MAX}")
        _check_length("webhook", self.webhook, 1, WEBHOOK_CHARACTERS_MAX)
        if self.secret is not None:
            _check_length("secret", self.secret, *SECRET_CHARACTERS)
            signing_key(self.secret)


def _check_length(name: str, text: str, least: int, most: int) -> None:
    if not least <= len(text) <= most:
        raise InvalidParameter(name, f"has {len(text)} characters; {least} to {most} are allowed")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One firing, and what has become of telling it. Times are milliseconds of the Unix epoch."""

    id: str  # the receiver sees it as well: the same however often it is tried
    fired_at_ms: int
    snapshot_index: int
    value: Value | None  # None for what JSON cannot express
    body: str = field(repr=False)  # what is sent; "" once it is settled
    status: Literal["pending", "delivered", "failed"] = "pending"
    attempts: int = 0
    status_code: int | None = None  # of the last answer
    error: str | None = None
    finished_at_ms: int | None = None

    def shown(self) -> dict[str, Any]:
        """As `GET /alerts/{id}/history` tells it."""
        return {
            "id": self.id,
            "fired_at": iso_time(self.fired_at_ms),
            "snapshot_index": self.snapshot_index,
            "result": self.value,
            "status": self.status,
            "attempts": self.attempts,
            "status_code": self.status_code,
            "error": self.error,
            "finished_at": iso_time(self.finished_at_ms),
        }


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert as the log has it, the same on every node. Times are milliseconds of the Unix epoch."""

    id: str
    definition: Definition
    created_at_ms: int
    is_paused: bool = False
    evaluated_at_ms: int | None = None  # the last evaluation that was worth an entry of the log
    tick_ms: int | None = None  # the time that that one was due at
    value: Value | None = None
    is_holding: bool = False  # whether the condition held then
    fired_at_ms: int | None = None
    fire_count: int = 0
    evaluation_error: str | None = None  # of that evaluation
    delivery_error: str | None = None  # of the delivery that was settled last
    deliveries: tuple[Delivery, ...] = ()  # the last ones, the oldest first

    @property
    def status(self) -> str:
        """active, paused or error: the last evaluation or delivery has failed."""
        if self.is_paused:
            return "paused"
        return "active" if self.error is None else "error"

    @property
    def error(self) -> str | None:
        """Why it is in error."""
        return self.evaluation_error or self.delivery_error

    @property
    def pending(self) -> tuple[Delivery, ...]:
        """What is still to be told, the oldest first."""
        return tuple(delivery for delivery in self.deliveries if delivery.status == "pending")

    def shown(self) -> dict[str, Any]:
        """As `GET /alerts/{id}` tells it, without its secret."""
        definition = self.definition
        return {
            "id": self.id,
            "name": definition.name,
            "query": definition.query,
            "condition": definition.condition,
            "interval_seconds": definition.interval_seconds,
            "webhook": definition.webhook,
            "notify": definition.notify,
            "signed": definition.secret is not None,
            "status": self.status,
            "created_at": iso_time(self.created_at_ms),
            "last_evaluated_at": iso_time(self.evaluated_at_ms),
            "last_value": self.value,
            "last_fired_at": iso_time(self.fired_at_ms),
            "fire_count": self.fire_count,
            "last_error": self.error,
        }


def iso_time(time_ms: int | None) -> str | None:
    """See `iso_timestamp`; what has not been yet has none."""
    return None if time_ms is None else iso_timestamp(time_ms)
