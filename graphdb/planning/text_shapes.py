"""Texts of queries that differ in constants alone have one shape, and what was found of one holds for all.

A text is cut at its IRIs, prefixed names, strings, unsigned integers and comments. Its shape is what stands
between these, and each of them that is not a slot. A slot is a constant that stands as the subject or the
object of triple patterns without a path, and nowhere else. No decision on a query looks at these: which
index is scanned, what is joined and in which order depends on where there are constants, not on what they
are. So the engine's text of one query, with other constants in its slots, is the engine's text of the other.

What could be cut at a wrong place is not cut at all: a text with an escape, a long string, a triple term.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyoxigraph import Literal, NamedNode

from graphdb.sparql.patterns import TriplePattern
from graphdb.sparql.printing import written_term
from graphdb.sparql.search_requests import TEXT
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, RdfLiteral, Span, TripleTerm, Variable
from graphdb.sparql.translation import abstract_query, searches_of
from graphdb.sparql.tree_walk import all_below, all_parts_of, nodes_of

__all__ = ["Constant", "CutText", "NumberedText", "Slots", "cut_text", "numbered_text", "slots_of"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_TEXTS = frozenset({TEXT + "query", "http://www.w3.org/1999/02/22-rdf-syntax-ns#first"})
_INTEGER = NamedNode(_XSD + "integer")
_OURS = "urn:graphdb:"  # marks of `graphdb.geo.entailment`, which decide about a pattern, and our own slots

# As the lexer reads them. A name or number is surrounded by what can be in no other token, so that it is one.
_CONSTANT = re.compile(
    r"""(<[^<>"{}|^`\\\x00-\x20]*+>"""
    r"""|"[^"\\\n\r]*+"|'[^'\\\n\r]*+'"""
    r"""|\#[^\r\n]*+"""
    r"""|(?<=[\ \t\r\n{(;,])(?:(?:[A-Za-z][A-Za-z0-9_\-]*+|)?+:[A-Za-z0-9_][A-Za-z0-9_\-]*+|[0-9]++)"""
    r"""(?=[\ \t\r\n}),;]))"""
)
# Variables, strings, unsigned integers, and what may hold the like of them. A name with other letters is left
# as it is.
_NUMBERED = re.compile(
    r"""<[^<>"{}|^`\\\x00-\x20]*+>|\#[^\r\n]*+"""
    r"""|[?$]([0-9A-Za-z_]++)(?![^\x00-\x7f])"""
    r"""|("[^"\\\n\r]*+"|'[^'\\\n\r]*+')"""
    r"""|(?<=[\ \t\r\n{(;,])([0-9]++)(?=[\ \t\r\n}),;])"""
)
_KINDS = dict(zip("<\"'#", "<\"'#", strict=True)) | dict.fromkeys("0123456789", "0")  # by the first character
_MARK = re.compile(rf'<{_OURS}slot:([0-9]+)>|"{_OURS}slot:([0-9]+)"')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*+:")


@dataclass(frozen=True, slots=True)
class CutText:
    """A text in pieces, and the constants and comments between them as they are written."""

    form: str  # the pieces, and of which kind is what stands between them
    constants: Sequence[str]

    def with_fixed(self, slots: Iterable[int]) -> str:
        """The form with every constant that is not at one of these places: what two texts of one shape have
        in common.
        """
        fixed = list(self.constants)
        for place in slots:
            fixed[place] = ""
        return "\0".join((self.form, *fixed))


def cut_text(text: str) -> CutText | None:
    """None where it is not certain that the lexer would cut it there too."""
    if _may_be_cut_wrongly(text):
        return None
    if not (text.isascii() or _is_encodable(text)):
        return None
    parts = _CONSTANT.split(text)
    constants = parts[1::2]
    kinds = "".join([_KINDS.get(constant[0], ":") for constant in constants])
    return CutText("\0".join((kinds, *parts[::2])), constants)


@dataclass(frozen=True, slots=True)
class NumberedText:
    """A text with numbers in place of the names of its variables, and marks in place of its literals."""

    form: str
    names: Sequence[str]  # in the order in which they first appear
    literals: Sequence[tuple[Span, str]]  # strings and unsigned integers, and where they stand

    def with_fixed(self, places: Container[int]) -> str:
        """The form with every literal that is not at one of these places: two texts that have this in common
        differ in names of variables and in the other literals alone.
        """
        fixed = [value for place, (_, value) in enumerate(self.literals) if place not in places]
        return "\0".join((self.form, *fixed))

    def places(self, query: Query, *, in_triples: bool = True) -> tuple[int, ...]:
        """Those of the literals that are nothing but constants in the algebra of the text; without
        in_triples, of its expressions.
        """
        asked = abstract_query(query)
        nodes = all_below(asked) if in_triples else nodes_of(asked)
        constants = {each.span for each in nodes if isinstance(each, RdfLiteral)}
        return tuple(place for place, (span, _) in enumerate(self.literals) if span in constants)


def numbered_text(text: str) -> NumberedText | None:
    """None where it is not certain that the lexer would find the same variables and literals."""
    if _may_be_cut_wrongly(text):
        return None
    numbers: dict[str, int] = {}
    literals: list[tuple[Span, str]] = []

    def numbered(found: re.Match[str]) -> str:
        name, string, integer = found.groups()
        if name is not None:
            return f"\0{numbers.setdefault(name, len(numbers))}\0"
        if string is None and integer is None:
            return found[0]
        literals.append((Span(*found.span()), integer or string[1:-1]))
        return "\0s" if integer is None else "\0i"

    return NumberedText(_NUMBERED.sub(numbered, text), list(numbers), literals)


def _may_be_cut_wrongly(text: str) -> bool:
    return "\\" in text or "<<" in text or '"""' in text or "'''" in text or "\0" in text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


@dataclass(frozen=True, slots=True)
class Constant:
    """What stands in a slot: as the engine's text has it, and as a term of the store."""

    written: str
    term: NamedNode | Literal


class Slots:
    """The slots of a shape: their places among the constants of its texts."""

    def __init__(self, places: tuple[int, ...], prefixes: Mapping[str, str]) -> None:
        """prefixes: that hold in all texts of the shape."""
        self.places, self._prefixes = places, prefixes

    def with_prefixes(self, prefixes: Mapping[str, str]) -> "Slots":
        """The same places in texts that declare other prefixes."""
        return Slots(self.places, prefixes)

    def text_with_marks(self, text: str) -> tuple[str, list[Constant]]:
        """A text of the shape with marks in its slots, IRIs for IRIs, strings for literals; these marks."""
        parts = _CONSTANT.split(text)
        marks = []
        for number, place in enumerate(self.places):
            mark = f"{_OURS}slot:{number}"
            is_literal = parts[2 * place + 1][0] in "\"'0123456789"
            written = f'"{mark}"' if is_literal else f"<{mark}>"
            parts[2 * place + 1] = written
            marks.append(Constant(written, Literal(mark) if is_literal else NamedNode(mark)))
        return "".join(parts), marks

    def pieces(self, text: str) -> tuple[list[str], list[int]]:
        """The pieces of a text between the marks in it, and the numbers of these slots."""
        parts = _MARK.split(text)
        return parts[::3], [int(one or other) for one, other in zip(parts[1::3], parts[2::3], strict=True)]

    def constants(self, cut: CutText) -> list[Constant] | None:
        """What a text has in the slots; None where one is invalid, or one that decisions look at: then the
        text is to be read in full.
        """
        found = []
        for place in self.places:
            constant = self._constant(cut.constants[place])
            if constant is None:
                return None
            found.append(constant)
        return found

    def _constant(self, word: str) -> Constant | None:
        first = word[0]
        if first in "\"'":
            value = word[1:-1]
            return Constant(written_term(RdfLiteral(value, _XSD + "string", None, None)), Literal(value))
        if first.isdigit():
            return Constant(word, Literal(word, datatype=_INTEGER))
        if first == "<":
            iri = word[1:-1]
            if _SCHEME.match(iri) is None:
                return None
        else:
            prefix, _, local = word.partition(":")
            namespace = self._prefixes.get(prefix)
            if namespace is None:
                return None
            iri = namespace + local
        if iri.startswith(_OURS):
            return None
        try:
            return Constant(f"<{iri}>", NamedNode(iri))
        except ValueError:
            return None


def _decides(triple: TriplePattern) -> bool:
    """Whether the constants of a triple may be what a search is given: all but the text to look for."""
    match triple:
        case TriplePattern(predicate=Iri(value=verb), object=RdfLiteral() as given) if verb in _TEXTS:
            is_option = given.value.startswith(("lang:", "highlight:"))
            return is_option or given.datatype != _XSD + "string" or isinstance(triple.subject, Iri)
        case TriplePattern(predicate=Iri(value=verb)):
            return verb in _TEXTS
    return False


def slots_of(query: Query, cut: CutText) -> Slots | None:
    """The slots of a query's text; None without any."""
    spans, place = {}, 0
    pieces = cut.form.split("\0")[1:]
    for number, constant in enumerate(cut.constants):
        start = place + len(pieces[number])
        place = start + len(constant)
        spans[Span(start, place)] = number
    free = _free(query)
    places = tuple(number for span, number in spans.items() if span in free)
    return Slots(places, dict(query.prologue.prefixes)) if places else None


def _free(query: Query) -> set[Span]:
    """Where constants stand as ends of triple patterns without a path, and as nothing else. Nowhere in a text
    that has one like a mark.
    """
    ends, others = set[Span](), set[Span]()
    searches = searches_of(query)
    if any(search.within is not None for search in searches):
        return set()  # what restricts a search stands twice
    waiting: list[Any] = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, TriplePattern) and isinstance(node.predicate, Iri | Variable):
            constants = [end for end in (node.subject, node.object) if isinstance(end, Iri | RdfLiteral)]
            if searches and _decides(node):
                others.update(end.span for end in constants)
            ends.update(end.span for end in constants)
            if any(_OURS in end.value for end in constants):
                return set()
            waiting += [
                part
                for part in (node.subject, node.predicate, node.object)
                if isinstance(part, TripleTerm) or part is node.predicate
            ]
        elif isinstance(node, Iri | RdfLiteral):
            if _OURS in node.value:
                return set()
            others.add(node.span)
        else:
            waiting += all_parts_of(node)
    return ends - others
