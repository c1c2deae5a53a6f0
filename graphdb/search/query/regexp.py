"""Lucene's regular expressions, matched by Brzozowski's derivatives: no backtracking, and bounded work.

    e|f  ef  e?  e*  e+  e{n} e{n,} e{n,m}  (e)  .  [abc] [^a-z]  "quoted"  \\x  \\d \\w \\s (and in capitals)
    and where all syntax is on:  e&f  ~e  <1-99>  @ (any string)  # (nothing)

An expression is a number in an arena where equal expressions have equal numbers; its derivative by a
character is what is left to match after it. They are made as characters come and then kept, so that a term
costs a look-up for each character. Complement and intersection cost nothing more, hence derivatives.

Source: J. A. Brzozowski, "Derivatives of Regular Expressions" (1964); Lucene's RegExp for the syntax.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from graphdb.search.errors import SearchError, illegal_request

__all__ = [
    "Arena",
    "CharacterSet",
    "Regexp",
    "parse",
]

REPEATS_MAX = 1_000
NUMBERS_MAX = 1_000  # numbers in <n-m>
DEPTH_MAX = 50


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """Characters in any of the ranges, or in none of them where negated."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated

    def single(self) -> str | None:
        """The one character that is in it, where that is plain to see."""
        (low, high), *more = self.ranges or (("", "x"),)
        return low if low == high and not more and not self.negated else None


Node = tuple[Any, ...]


class Arena:
    """Expressions by number; the constructors keep them small, so that equal languages mostly meet."""

    NOTHING: ClassVar[int] = 0
    EMPTY: ClassVar[int] = 1  # the empty string

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}
        self._nullable: list[bool] = []
        self._add(("nothing",), False)
        self._add(("empty",), True)

    def _add(self, node: Node, nullable: bool) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._nullable.append(nullable)
        return number

    def node(self, number: int) -> Node:
        return self._nodes[number]

    def nullable(self, number: int) -> bool:
        """Whether it matches the empty string."""
        return self._nullable[number]

    def width(self, number: int) -> int:
        """How many parts it is made of at its top."""
        node = self._nodes[number]
        return len(node[1]) if node[0] == "either" else len(node)

    def chars(self, chars: CharacterSet) -> int:
        return self._add(("chars", chars), False)

    def any_string(self) -> int:
        return self.repeat(self.chars(CharacterSet((), negated=True)), 0, None)

    def join(self, first: int, second: int) -> int:
        if self.NOTHING in (first, second):
            return self.NOTHING
        if first == self.EMPTY:
            return second
        if second == self.EMPTY:
            return first
        node = self._nodes[first]
        if node[0] == "join":  # to the right, so that equal ones look equal
            return self.join(node[1], self.join(node[2], second))
        return self._add(("join", first, second), self._nullable[first] and self._nullable[second])

    def either(self, parts: list[int]) -> int:
        flat: set[int] = set()
        for part in parts:
            node = self._nodes[part]
            flat.update(node[1] if node[0] == "either" else [part])
        flat.discard(self.NOTHING)
        if len(flat) < 2:
            return flat.pop() if flat else self.NOTHING
        return self._add(("either", tuple(sorted(flat))), any(self._nullable[part] for part in flat))

    def both(self, first: int, second: int) -> int:
        if first == second or self.NOTHING in (first, second):
            return min(first, second)
        low, high = sorted((first, second))
        return self._add(("both", low, high), self._nullable[low] and self._nullable[high])

    def complement(self, inner: int) -> int:
        node = self._nodes[inner]
        return int(node[1]) if node[0] == "not" else self._add(("not", inner), not self._nullable[inner])

    def repeat(self, inner: int, least: int, most: int | None) -> int:
        if most == 0 or inner in (self.NOTHING, self.EMPTY):
            return self.NOTHING if inner == self.NOTHING and least > 0 else self.EMPTY
        if least == most == 1:
            return inner
        least = 0 if self._nullable[inner] else least
        return self._add(("repeat", inner, least, most), least == 0)

    def literal_prefix(self, number: int) -> str:
        """What all matches begin with, as far as the expression shows it."""
        prefix = ""
        while True:
            node = self._nodes[number]
            first = self._nodes[node[1]] if node[0] == "join" else node
            single = first[1].single() if first[0] == "chars" else None
            if single is None:
                return prefix
            prefix += str(single)
            if node[0] != "join":
                return prefix
            number = node[2]


CLASSES = {
    "d": (("0", "9"),),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "s": (("\t", "\r"), (" ", " ")),
}


def parse(pattern: str, arena: Arena, case_insensitive: bool = False, all_syntax: bool = True) -> int:
    """Parse an expression into an arena; fails with illegal_argument_exception where it is none."""
    if not pattern:
        return Arena.EMPTY
    parser = _Parser(pattern, arena, case_insensitive, all_syntax)
    number = parser.union()
    if not parser.at_end():
        raise parser.failed("end-of-string expected")
    return number


class _Parser:
    """Recursive descent, as deep as parentheses and complements stand in one another."""

    def __init__(self, pattern: str, arena: Arena, case_insensitive: bool, all_syntax: bool) -> None:
        self._text, self._place = pattern, 0
        self._arena = arena
        self._fold, self._all = case_insensitive, all_syntax
        self._depth = 0

    def failed(self, what: str) -> SearchError:
        return illegal_request(f"{what} at position {self._place}")

    def at_end(self) -> bool:
        return self._place >= len(self._text)

    def _peek(self, characters: str) -> bool:
        return not self.at_end() and self._text[self._place] in characters

    def _take(self, character: str) -> bool:
        found = self._peek(character)
        self._place += found
        return found

    def _next(self) -> str:
        if self.at_end():
            raise self.failed("unexpected end-of-string")
        self._place += 1
        return self._text[self._place - 1]

    def union(self) -> int:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self.failed(f"nested more than {DEPTH_MAX} deep")
        parts = [self._intersection()]
        while self._take("|"):
            parts.append(self._intersection())
        self._depth -= 1
        return self._arena.either(parts)

    def _intersection(self) -> int:
        number = self._sequence()
        while self._all and self._take("&"):
            number = self._arena.both(number, self._sequence())
        return number

    def _sequence(self) -> int:
        parts = []
        while not self.at_end() and not self._peek(")|") and not (self._all and self._peek("&")):
            parts.append(self._repeated())
        number = Arena.EMPTY
        for part in reversed(parts):
            number = self._arena.join(part, number)
        return number

    def _repeated(self) -> int:
        if self._all and self._take("~"):
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise self.failed(f"nested more than {DEPTH_MAX} deep")
            number = self._arena.complement(self._repeated())
            self._depth -= 1
            return number
        number = self._single()
        while self._peek("?*+{"):
            sign = self._next()
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(sign) or self._counts()
            number = self._arena.repeat(number, least, most)
        return number

    def _counts(self) -> tuple[int, int | None]:
        least = self._number()
        most: int | None = least
        if self._take(","):
            most = None if self._peek("}") else self._number()
        if not self._take("}"):
            raise self.failed("expected '}'")
        if max(least, most or 0) > REPEATS_MAX or (most is not None and least > most):
            raise self.failed(f"invalid repetition range (out of order): {least}..{most}")
        return least, most

    def _number(self) -> int:
        start = self._place
        while self._peek("0123456789"):
            self._place += 1
        if start == self._place or self._place - start > 9:
            raise self.failed("integer expected")
        return int(self._text[start : self._place])

    def _single(self) -> int:
        sign = self._next()
        if sign == ".":
            return self._arena.chars(CharacterSet((), negated=True))
        if sign == "(":
            number = Arena.EMPTY if self._peek(")") else self.union()
            if not self._take(")"):
                raise self.failed("expected ')'")
            return number
        if sign == "[":
            return self._class()
        if sign == '"':
            return self._quoted()
        if self._all and sign in "#@<":
            return self._special(sign)
        return self._escaped() if sign == "\\" else self._literal(sign)

    def _special(self, sign: str) -> int:
        if sign == "#":
            return Arena.NOTHING
        return self._arena.any_string() if sign == "@" else self._interval()

    def _interval(self) -> int:
        """Numbers in <low-high>, with leading zeros where both bounds have as many digits."""
        start = self._place
        low = self._number()
        first_width = self._place - start
        if not self._take("-"):
            raise self.failed("illegal identifier")
        start = self._place
        high = self._number()
        width = first_width if first_width == self._place - start else 0
        if not self._take(">"):
            raise self.failed("expected '>'")
        low, high = min(low, high), max(low, high)
        if high - low >= NUMBERS_MAX:
            raise self.failed(f"interval of more than {NUMBERS_MAX} numbers")
        return self._arena.either([self._word(f"{n:0{width}d}") for n in range(low, high + 1)])

    def _word(self, text: str) -> int:
        number = Arena.EMPTY
        for character in reversed(text):
            number = self._arena.join(self._literal(character), number)
        return number

    def _quoted(self) -> int:
        end = self._text.find('"', self._place)
        if end < 0:
            raise self.failed("expected '\"'")
        text, self._place = self._text[self._place : end], end + 1
        return self._word(text)

    def _escaped(self) -> int:
        character = self._next()
        known = CLASSES.get(character.lower())
        if known is None:
            return self._literal(character)
        return self._arena.chars(CharacterSet(known, negated=character.isupper()))

    def _literal(self, character: str) -> int:
        return self._arena.chars(CharacterSet(self._cases(character, character)))

    def _cases(self, low: str, high: str) -> tuple[tuple[str, str], ...]:
        """A range, and where case does not matter that of the other case too (single letters and a-z)."""
        ranges = {(low, high)}
        if self._fold and (low == high or (low + high).isalpha()):
            for cased in ((low.lower(), high.lower()), (low.upper(), high.upper())):
                if len(cased[0]) == len(cased[1]) == 1:
                    ranges.add(cased)
        return tuple(sorted(ranges))

    def _class(self) -> int:
        negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        while not ranges or not self._peek("]"):
            low = self._next()
            if low == "\\":
                low = self._next()
                if low in CLASSES:
                    ranges.extend(CLASSES[low])
                    continue
            high = low
            if self._peek("-") and self._text[self._place + 1 : self._place + 2] != "]":
                self._next()
                high = self._next()
                high = self._next() if high == "\\" else high
            if low > high:
                raise self.failed(f"invalid range: from ({ord(low)}) cannot be > to ({ord(high)})")
            ranges.extend(self._cases(low, high))
        self._next()
        return self._arena.chars(CharacterSet(tuple(sorted(set(ranges))), negated))


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

    def after(self, state: int | None, character: str) -> int | None:
        """The state after a character, None where nothing can match any more; state None is the beginning."""
        try:
            found = self._derivative(self._start if state is None else state, character)
        except RecursionError:
            raise self._too_complex() from None
        return None if found == Arena.NOTHING else found

    def accepts(self, state: int | None) -> bool:
        """Whether it matches what led to a state."""
        return self._arena.nullable(self._start if state is None else state)

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
