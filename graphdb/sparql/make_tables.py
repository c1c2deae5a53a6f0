"""Makes the parsing tables of `grammar.lark` with Lark and keeps them in `grammar.tables.json`.

Run `python -m graphdb.sparql.make_tables` after each change of the grammar. Lark reads the grammar and works
out the LALR(1) tables; what it would do with a text is done by `automaton`, so nothing of Lark is needed to
parse.
"""

import json
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from lark import Lark
from lark.common import LexerConf
from lark.grammar import Rule, Terminal
from lark.lexer import Lexer, Token
from lark.parsers.lalr_analysis import IntParseTable, Shift

from graphdb.sparql.tables import END, GRAMMAR_FILE, TABLES_FILE, grammar_digest

__all__ = ["make_tables", "read_grammar"]

START_RULES = ("query_unit", "update_unit")


class _NoLexer(Lexer):
    """Lark wants a lexer even where only its tables are used."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError("the tables are driven by `graphdb.sparql.automaton`")


def read_grammar() -> Lark:
    """The grammar as Lark understands it: its rules written out, its terminals, its tables."""
    return Lark(
        GRAMMAR_FILE.read_text("utf-8"), parser="lalr", lexer=_NoLexer, start=list(START_RULES),
        maybe_placeholders=True,
    )  # fmt: skip


def make_tables() -> dict[str, Any]:
    """Let Lark analyse the grammar, and write its tables down as plain JSON values, equal rows once."""
    lark = read_grammar()
    analysed = lark.parser.parser._parse_table
    order = _numbered(analysed)
    rules = {rule: index for index, rule in enumerate(lark.rules)}
    symbols = sorted({symbol for row in analysed.states.values() for symbol in row} | {END})
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    rows: dict[tuple[int, ...], int] = {}
    states = []
    for state in order:
        cells = dict(_cells(analysed.states[state].items(), numbers, rules, order))
        if state in analysed.end_states.values():
            cells[numbers[END]] = order[state]  # the driver is done when END is shifted
        flat = tuple(number for cell in sorted(cells.items()) for number in cell)
        states.append(rows.setdefault(flat, len(rows)))
    keywords, signs = _fixed_texts(lark)
    return {
        "grammar": grammar_digest(),
        "symbols": symbols,
        "productions": [_production(rule) for rule in lark.rules],
        "rows": [list(row) for row in rows],
        "states": states,
        "starts": {rule: order[analysed.start_states[rule]] for rule in START_RULES},
        "keywords": keywords,
        "signs": signs,
    }


def _numbered(analysed: IntParseTable) -> dict[int, int]:
    """New numbers for the states, in the order in which they are met; Lark's differ from run to run."""
    order: dict[int, int] = {}
    waiting = [analysed.start_states[rule] for rule in reversed(START_RULES)]
    while waiting:
        state = waiting.pop()
        if state not in order:
            order[state] = len(order)
            row = sorted(analysed.states[state].items(), key=itemgetter(0))
            waiting.extend(target for _, (action, target) in row if action is Shift)
    return order


def _cells(
    row: Iterable[tuple[str, Any]], numbers: dict[str, int], rules: dict[Rule, int], order: dict[int, int]
) -> Iterator[tuple[int, int]]:
    for symbol, (action, target) in row:
        yield numbers[symbol], order[target] if action is Shift else ~rules[target]


def _production(rule: Rule) -> list[Any]:
    """How the values of one rule reach its action, with Lark's meaning of _rule, ?rule, [x] and of words in
    quotes.
    """
    nones = [
        len(run) for run in "".join(str(int(absent)) for absent in rule.options.empty_indices).split("0")
    ]
    nones = nones if rule.options.empty_indices else [0] * (len(rule.expansion) + 1)
    plan: list[list[Any]] = []
    waiting = 0
    for index, symbol in enumerate(rule.expansion):
        waiting += nones[index]
        if not (isinstance(symbol, Terminal) and symbol.filter_out):
            plan.append([index, not isinstance(symbol, Terminal) and symbol.name.startswith("_"), waiting])
            waiting = 0
    waiting += nones[-1]
    plain = len(plan) == len(rule.expansion) and not waiting and not any(step[1] or step[2] for step in plan)
    origin = str(rule.origin.name)
    action = rule.alias or (None if origin.startswith("_") else origin)
    single = bool(rule.options.expand1) and not rule.alias
    passes = single and plain and len(rule.expansion) == 1
    return [origin, len(rule.expansion), action, passes, single, None if plain else plan, waiting]


def _fixed_texts(lark: Lark) -> tuple[dict[str, str], dict[str, str]]:
    """Keywords and signs of the grammar, each with the name of its terminal."""
    keywords: dict[str, str] = {}
    signs: dict[str, str] = {}
    for terminal in lark.terminals:
        if terminal.pattern is not None:
            text = terminal.pattern.value
            (keywords if text[0].isalpha() else signs)[text] = terminal.name
    return keywords, signs


if __name__ == "__main__":
    TABLES_FILE.write_text(json.dumps(make_tables(), separators=(",", ":")) + "\n", "utf-8")
