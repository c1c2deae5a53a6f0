"""From SPARQL texts to syntax trees. Every fault of a text is a QuerySyntaxError with line and column."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, Quad

from graphdb.bounded_cache import BoundedCache
from graphdb.errors import QuerySyntaxError
from graphdb.sparql.automaton import Action, run
from graphdb.sparql.building.updates import UpdateBuilder
from graphdb.sparql.data_blocks import fault_in_large_blocks, native_quads, quads_of_tree, renamed
from graphdb.sparql.iris import why_invalid
from graphdb.sparql.lexer import Token, fault, tokens
from graphdb.sparql.syntax import DeleteData, InsertData, Query, Update
from graphdb.sparql.tables import load_tables

__all__ = ["LARGE_BLOCK_CHARS", "Query", "Watch", "ground_quads", "parse_query", "parse_update"]

LARGE_BLOCK_CHARS = 8192  # a block of DATA longer than this goes to the native parser
# What the native parser refuses may be SPARQL all the same, and the grammar names faults better; but it takes
# a second or two for so many characters of data, so the word of the native parser is final above.
GRAMMAR_CHARS_MAX = 1_000_000

Watch: TypeAlias = Callable[[Iterator[Token]], Iterator[Token]]

# A tree and its algebra take up to 200 bytes for each character of the text.
_queries: BoundedCache[Query] = BoundedCache(entries_max=2048, chars_max=1_000_000)
_updates: BoundedCache[Update] = BoundedCache(entries_max=512, chars_max=500_000)


def parse_query(text: str, base_iri: str | None = None, watch: Watch | None = None) -> Query:
    """The tree of a query. base_iri is what relative IRIs are resolved against before any BASE.

    watch hands the tokens of a text that is not cached on, and may raise.
    """
    query = _queries.get(text, base_iri)
    if query is None:
        query = _parse("query_unit", text, base_iri, None, watch)
        _queries.put(text, base_iri, query)
    return query


def parse_update(text: str, base_iri: str | None = None, watch: Watch | None = None) -> Update:
    """The tree of an update. Large DATA blocks are checked here too, so every fault of a text is found here,
    though their quads are not kept. watch as for `parse_query`.
    """
    update = _updates.get(text, base_iri)
    if update is None:
        update = _parse("update_unit", text, base_iri, LARGE_BLOCK_CHARS, watch)
        refused = fault_in_large_blocks(update)
        if refused is not None:
            if len(text) > GRAMMAR_CHARS_MAX:
                raise refused
            update = _parse("update_unit", text, base_iri, None, watch)
        _updates.put(text, base_iri, update)
    return update


def ground_quads(
    update: Update, operation: InsertData | DeleteData, fresh: Callable[[], BlankNode] | None = None
) -> Iterator[Quad]:
    """The quads of a DATA operation of the update, in the order of the text.

    fresh gives the blank node for each label or [] of the operation, the same for the same label; without it
    blank nodes keep labels as in the text, which are unique only within the operation.
    """
    if operation.read is not None:
        return renamed(operation.read, fresh)
    if operation.quads is not None:
        return quads_of_tree(operation.quads, fresh)
    return native_quads(update.text, operation, fresh)


def _parse(rule: str, text: str, base_iri: str | None, large_block: int | None, watch: Watch | None) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise fault("half of a surrogate pair is not a character", text, error.start) from None
    if base_iri is not None and (reason := why_invalid(base_iri)):
        raise QuerySyntaxError(f"the base IRI <{base_iri}> is not a valid absolute IRI: {reason}", 1, 1)
    tables = load_tables()
    builder = UpdateBuilder(text, base_iri)
    source = tokens(tables, text, large_block)
    return run(tables, rule, _Actions(builder), text, watch(source) if watch else source)


class _Actions(dict[str, Action]):
    """The builder's methods by name, bound when they are first needed."""

    def __init__(self, builder: UpdateBuilder) -> None:
        self._builder = builder

    def __missing__(self, name: str) -> Action:
        action: Action = getattr(self._builder, name)
        self[name] = action
        return action
