"""The parser as the target of a campaign."""

from random import Random

from tests.support.fuzzing.parser_oracle import DECISION_MS_MAX, check_text
from tests.support.fuzzing.texts import random_text

__all__ = ["TextTarget"]


class TextTarget:
    """The parser, the gate, and what is made of their trees for the engine."""

    batch = 1_000_000

    def __init__(self, name: str, decision_ms_max: float = DECISION_MS_MAX) -> None:
        self.name, self._decision_ms_max = name, decision_ms_max

    def case(self, random: Random) -> bytes:
        return random_text(random)

    def check(self, case: bytes) -> str:
        return check_text(case, self._decision_ms_max)

    def check_alive(self) -> None:
        """There is nothing beside the cases."""

    def wire(self, case: bytes) -> bytes:
        return case

    def with_wire(self, case: bytes, wire: bytes) -> bytes:
        return wire
