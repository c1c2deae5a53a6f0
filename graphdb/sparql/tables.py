"""The parsing tables of `grammar.lark`, as `make_tables` has kept them beside it.

Lark needs a second or more to make the LALR(1) tables of SPARQL; reading them back takes a hundredth.
"""

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "END",
    "GRAMMAR_FILE",
    "TABLES_FILE",
    "Production",
    "Row",
    "Tables",
    "grammar_digest",
    "load_tables",
]

END = "$END"
GRAMMAR_FILE = Path(__file__).with_name("grammar.lark")
TABLES_FILE = Path(__file__).with_name("grammar.tables.json")

Row: TypeAlias = dict[str, "int | Production"]


class Production(NamedTuple):
    """One way to reduce: size symbols become origin.

    plan says which of their values the action gets, None for all as they are: (index, spliced, nones) for
    each kept one, where a spliced value is a list whose members are taken over, and nones stand before it for
    what is absent. trailing_nones stand at the end. action names the builder's method; None leaves the list
    of the values to the rule above. single says that one value alone is handed on as it is, without the
    action; passes, that it always is one value alone.
    """

    origin: str
    size: int
    action: str | None
    passes: bool
    single: bool
    plan: tuple[tuple[int, bool, int], ...] | None
    trailing_nones: int


@dataclass(frozen=True, slots=True)
class Tables:
    """states[n] maps a terminal to the state it is shifted to, or to the Production to reduce by; and a
    nonterminal to the state that follows it. starts gives the first state for each start rule. keywords are
    in upper case, but for the case-sensitive "a".
    """

    states: tuple[Row, ...]
    starts: dict[str, int]
    keywords: dict[str, str]
    signs: dict[str, str]


@cache
def load_tables() -> Tables:
    """The tables of the grammar as it is now. Shared by all threads and never written."""
    kept = json.loads(TABLES_FILE.read_text("utf-8"))
    if kept["grammar"] != grammar_digest():
        raise RuntimeError(f"{TABLES_FILE.name} is out of date: run python -m graphdb.sparql.make_tables")
    productions = [_production(fields) for fields in kept["productions"]]
    rows = [_row(kept["symbols"], productions, cells) for cells in kept["rows"]]
    return Tables(tuple(rows[n] for n in kept["states"]), kept["starts"], kept["keywords"], kept["signs"])


def _production(fields: list[Any]) -> Production:
    origin, size, action, passes, single, plan, trailing_nones = fields
    steps = None if plan is None else tuple((index, spliced, nones) for index, spliced, nones in plan)
    return Production(origin, size, action, passes, single, steps, trailing_nones)


def _row(symbols: list[str], productions: list[Production], cells: list[int]) -> Row:
    """cells are pairs of symbol and entry: a state from 0 up, or a production from -1 down."""
    return {
        symbols[symbol]: entry if entry >= 0 else productions[~entry]
        for symbol, entry in zip(cells[::2], cells[1::2], strict=True)
    }


def grammar_digest() -> str:
    """Tells one text of the grammar from any other."""
    return sha256(GRAMMAR_FILE.read_bytes()).hexdigest()
