"""Lucene's regular expressions, matched by Brzozowski's derivatives: no backtracking, and bounded work.

An expression is a number in an arena where equal expressions have equal numbers; its derivative by a
character is what is left to match after it. They are made as characters come and then kept, so that a term
costs a look-up for each character. Complement and intersection cost nothing more, hence derivatives.

Source: J. A. Brzozowski, "Derivatives of Regular Expressions" (1964); Lucene's RegExp for the syntax.
"""

from graphdb.search.errors import SearchError
from graphdb.search.query.regexp_parser import Arena, parse

__all__ = ["Regexp"]

WORK_MAX = 200_000  # steps of building derivatives that one expression may take


class Regexp:
    """One expression; prefix is a string that all it matches begin with."""

    def __init__(self, pattern: str, case_insensitive: bool = False, all_syntax: bool = True) -> None:
        self._pattern = pattern
        self._arena = Arena()
        self._derivatives: dict[tuple[int, str], int] = {}
        self._work = 0
        self._start = parse(pattern, self._arena, case_insensitive, all_syntax)
        self.prefix = self._arena.literal_prefix(self._start)

    def matches(self, term: str) -> bool:
        """Whether it matches a term from end to end; fails where that takes too much."""
        state, known = self._start, self._derivatives
        try:
            for character in term:
                found = known.get((state, character))
                state = self._derivative(state, character) if found is None else found
                if state == Arena.NOTHING:
                    return False
            return self._arena.nullable(state)
        except RecursionError:
            raise self._too_complex() from None

    def _too_complex(self) -> SearchError:
        return SearchError(
            "too_complex_to_determinize_exception",
            f"Determinizing automaton for [{self._pattern}] would require more than {WORK_MAX} effort.",
        )

    def _derivative(self, state: int, character: str) -> int:
        """What remains of an expression after a character."""
        key = (state, character)
        if key in self._derivatives:
            return self._derivatives[key]
        self._work += 1 + self._arena.width(state)
        if self._work > WORK_MAX:
            raise self._too_complex()
        result = self._derive(state, character)
        self._derivatives[key] = result
        return result

    def _derive(self, state: int, character: str) -> int:
        arena, node = self._arena, self._arena.node(state)
        match node:
            case ("chars", chars):
                return Arena.EMPTY if character in chars else Arena.NOTHING
            case ("join", first, second):
                left = arena.join(self._derivative(first, character), second)
                if not arena.nullable(first):
                    return left
                return arena.either([left, self._derivative(second, character)])
            case ("either", parts):
                return arena.either([self._derivative(part, character) for part in parts])
            case ("both", first, second):
                return arena.both(self._derivative(first, character), self._derivative(second, character))
            case ("not", inner):
                return arena.complement(self._derivative(inner, character))
            case ("repeat", inner, least, most):
                rest = arena.repeat(inner, max(0, least - 1), None if most is None else most - 1)
                return arena.join(self._derivative(inner, character), rest)
        return Arena.NOTHING
