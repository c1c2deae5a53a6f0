"""`condition` and `predicate_token_filter`: filters that a script chooses the tokens of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.search.analysis.analyzer import MULTIPLIED_MAX, applied, too_many_tokens
from graphdb.search.analysis.token import Token, TokenFilter
from graphdb.search.analysis.token_filters import Stream
from graphdb.search.errors import parsing

__all__ = ["Predicate", "conditional", "predicate_of", "tokens_that"]

Predicate = Callable[[int], Callable[[Token, int], bool]]
"""Begins a text of so many tokens. It is asked of each, with how far its position is from the last one's."""

_STEPS_MAX = 5_000
_STEPS_MAX_A_TOKEN = 200
_STEPS_MAX_A_TEXT = 5_000_000
"""Nodes that the script of a filter may evaluate for one text: 0.1 ms for a token, more for a short text, and
2 s for a long one. Whoever writes many texts keeps those waiting who write others. All nodes analyze the
texts that they apply, so the same ones have to fail everywhere: no clock decides.
"""
_TOO_MANY_STEPS = f"""The script of an analyzer may evaluate [{_STEPS_MAX}] nodes for one text and \
[{_STEPS_MAX_A_TOKEN}] more for each token, at most [{_STEPS_MAX_A_TEXT}]."""
_PARAMS_A_STEP = 4  # bytes of its params as JSON, which each run gets a copy of

_MEMBERS: dict[str, Callable[[Token], Any]] = {
    "term": lambda token: token.term,
    "position": lambda token: token.position,
    "positionLength": lambda token: token.position_length,
    "startOffset": lambda token: token.start_offset,
    "endOffset": lambda token: token.end_offset,
    "type": lambda token: token.type,
    "keyword": lambda token: token.keyword,
}


@dataclass(frozen=True, slots=True)
class _ScriptToken:
    """What a script sees of a token."""

    token: Token
    increment: int

    def script_member(self, name: str) -> Any:
        from graphdb.search.scripts.faults import unsupported

        if name == "positionIncrement":
            return self.increment
        if name not in _MEMBERS:
            raise unsupported(f"dynamic getter [Token, {name[:100]}] not found")
        return _MEMBERS[name](self.token)


def predicate_of(body: Any) -> Predicate:
    """What a script says of tokens, which it calls `token`.

    Raises SearchError: at once where it does not compile, later where it fails, returns no boolean or does
    too much for one text.
    """
    # Scripts read mappings, which are above this package; few analyzers have any.
    from graphdb.search.scripts.faults import ScriptFault, class_cast
    from graphdb.search.scripts.script import Purpose, parse_script
    from graphdb.search.scripts.values import Budget

    if body is None:
        raise parsing("[script] is missing")
    script = parse_script(body, Purpose("analysis", frozenset({"token", "params"})))
    own_steps = len(orjson.dumps(script.params)) // _PARAMS_A_STEP

    def begin(tokens: int) -> Callable[[Token, int], bool]:
        steps_max = min(_STEPS_MAX + _STEPS_MAX_A_TOKEN * tokens, _STEPS_MAX_A_TEXT)
        budget = Budget(steps_max, _TOO_MANY_STEPS)

        def holds(token: Token, increment: int) -> bool:
            try:
                budget.spend(own_steps)
            except ScriptFault as fault:
                raise script.error(fault) from None
            found = script.run({"token": _ScriptToken(token, increment)}, budget)
            if not isinstance(found, bool):
                raise script.error(class_cast("Cannot cast from [def] to [boolean]."))
            return found

        return holds

    return begin


def tokens_that(begin: Predicate) -> Stream:
    """Without the other tokens, which leave holes in the positions."""

    def change(tokens: list[Token]) -> list[Token]:
        holds = begin(len(tokens))
        return [token for token, increment in _stepped(tokens) if holds(token, increment)]

    return change


def conditional(chain: Sequence[TokenFilter], begin: Predicate) -> Stream:
    """A token that the script chooses becomes what the chain makes of it alone.

    Illegal argument where the chain makes too many tokens.
    """

    def change(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        holds = begin(len(tokens))
        for token, increment in _stepped(tokens):
            if not holds(token, increment):
                result.append(token)
                continue
            place, token.position = token.position, 0  # filters may count from the first position
            own = [token]
            for step in chain:
                own = applied(step, own)
            for form in own:
                form.position += place
            result += own
            if len(result) > len(tokens) + MULTIPLIED_MAX:
                raise too_many_tokens()
        return sorted(result, key=lambda token: token.position)

    return change


def _stepped(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    positions = [-1, *(token.position for token in tokens)]
    return [(token, token.position - before) for token, before in zip(tokens, positions, strict=False)]
