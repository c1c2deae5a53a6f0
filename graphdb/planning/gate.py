"""The gate: no request passes that could crash the engine or keep it planning. DESIGN.md has the reasons.

It stands in two places. Where a text comes in, `read_query` and `read_update` bound what is parsed; where a
tree reaches the store, `check` bounds what is evaluated, whichever way it came.
"""

import re
from collections.abc import Callable, Iterator
from operator import attrgetter, le
from typing import TYPE_CHECKING

from graphdb.bounded_cache import BoundedCache
from graphdb.errors import HostNotAllowed, InvalidParameter, LimitExceeded, QuerySyntaxError
from graphdb.geo.function_calls import check_calls
from graphdb.planning.complexity import Complexity, measure
from graphdb.sparql.lexer import IRIREF, STRINGS, Token, braces_of_data_block
from graphdb.sparql.parser import LARGE_BLOCK_CHARS, parse_query, parse_update
from graphdb.sparql.plain_data import plain_update
from graphdb.sparql.syntax import DeleteData, InsertData, Modify, Query, Update, Variable

if TYPE_CHECKING:  # the column view's process has the figures without the library of the settings
    from graphdb.config.limits import GateLimits

__all__ = [
    "BYTE_ORDER_MARK",
    "SHORT_TEXT_CHARACTERS",
    "check",
    "check_present",
    "check_services",
    "read_plain_update",
    "read_query",
    "read_update",
]

BYTE_ORDER_MARK = "\ufeff"
"""What some editors write before a text in UTF-8. It is no part of the text (Unicode, section 23.8)."""

SHORT_TEXT_CHARACTERS = 4_000
"""A longer text is for a thread, so that an event loop goes on; what follows from it is not kept."""

_FIGURES = tuple(Complexity.__slots__)
_figures_of = attrgetter(*_FIGURES)
_limits_of = attrgetter(*(f"max_{name}" for name in _FIGURES))

_DATA_OPERATIONS = (InsertData, DeleteData)
_measured: BoundedCache[Complexity] = BoundedCache(entries_max=2048, chars_max=8_000_000)

# The word DATA up to its brace, and everything before it, as the lexer reads it: a name ends at white space.
_DATA = r"\s++(?i:DATA)(?:\s++|\#[^\r\n]*+|)*+\{"
_DATA_BRACE = re.compile(_DATA)
_BEFORE_DATA = re.compile(
    rf"(?:[^\"'<#\s]++|(?!{_DATA})\s++"
    rf"|{'|'.join(STRINGS.values())}|{IRIREF}|<|\#[^\r\n]*+|)*+",
    re.DOTALL,
)


def read_query(text: str, base_iri: str | None, limits: "GateLimits") -> Query:
    """`parse_query` for a text from outside. Raises QuerySyntaxError; LimitExceeded, soon and before parsing
    on, for a text that is too long. The tree is still to be checked. Its text is without a byte order mark.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    _check_bytes(text, len(text), limits)
    return parse_query(text, base_iri, lambda source: _watched(source, limits.max_query_tokens))


def read_update(text: str, base_iri: str | None, limits: "GateLimits") -> Update:
    """`parse_update`, as `read_query`. A large DATA block does not count: the native parser reads it."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    plain = read_plain_update(text, base_iri, limits)
    if plain is not None:
        return plain
    return parse_update(text, base_iri, lambda source: _watched(source, limits.max_query_tokens))


def read_plain_update(text: str, base_iri: str | None, limits: "GateLimits") -> Update | None:
    """`read_update` for INSERT DATA and DELETE DATA in their usual form; None for other texts. Such an update
    needs no `check`. Raises LimitExceeded.
    """
    if 4 * len(text) > limits.max_query_bytes:  # a character is four bytes at most
        _check_bytes(text, _chars_for_the_grammar(text, limits.max_query_bytes), limits)
    return plain_update(text, base_iri, limits.max_query_tokens)


def check(request: Query | Update, limits: "GateLimits") -> None:
    """Raise LimitExceeded for a request that is larger in some way than allowed, and what
    `graphdb.geo.function_calls.check_calls` raises for one that calls functions of GeoSPARQL in vain.

    It is looked at once for each text; the comparison takes a microsecond or two.
    """
    if isinstance(request, Update) and all(isinstance(each, _DATA_OPERATIONS) for each in request.operations):
        return  # all figures are zero, and data calls nothing
    complexity = _measured.get(request.text, None)
    if complexity is None:
        complexity = measure(request)
        check_calls(request)
        if isinstance(request, Update):
            _check_using(request)
        _measured.put(request.text, None, complexity)
    figures, allowed = _figures_of(complexity), _limits_of(limits)
    if all(map(le, figures, allowed)):
        return
    for name, figure, most in zip(_FIGURES, figures, allowed, strict=True):
        if figure > most:
            raise _exceeded(name, figure, most)


def check_present(query: Query) -> None:
    """Raise InvalidParameter for a query that asks for a state of the past, where only the present is."""
    if any(clause.names_state for clause in query.dataset):
        raise InvalidParameter("FROM", "a state of the past is not read here")


def _check_using(update: Update) -> None:
    for each in update.operations:
        if isinstance(each, Modify) and any(clause.names_state for clause in each.using):
            raise InvalidParameter("USING", "an update reads the present, and no state of the past")


def check_services(request: Query | Update, service_allowed: Callable[[str], bool]) -> None:
    """Raise HostNotAllowed for SERVICE to an endpoint not allowed, or that only evaluation would tell."""
    for endpoint in request.service_hosts:
        if isinstance(endpoint, Variable):
            raise HostNotAllowed("SERVICE", f"?{endpoint.name}")
        if not service_allowed(endpoint.value):
            raise HostNotAllowed("SERVICE", endpoint.value)


def _exceeded(name: str, figure: int, allowed: int) -> LimitExceeded:
    return LimitExceeded(f"{name.replace('_', ' ')} (security.max_{name})", figure, allowed)


def _check_bytes(text: str, chars: int, limits: "GateLimits") -> None:
    """chars of the text count; a character is four bytes at most, so short texts need no encoding."""
    allowed = limits.max_query_bytes
    if 4 * chars <= allowed:
        return
    size = chars if chars > allowed or chars < len(text) else len(text.encode(errors="replace"))
    if size > allowed:
        raise _exceeded("query_bytes", size, allowed)


def _chars_for_the_grammar(text: str, enough: int) -> int:
    """The characters of an update without its large DATA blocks; of no use once it is over enough."""
    counted = place = 0
    while len(text) - place + counted > enough:
        before = _BEFORE_DATA.match(text, place)
        assert before is not None
        found = _DATA_BRACE.match(text, before.end())
        if found is None or counted + before.end() - place > enough:
            break
        opening = found.end() - 1
        try:
            *_, last = braces_of_data_block(text, opening)
        except QuerySyntaxError:
            break  # the parser says so too, unless what is before the fault is too long
        is_large = last + 1 - opening > LARGE_BLOCK_CHARS
        counted += (opening if is_large else last + 1) - place
        place = last + 1
    return counted + len(text) - place


def _watched(source: Iterator[Token], allowed: int) -> Iterator[Token]:
    """Hand tokens on, and count them, but for those between the braces behind VALUES and DATA.

    Such data may be long, and is bounded by the text's size. The count begins anew with each DATA: a request
    may hold any number of such operations.
    """
    count = depth = 0
    data_ahead = False
    for token in source:
        terminal = token.terminal
        if depth:
            depth += (terminal == "LBRACE") - (terminal == "RBRACE")
        else:
            count = 0 if terminal == "DATA" else count + 1
            if count > allowed:
                raise _exceeded("query_tokens", count, allowed)
            if data_ahead and terminal == "LBRACE":
                depth, data_ahead = 1, False
            elif terminal in ("VALUES", "DATA"):
                data_ahead = True
            elif terminal == "LARGE_BLOCK":
                data_ahead = False
        yield token
