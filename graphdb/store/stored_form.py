"""Quads in the form in which the engine keeps them.

pyoxigraph keeps numbers, truth values, dates and durations as values, and gives them back in their canonical
form: "01"^^xsd:integer comes back as "1"^^xsd:integer, and "01"^^xsd:byte does too. Python takes the two for
different quads, the store takes them for one. So whatever is compared with the store, counted or logged is
put into the store's form first.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

__all__ = ["stored_form", "stored_term"]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple

XSD = "http://www.w3.org/2001/XMLSchema#"
ANY = NamedNode("fn:any")


def stored_form(quads: Iterable[Quad]) -> Iterator[Quad]:
    """The same quads as the store would give them back."""
    for quad in quads:
        before = quad.object
        if isinstance(before, Literal | Triple):
            after = stored_term(before)
            if after is not before:
                quad = Quad(quad.subject, quad.predicate, after, quad.graph_name)
        yield quad


def stored_term(term: Term) -> Term:
    """One term as the store would give it back; the very same object where that is the same term."""
    if isinstance(term, Triple):
        return _stored(term)
    if not isinstance(term, Literal) or _is_kept(term):
        return term
    return _stored(term)


def _is_kept(literal: Literal) -> bool:
    """True for most literals that the engine keeps as they are, found without asking it."""
    datatype = literal.datatype.value
    if not datatype.startswith(XSD) or datatype == XSD + "string":
        return True
    value = literal.value
    is_plain_number = value.isascii() and value.isdecimal() and value[0] != "0" and len(value) < 19
    return is_plain_number and datatype == XSD + "integer"


@lru_cache(maxsize=4096)
def _stored(term: Literal | Triple) -> Term:
    store = Store()
    store.add(Quad(ANY, ANY, term))
    after = next(iter(store)).object
    return term if after == term else after
