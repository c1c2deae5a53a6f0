"""Query text made fit for the engine, where pyoxigraph reads SPARQL otherwise than the specification has it.

The text has been through our parser, and its tree says where to change it:

- TRUE and FALSE are put in small letters, the bracket of BNODE, COALESCE and CONCAT right behind the name,
  and `[]` and `()` are rid of comments.
- `SELECT *` of a whole query names its columns in the order of their first appearance.
- GROUP_CONCAT gives a literal without a language.
- ORDER BY, MIN and MAX go by the order of terms: see `order_edits`.
- A path of length zero from or to a constant that the graph does not hold, where it stands by itself.
- GRAPH with a variable: see `graph_variables`.
- Topology properties of GeoSPARQL: see `graphdb/geo/derived_triples.py`.

A text that needs nothing of this is left as it is.
"""

import re
from collections.abc import Callable, Sequence

from graphdb.errors import EvaluationFailed
from graphdb.geo.called_functions import calls_functions
from graphdb.sparql.construct_where import is_short, lengthen
from graphdb.sparql.geometry_edits import Derivation, Narrowing, has_derived
from graphdb.sparql.graph_variables import Place, mend_at, nodes_with_places
from graphdb.sparql.lexer import Token, tokens
from graphdb.sparql.order_edits import choose_by_keys, sort_by_keys, sorts_by_keys
from graphdb.sparql.parse_cache import ParseCache
from graphdb.sparql.patterns import (
    Aggregate,
    Bind,
    Filter,
    GroupGraphPattern,
    OptionalPattern,
    Path,
    RepeatedPath,
    SubSelect,
    TriplesBlock,
)
from graphdb.sparql.service_endpoints import name_endpoints_anew
from graphdb.sparql.slotted_text import EngineText
from graphdb.sparql.syntax import Query
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import Iri, PatternTerm, Span, Variable
from graphdb.sparql.text_edits import TextEdits

__all__ = [
    "columns_of",
    "engine_edits",
    "engine_pattern",
    "engine_text",
    "engine_text_and_services",
    "sort_whole",
]

# The names of functions that the engine wants a bracket right behind.
_CLOSED_UP = ("BNODE", "COALESCE", "CONCAT")
_UNREAD_SPELLING = re.compile(
    rf"\b(?:(?!true\b|false\b)(?i:true|false)\b|(?i:{'|'.join(_CLOSED_UP)})[\s#])|[\[(]\s*#"
)
_texts: ParseCache[EngineText] = ParseCache(entries_max=2048, chars_max=8_000_000)


def engine_text(query: Query) -> EngineText:
    """The text that asks the engine what the query asks. Kept, for a query may come again.

    Raises EvaluationFailed for SERVICE: the engine would call by itself whatever endpoint the text names.
    """
    _check_no_service(query)
    text = _texts.get(query.text, query.base_iri)
    if text is None:
        text = _query_text(query, TextEdits(query.text))
        _texts.put(query.text, query.base_iri, text)
    return text


def engine_text_and_services(query: Query, token: str) -> tuple[EngineText, dict[str, str]]:
    """`engine_text` with a placeholder for each endpoint that the engine would call, and what they stand for.

    See `name_endpoints_anew`, also for token and for what is raised.
    """
    if not query.service_hosts:
        return engine_text(query), {}
    edits = TextEdits(query.text)
    services = name_endpoints_anew(query, edits, token)
    return _query_text(query, edits), services


def engine_edits(query: Query, edits: TextEdits) -> Callable[[str], str]:
    """Put into edits what `engine_text` changes, for somebody who changes more, or wants a part.

    The order of the whole query is left to `sort_whole`, which comes after those further changes. Whatever is
    written out of them is fit for the engine once the result was called with it. Raises as `engine_text`.
    """
    _check_no_service(query)
    narrowing = _edit(query, edits)
    return str if narrowing is None else lambda text: narrowing.slotted(text).text


def engine_pattern(
    text: str, span: Span, pattern: GroupGraphPattern | None = None, token: str | None = None
) -> tuple[str, dict[str, str]]:
    """The part of an update's text that is a pattern, braces and all; without its tree, it is plain quads.

    With placeholders for endpoints, as `engine_text_and_services`; token is None where there is no SERVICE.
    """
    edits = TextEdits(text)
    services = name_endpoints_anew(pattern, edits, token) if pattern is not None and token is not None else {}
    _spell_as_the_engine_does(text, span, edits)
    if pattern is not None:
        _mend(text, pattern, edits)
    return edits.written(span), services


def sort_whole(query: Query, edits: TextEdits, more: Sequence[str] = ()) -> None:
    """Have the whole query sort by keys, as the last change; more are columns that were added to it."""
    shown = columns_of(query)
    if query.select is None:
        keys = (key.variable or key.expression for key in query.modifiers.group_by)
        shown = [key.name for key in keys if isinstance(key, Variable)] or sorted(_variables(query))
    sort_by_keys(query.text, query, [*shown, *more], {}, edits)


def _variables(query: Query) -> set[str]:
    """Those of a query's solutions."""
    found = set(query.where.variables) if query.where is not None else set()
    return found.union(
        variable.name for variable in (query.values.variables if query.values is not None else ())
    )


def _check_no_service(query: Query) -> None:
    if query.service_hosts:
        raise EvaluationFailed("SERVICE is evaluated by a reader only")


def _query_text(query: Query, edits: TextEdits) -> EngineText:
    narrowing = _edit(query, edits)
    sort_whole(query, edits)
    text = edits.written(Span(0, len(query.text)))
    return EngineText((text,)) if narrowing is None else narrowing.slotted(text)


def _edit(query: Query, edits: TextEdits) -> Narrowing | None:
    """Make all changes; what has marked places, in a text that calls functions of GeoSPARQL."""
    _spell_as_the_engine_does(query.text, Span(0, len(query.text)), edits)
    changes_pattern = query.where is not None and any(map(has_derived, query.where.elements))
    if is_short(query) and (changes_pattern or sorts_by_keys(query)):
        lengthen(query, edits)
    narrowing = Narrowing(query, edits) if calls_functions(query) else None
    _mend(query.text, query, edits, narrowing)
    if query.select is not None and query.select.projections is None:
        names = " ".join(f"?{name}" for name in columns_of(query))
        end = query.select.span.end
        if names:
            edits.replace(Span(end - 1, end), f" {names} ")
    return narrowing


def _spell_as_the_engine_does(text: str, span: Span, edits: TextEdits) -> None:
    """Booleans in small letters; no space behind some functions' names; no comments within [] and ()."""
    if not _UNREAD_SPELLING.search(text, *span):
        return
    before = None
    for token in _tokens(text, span):
        if token.terminal in ("TRUE", "FALSE"):
            edits.replace(Span(token.start, token.end), token.text.lower())
        elif token.terminal in ("ANON", "NIL") and "#" in token.text:
            edits.replace(Span(token.start, token.end), token.text[0] + token.text[-1])
        if before is not None and before.terminal in _CLOSED_UP and before.end < token.start:
            edits.replace(Span(before.end, token.start), "")
        before = token


def _tokens(text: str, span: Span) -> list[Token]:
    """The tokens of a part, with their places in the text."""
    found = tokens(load_tables(), text[span.start : span.end])
    return [Token(each.terminal, each.text, span.start + each.start, span.start + each.end) for each in found]


def columns_of(query: Query) -> list[str]:
    """What a SELECT shows, in order; a star the variables as they first appear. Another form shows none."""
    if query.select is None:
        return []
    if query.select.projections is not None:
        return [each.variable.name for each in query.select.projections]
    assert query.where is not None
    shown = _variables(query)
    after = _tokens(query.text, Span(query.select.span.end, len(query.text)))
    names = dict.fromkeys(token.text[1:] for token in after if token.terminal in ("VAR1", "VAR2"))
    return [name for name in names if name in shown]


def _mend(
    text: str, root: Query | GroupGraphPattern, edits: TextEdits, narrowing: Narrowing | None = None
) -> None:
    nodes = nodes_with_places(text, root, edits)
    slot = narrowing.slot if narrowing is not None else None
    derivation = Derivation(text, slot) if any(has_derived(node.node) for node in nodes) else None
    for node in reversed(nodes):
        match node.node:
            case Aggregate(name="GROUP_CONCAT", span=span):
                edits.around(span, "STR(", ")")
            case Aggregate():
                choose_by_keys(text, node.node, edits)
            case GroupGraphPattern():
                _mend_path(node.node, node.place, edits)
        if derivation is not None:
            derivation.mend_at(node, edits)
        if narrowing is not None:
            narrowing.mark_at(node.node)
        mend_at(node, edits)
        if isinstance(node.node, SubSelect):
            shown = [node.place.name(name) for name in sorted(node.node.variables)]
            own = [node.place.graph] if node.place.graph is not None else []
            sort_by_keys(text, node.node, list(dict.fromkeys([*own, *shown])), node.place.names, edits)


def _mend_path(group: GroupGraphPattern, place: Place, edits: TextEdits) -> None:
    """Add the solution of length zero that the engine misses, where a path is all that the group joins.

    Beside a triple pattern that shares the path's other end it would find nothing there anyway, and the
    engine plans such a join better without.
    """
    blocks = [part for part in group.elements if not isinstance(part, Filter | Bind | OptionalPattern)]
    match blocks:
        case [TriplesBlock(triples=(triple,), span=span)] if _may_be_empty(triple.predicate):
            ends = (triple.subject, triple.object)
        case _:
            return
    match ends:
        case (Iri(value=start), Iri(value=end)) if start == end:
            given = ""
        case (Iri(value=value), Variable(name=name)) | (Variable(name=name), Iri(value=value)):
            if place.name(name) == place.graph:
                return
            given = f"BIND(<{value}> AS ?{place.name(name)})"
        case _:
            return
    missing = f"{given} FILTER NOT EXISTS {{ {edits.written(span)} }}"
    edits.around(span, "{ { ", f" }} UNION {{ {missing} }} }}")


def _may_be_empty(path: PatternTerm | Path) -> bool:
    return isinstance(path, RepeatedPath) and path.modifier in "*?"
