"""`Template`: a SPARQL text with a placeholder in it, which is filled in as a term and never as text.

`<{id}>` stands for an IRI and `"{id}"` or `'{id}'` for a string. The text is parsed with a term of its own in
their place, so a placeholder is exactly one token, and what is written there later is one token of the same
kind: a value cannot change what the text around it means.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.planning.gate import BYTE_ORDER_MARK, check, read_query
from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.extension.request import QueryOption
from graphdb.sparql.iris import why_invalid
from graphdb.sparql.lexer import STRINGS, tokens
from graphdb.sparql.syntax import Query
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import Span

__all__ = ["Slot", "Template", "read_template", "value_as_iri", "value_as_string"]

_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\b": "\\b",
        "\f": "\\f",
        "\0": "\\u0000",
    }
)


class Slot(NamedTuple):
    """A placeholder: the place of its token, and whether it stands for an IRI (else for a string)."""

    span: Span
    is_iri: bool


class _Label(NamedTuple):
    """A label of a blank node, which is another one in each copy of a text."""

    span: Span
    number: int


@dataclass(frozen=True, slots=True)
class Template:
    """text has other terms in the place of its placeholders; query is its tree.

    head_end: where the prologue ends and SELECT or ASK begins. size: the number of its tokens.
    """

    option: QueryOption
    text: str
    query: Query
    slots: tuple[Slot, ...]
    labels: tuple[_Label, ...]
    head_end: int
    size: int

    @property
    def head(self) -> str:
        """The prologue."""
        return self.text[: self.head_end]

    @property
    def dataset(self) -> str:
        """FROM and FROM NAMED."""
        return "".join(
            f"FROM {'NAMED ' if clause.named else ''}<{clause.graph.value}>\n"
            for clause in self.query.dataset
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that a SELECT answers with."""
        query = self.query
        assert query.select is not None
        assert query.where is not None
        if query.select.projections is not None:
            return tuple(projection.variable.name for projection in query.select.projections)
        further = () if query.values is None else (variable.name for variable in query.values.variables)
        return tuple(sorted({*query.where.variables, *further}))

    @property
    def wants_iri(self) -> bool:
        """Whether a value has to be an IRI."""
        return any(slot.is_iri for slot in self.slots)

    def takes(self, value: str) -> bool:
        """Whether a value can stand where the text has placeholders."""
        return value_as_string(value) is not None and not (self.wants_iri and value_as_iri(value) is None)

    def filled(self, value: str, part: Span | None = None, copy: int | None = None) -> str:
        """A part of the text for one value that it takes; the whole unless given.

        copy: which copy of the text it is among several in one query.
        """
        iri, string = value_as_iri(value), value_as_string(value)
        assert string is not None
        return self.written(lambda slot: (iri or "") if slot.is_iri else string, part, copy)

    def written(self, fill: Callable[[Slot], str], part: Span | None = None, copy: int | None = None) -> str:
        """A part of the text with something else in the place of each placeholder."""
        part = part or Span(0, len(self.text))
        edits = [(slot.span, fill(slot)) for slot in self.slots]
        if copy is not None:
            edits += [(label.span, f"_:b{label.number}c{copy}") for label in self.labels]
        pieces, place = [], part.start
        for span, new in sorted(edits):
            if part.start <= span.start and span.end <= part.end:
                # Blanks, so that what is written never grows together with what is beside it.
                pieces += [self.text[place : span.start], " ", new, " "]
                place = span.end
        return "".join([*pieces, self.text[place : part.end]])


def value_as_iri(value: str) -> str | None:
    """As SPARQL writes it; None for what is no absolute IRI."""
    if any(sign <= " " or sign in '<>"{}|^`\\' for sign in value) or why_invalid(value) is not None:
        return None
    return f"<{value}>"


def value_as_string(value: str) -> str | None:
    """As SPARQL writes it; None for half of a surrogate pair, which is no text."""
    if not value.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in value):
        return None
    return f'"{value.translate(_ESCAPES)}"'


def read_template(option: QueryOption, form: str, limits: GateLimits, required: bool = True) -> Template:
    """form: SELECT or ASK, which the text has to be; required: whether it has to have the placeholder.

    Errors: illegal_argument_exception, and sparql_exception for what the gate refuses.
    """
    text, spans = _marked(option)
    if required and not spans:
        raise _refused(option, f'does not contain the placeholder <{_brace(option)}> or "{_brace(option)}"')
    try:
        query = read_query(text, None, limits)
        check(query, limits)
    except RequestError as error:
        raise SearchError("sparql_exception", f"[{option.member}] {error}") from error
    if query.form != form:
        raise _refused(option, f"must be {form}, not {query.form}")
    template = _taken_apart(option, text, query, spans)
    _check_places(template, spans)
    return template


def _brace(option: QueryOption) -> str:
    return "{" + option.name + "}"


def _refused(option: QueryOption, reason: str) -> SearchError:
    return illegal_request(f"[{option.member}] the query {reason}")


def _marked(option: QueryOption) -> tuple[str, dict[Span, bool]]:
    """The text with terms in the place of placeholders, and where these are: whether each is an IRI."""
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
    return "".join([*pieces, rest]), spans


def _misplaced(option: QueryOption) -> SearchError:
    brace = _brace(option)
    return _refused(
        option,
        f'has {brace} where no term stands: it is <{brace}> for an IRI or "{brace}" for a string, and cannot '
        "be a part of another term, of a comment, of the prologue or of FROM",
    )


def _taken_apart(option: QueryOption, text: str, query: Query, spans: dict[Span, bool]) -> Template:
    """Each placeholder has to be a token of the text."""
    slots: list[Slot] = []
    labels: list[_Label] = []
    numbers: dict[str, int] = {}
    head_end, size = -1, 0
    for token in tokens(load_tables(), text):
        span, size = Span(token.start, token.end), size + 1
        if span in spans and (token.terminal == "IRIREF" or token.terminal in STRINGS):
            slots.append(Slot(span, spans[span]))
        elif token.terminal == "BLANK_NODE_LABEL":
            labels.append(_Label(span, numbers.setdefault(token.text, len(numbers))))
        elif head_end < 0 and token.terminal == query.form:
            head_end = token.start
    assert head_end >= 0
    return Template(option, text, query, tuple(slots), tuple(labels), head_end, size)


def _check_places(template: Template, spans: dict[Span, bool]) -> None:
    """Refuse placeholders within another term or a comment, and those that no copy of the query can have."""
    graphs = {clause.graph.span for clause in template.query.dataset}
    inside = [
        slot for slot in template.slots if slot.span.start > template.head_end and slot.span not in graphs
    ]
    if len(inside) < len(spans):
        raise _misplaced(template.option)
