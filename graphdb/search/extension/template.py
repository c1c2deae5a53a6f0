"""`Template`: a SPARQL query with a placeholder in it, for which terms are put into its algebra.

`<{id}>` stands for an IRI and `"{id}"` or `'{id}'` for a string. The text is parsed with a constant of its
own in their place, so a placeholder is exactly one token. A value never becomes a part of that text: it
replaces the constant in the algebra, as one term of the same kind. So it cannot change what the query around
it means.
"""

import re
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.planning.gate import BYTE_ORDER_MARK, check, check_present, read_query
from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.extension.extension_request import QueryOption
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.iris import why_invalid
from graphdb.sparql.lexer import STRINGS, tokens
from graphdb.sparql.patterns import Aggregate
from graphdb.sparql.syntax import Query
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Span
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import all_below, all_rewritten

__all__ = ["Template", "iri_of", "read_template", "string_of"]

_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(frozen=True, slots=True)
class Template:
    """query and asked, its algebra, have mark in the place of placeholders: as an IRI or as a string.

    has_iri and has_string: which of the two there are.
    """

    option: QueryOption
    query: Query
    asked: AbstractQuery
    mark: str
    has_iri: bool
    has_string: bool

    @property
    def is_filled(self) -> bool:
        """Whether there is no placeholder."""
        return not (self.has_iri or self.has_string)

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that a SELECT answers with; of a star by their names."""
        names = tuple(variable.name for variable in self.asked.select.variables or ())
        is_star = self.query.select is not None and self.query.select.projections is None
        return tuple(sorted(names)) if is_star else names

    def takes(self, value: str) -> bool:
        """Whether a value can stand where the query has placeholders."""
        return string_of(value) is not None and not (self.has_iri and iri_of(value) is None)

    def filled(self, value: str, copy: int | None = None) -> AbstractQuery:
        """The query for one value that it takes.

        copy: its number where several stand in one query; a blank node's label must not stand in two groups.
        """

        def change(node: Any) -> Any:
            match node:
                case Iri(value=self.mark):
                    return Iri(value)
                case RdfLiteral(value=text, datatype=datatype) if self.mark in (text, datatype):
                    texts = [value if part == self.mark else part for part in (text, datatype)]
                    return replace(node, value=texts[0], datatype=texts[1])
                case BlankNodeLabel(label=label) if copy is not None:
                    return BlankNodeLabel(f"{label}c{copy}")
                case Aggregate(separator=self.mark):
                    return replace(node, separator=value)
            return node

        filled: AbstractQuery = all_rewritten(self.asked, change)
        return filled

    def has_placeholder(self, *roots: Any) -> bool:
        """Whether there is one in some algebra."""
        return any(map(self.is_placeholder, all_below(*roots)))

    def is_placeholder(self, node: Any) -> bool:
        """Whether one stands in this node, or is it."""
        match node:
            case Iri(value=text) | Aggregate(separator=text):
                return bool(text == self.mark)
            case RdfLiteral(value=text, datatype=datatype):
                return self.mark in (text, datatype)
        return False


def iri_of(value: str) -> Iri | None:
    """None for what is no absolute IRI."""
    if any(sign <= " " or sign in '<>"{}|^`\\' for sign in value) or why_invalid(value) is not None:
        return None
    return Iri(value)


def string_of(value: str) -> RdfLiteral | None:
    """None for half of a surrogate pair, which is no text."""
    if not value.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in value):
        return None
    return RdfLiteral(value, _XSD_STRING, None, None)


def read_template(option: QueryOption, form: str, limits: GateLimits, required: bool = True) -> Template:
    """form: SELECT or ASK, which the text has to be; required: whether it has to have the placeholder.

    Errors: illegal_argument_exception, and sparql_exception for what the gate refuses.
    """
    text, mark, spans = _marked(option)
    if required and not spans:
        raise _refused(option, f'does not contain the placeholder <{_brace(option)}> or "{_brace(option)}"')
    try:
        query = read_query(text, None, limits)
        check(query, limits)
        check_present(query)
    except RequestError as error:
        raise SearchError("sparql_exception", f"[{option.member}] {error}") from error
    if query.form != form:
        raise _refused(option, f"must be {form}, not {query.form}")
    _check_places(option, query, spans)
    kinds = set(spans.values())
    return Template(option, query, abstract_query(query), mark, True in kinds, False in kinds)


def _brace(option: QueryOption) -> str:
    return "{" + option.name + "}"


def _refused(option: QueryOption, reason: str) -> SearchError:
    return illegal_request(f"[{option.member}] the query {reason}")


def _marked(option: QueryOption) -> tuple[str, str, dict[Span, bool]]:
    """The text with constants in the place of placeholders, what these say, and where they are: whether each
    is an IRI.
    """
    given = option.text.removeprefix(BYTE_ORDER_MARK)
    brace = re.escape(_brace(option))
    place = re.compile(rf"<{brace}>|\"\"\"{brace}\"\"\"|'''{brace}'''|\"{brace}\"|'{brace}'")
    mark = next(f"urn:placeholder:{n}" for n in count() if f"urn:placeholder:{n}" not in given)
    pieces, spans, start, length = [], {}, 0, 0
    for found in place.finditer(given):
        before, is_iri = given[start : found.start()], found.group().startswith("<")
        token = f"<{mark}>" if is_iri else f'"{mark}"'
        begin = length + len(before)
        spans[Span(begin, begin + len(token))] = is_iri
        pieces += [before, token]
        length, start = begin + len(token), found.end()
    rest = given[start:]
    if _brace(option) in "".join(pieces) + rest:
        raise _misplaced(option)
    return "".join([*pieces, rest]), mark, spans


def _misplaced(option: QueryOption) -> SearchError:
    brace = _brace(option)
    return _refused(
        option,
        f'has {brace} where no term stands: it is <{brace}> for an IRI or "{brace}" for a string, and cannot '
        "be a part of another term, of a comment, of the prologue or of FROM",
    )


def _check_places(option: QueryOption, query: Query, spans: dict[Span, bool]) -> None:
    """Refuse placeholders within another term or a comment, and those that no copy of the query can have."""
    graphs = {clause.graph.span for clause in query.dataset}
    inside, is_prologue = 0, True
    for token in tokens(load_tables(), query.text):
        span = Span(token.start, token.end)
        is_prologue = is_prologue and token.terminal != query.form
        is_term = token.terminal == "IRIREF" or token.terminal in STRINGS
        inside += is_term and span in spans and span not in graphs and not is_prologue
    if inside < len(spans):
        raise _misplaced(option)
