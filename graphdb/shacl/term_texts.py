"""Terms and patterns as the engine's SPARQL writes them."""

from pyoxigraph import Literal, Store, Triple

from graphdb.shacl.vocabulary import Term

__all__ = ["pattern_fault", "string_text", "term_text"]

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
