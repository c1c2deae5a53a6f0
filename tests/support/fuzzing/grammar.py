"""Random SPARQL texts, written from the grammar that the parser is made of, within a number of tokens.

What a random sentence cannot keep by itself (declared prefixes, fresh names behind AS) is helped along a
little, so that most texts get past the parser and try what lies behind it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from random import Random
from typing import NamedTuple, TypeAlias

from graphdb.sparql.make_tables import read_grammar
from graphdb.sparql.tables import load_tables
from tests.support.fuzzing.terms import STRANGE, USUAL

__all__ = ["write_sentence"]

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
FRESH_NAME = 0.9  # how often the variable behind AS is a new one
STRANGE_TERM = 0.1  # how often a term is one that is refused or has an unusual value
SMALL_LETTERS = 0.05  # how often a keyword is not written in capitals
FINITE = 6  # tokens above the fewest for a rule that cannot be endless
# Rules that get more of what is left over than others, so that heads and prologues stay short.
FAVOURED = {
    "group_graph_pattern": 8, "_group_graph_pattern_sub": 8, "where_clause": 8, "triples_block": 3,
    "prologue": 0.1, "dataset_clauses": 0.2, "values_clause": 0.3, "solution_modifier": 0.5,
}  # fmt: skip

Symbol: TypeAlias = tuple[str, bool]  # its name, and whether it is a terminal


class _Grammar(NamedTuple):
    """The productions of each rule, the tokens that it needs at least, and the rules that can be endless."""

    productions: Mapping[str, Sequence[Sequence[Symbol]]]
    fewest: Mapping[str, float]
    endless: frozenset[str]
    words: Mapping[str, str]  # terminal to its one text


def write_sentence(random: Random, start: str, tokens: int) -> str:
    """A text of a start rule ("query_unit", "update_unit") or any other, of about so many tokens at most."""
    grammar = _grammar()
    waiting: list[tuple[Symbol, float]] = [((start, False), tokens)]
    written: list[str] = []
    while waiting:
        (name, is_terminal), budget = waiting.pop()
        if is_terminal:
            written.append(_terminal(random, grammar, name, written))
        else:
            production = _choose(random, grammar, name, budget)
            waiting.extend(reversed(_share(random, grammar, production, budget)))
    return PREFIXES + " ".join(written)


def _choose(random: Random, grammar: _Grammar, rule: str, budget: float) -> Sequence[Symbol]:
    """One of the rule's productions that fit; one that can grow is likelier while much is left."""
    productions = grammar.productions[rule]
    fitting = [each for each in productions if _fewest(grammar.fewest, each) <= budget]
    if not fitting:
        return min(productions, key=lambda each: _fewest(grammar.fewest, each))
    weights = [1 + any(name in grammar.endless for name, _ in each) * budget / 4 for each in fitting]
    return random.choices(fitting, weights)[0]


def _share(
    random: Random, grammar: _Grammar, production: Sequence[Symbol], budget: float
) -> list[tuple[Symbol, float]]:
    """The symbols with a budget each: what it needs, and its random part of what is left over.

    A rule that cannot be endless takes none of that; it gets enough for the longest of its kind.
    """
    parts = [random.random() * FAVOURED.get(name, name in grammar.endless) for name, _ in production]
    left = max(0, budget - _fewest(grammar.fewest, production)) / (sum(parts) or 1)
    return [
        (
            symbol,
            _fewest(grammar.fewest, [symbol]) + (part * left if symbol[0] in grammar.endless else FINITE),
        )
        for symbol, part in zip(production, parts, strict=True)
    ]


def _terminal(random: Random, grammar: _Grammar, name: str, written: list[str]) -> str:
    if name in ("VAR1", "VAR2") and written and written[-1] == "AS" and random.random() < FRESH_NAME:
        return f"?new{len(written)}"
    word = grammar.words.get(name)
    if word is None:
        strange = name in STRANGE and random.random() < STRANGE_TERM
        return random.choice((STRANGE if strange else USUAL)[name])
    return word.lower() if word != "AS" and random.random() < SMALL_LETTERS else word


def _fewest(fewest: Mapping[str, float], symbols: Sequence[Symbol]) -> float:
    return sum(1 if terminal and name != "LARGE_BLOCK" else fewest[name] for name, terminal in symbols)


@cache
def _grammar() -> _Grammar:
    tables = load_tables()
    words = {terminal: text for text, terminal in (tables.keywords | tables.signs).items()}
    productions: dict[str, list[list[Symbol]]] = {}
    for rule in read_grammar().rules:
        symbols = [(str(symbol.name), symbol.is_term) for symbol in rule.expansion]
        productions.setdefault(str(rule.origin.name), []).append(symbols)
    return _Grammar(productions, _shortest(productions), _endless(productions), words)


def _shortest(productions: Mapping[str, Sequence[Sequence[Symbol]]]) -> dict[str, float]:
    """The fewest tokens of each rule, from below until nothing changes. LARGE_BLOCK is never written."""
    fewest: dict[str, float] = dict.fromkeys([*productions, "LARGE_BLOCK"], inf)
    changed = True
    while changed:
        changed = False
        for rule, choices in productions.items():
            least = min(_fewest(fewest, choice) for choice in choices)
            if least < fewest[rule]:
                fewest[rule], changed = least, True
    return fewest


def _endless(productions: Mapping[str, Sequence[Sequence[Symbol]]]) -> frozenset[str]:
    """The rules from which one leads back to themselves, or to such a rule."""
    reached = {rule: {name for each in choices for name, _ in each} for rule, choices in productions.items()}
    for middle in productions:
        for names in reached.values():
            if middle in names:
                names |= reached[middle]
    circular = {rule for rule, names in reached.items() if rule in names}
    return frozenset(rule for rule, names in reached.items() if names & circular)
