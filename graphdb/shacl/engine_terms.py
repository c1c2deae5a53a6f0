"""Terms in queries for the engine: as text, and by functions in Python where no text can name them."""

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Store, Triple

from graphdb.shacl.shacl_names import Term

__all__ = ["EngineFunctions", "pattern_fault", "string_text", "term_text"]

PATTERN_CHARACTERS_MAX = 10_000


def term_text(term: Term) -> str:
    """A term as in N-Triples. That of a blank node is for people: no query can name one."""
    if isinstance(term, Triple):
        return f"<<( {term_text(term.subject)} {term.predicate} {term_text(term.object)} )>>"
    return str(term)


def string_text(text: str) -> str:
    """A plain string, in quotes."""
    return str(Literal(text))


def pattern_fault(pattern: str, flags: str) -> str | None:
    """Why the engine cannot match a regular expression; None where it can.

    It has no look-around and no back-references, and so needs no more than linear time.
    """
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        return f"is longer than {PATTERN_CHARACTERS_MAX} characters"
    text = f"SELECT (REGEX('', {string_text(pattern)}, {string_text(flags)}) AS ?found) {{}}"
    [[found]] = Store().query(text)  # type: ignore[misc]
    if found is not None:
        return None
    shown = f"{string_text(pattern)[:200]} with the flags {string_text(flags)[:20]}"
    return f"{shown} is no pattern that the engine reads"


_Function: TypeAlias = Callable[..., Term | None]


class EngineFunctions:
    """They stay as long as this object. A call costs the engine about three microseconds."""

    def __init__(self) -> None:
        self._functions: dict[NamedNode, _Function] = {}
        self._numbers = count()

    @property
    def by_name(self) -> Mapping[NamedNode, _Function]:
        """As the engine wants them."""
        return self._functions

    def membership(self, members: Collection[Term]) -> NamedNode:
        """A function that says whether its argument is one of these, which must be quick to ask."""
        return self._named(lambda term: Literal(term in members))

    def indexing(self, terms: tuple[Term, ...]) -> NamedNode:
        """A function that gives the term with this number, from 0 on."""

        def nth(number: Literal) -> Term:
            return terms[int(number.value)]

        return self._named(nth)

    def include(self, functions: Mapping[NamedNode, _Function]) -> None:
        """Take in functions that have names already."""
        self._functions.update(functions)

    def _named(self, function: _Function) -> NamedNode:
        name = NamedNode(f"urn:graphdb:shacl:function:{next(self._numbers)}")
        self._functions[name] = function
        return name
