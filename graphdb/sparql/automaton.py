"""Drives the LALR(1) tables over the tokens of a text; knows neither SPARQL nor the tree that is made.

It does by itself what `Lark.parse` would do, because it is the innermost loop of every request: it keeps no
token objects, builds no tree between, hands the builder of one text its values directly (so that parsing is
thread-safe without a lock) and skips the work for rules that only pass a value on.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from graphdb.sparql.lexer import Token, fault
from graphdb.sparql.naming import describe_misfit
from graphdb.sparql.tables import END, Production, Row, Tables

__all__ = ["Action", "run"]

# Takes the values of a rule's symbols, and the start and end of what they cover; gives the rule's value.
Action: TypeAlias = Callable[[list[Any], int, int], Any]


def run(tables: Tables, rule: str, actions: dict[str, Action], text: str, source: Iterator[Token]) -> Any:
    """The value of a start rule for a whole text. Raises QuerySyntaxError where a token does not fit."""
    rows = tables.states
    states = [tables.starts[rule]]
    values: list[Any] = []
    starts: list[int] = []
    end_before = 0
    for terminal, word, start, end in source:
        while not isinstance(entry := rows[states[-1]].get(terminal), int):
            if entry is None:
                raise _misfit(rows, states, Token(terminal, word, start, end), text)
            origin, size, action, passes, single, plan, trailing_nones = entry
            if passes:
                states[-1] = rows[states[-2]][origin]  # type: ignore[assignment]
                continue
            if size:
                children, begin = values[-size:], starts[-size]
                del states[-size:], values[-size:], starts[-size:]
            else:
                children, begin = [], end_before
            if plan is not None:
                children = _arranged(plan, children, trailing_nones)
            if action is None:
                value = children
            elif single and len(children) == 1:
                value = children[0]
            else:
                value = actions[action](children, begin, end_before)
            states.append(rows[states[-1]][origin])  # type: ignore[arg-type]
            values.append(value)
            starts.append(begin)
        states.append(entry)
        values.append(word)
        starts.append(start)
        end_before = end
    return values[0]


def _arranged(plan: tuple[tuple[int, bool, int], ...], children: list[Any], trailing_nones: int) -> list[Any]:
    """The values that an action sees. A list to be spliced that comes first is taken over and grown, not
    copied.
    """
    kept: list[Any] = []
    for index, spliced, nones in plan:
        for _ in range(nones):
            kept.append(None)
        if not spliced:
            kept.append(children[index])
        elif kept:
            kept.extend(children[index])
        else:
            kept = children[index]
    for _ in range(trailing_nones):
        kept.append(None)
    return kept


def _misfit(rows: tuple[Row, ...], states: list[int], token: Token, text: str) -> Exception:
    expected = {symbol for symbol in rows[states[-1]] if _fits(rows, states, symbol)}
    return fault(describe_misfit(expected, token), text, token.start)


def _fits(rows: tuple[Row, ...], states: list[int], symbol: str) -> bool:
    """Whether a terminal would be shifted in the end; rows also hold some that fail after reducing."""
    if symbol != END and not symbol.isupper():
        return False
    states = list(states)
    while True:
        entry = rows[states[-1]].get(symbol)
        if not isinstance(entry, Production):
            return entry is not None
        if entry.size:
            del states[-entry.size :]
        following = rows[states[-1]][entry.origin]
        assert isinstance(following, int)
        states.append(following)
