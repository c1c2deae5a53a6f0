"""Terms and prologue: IRIs resolved, strings unescaped, prefixes and bases kept as the text declares them."""

import re
from difflib import get_close_matches
from typing import Any

from graphdb.errors import QuerySyntaxError
from graphdb.rdf.prefixes import WELL_KNOWN
from graphdb.sparql.iris import resolve_iri
from graphdb.sparql.lexer import fault
from graphdb.sparql.syntax import Prologue
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Span, TripleTerm, Variable

__all__ = ["RDF", "XSD", "TermBuilder"]

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_FORBIDDEN_IN_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20]')
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")  # well-formed as RFC 5646 asks


class TermBuilder:
    """Owns what one text has declared so far. Each method is the action of the grammar's rule of its name: it
    takes the values of the rule's parts and the place of the whole in the text, and gives the rule's value.
    """

    def __init__(self, text: str, base_iri: str | None) -> None:
        self.text = text
        self.base = self.passed_base = base_iri
        self.prefixes: dict[str, str] = {}
        self.in_force = Prologue(base_iri, ())  # base and prefixes where the current operation begins
        self.labels: list[tuple[int, str]] = []  # place and label of the blank nodes that the text names
        self._fresh = "anon"  # what labels made up begin with
        while f"_:{self._fresh}" in text:
            self._fresh += "0"
        self._fresh_count = 0

    def fault(self, reason: str, place: int) -> QuerySyntaxError:
        return fault(reason, self.text, place)

    def fresh_blank_node(self, start: int, end: int) -> BlankNodeLabel:
        self._fresh_count += 1
        return BlankNodeLabel(f"{self._fresh}{self._fresh_count}", Span(start, end))

    # Prologue

    def base_decl(self, parts: list[Any], start: int, end: int) -> None:
        self.base = self._resolved(parts[0], end - len(parts[0]))

    def prefix_decl(self, parts: list[Any], start: int, end: int) -> None:
        self.prefixes[parts[0][:-1]] = self._resolved(parts[1], end - len(parts[1]))

    def version_decl(self, parts: list[Any], start: int, end: int) -> None:
        """VERSION announces, and changes nothing: the grammar reads 1.2 whatever is announced."""
        self._unescaped(parts[0][1:-1], end - len(parts[0]) + 1)

    def prologue(self, parts: list[Any], start: int, end: int) -> Prologue:
        self.in_force = Prologue(self.base, tuple(self.prefixes.items()))
        return self.in_force

    # Terms

    def var(self, parts: list[Any], start: int, end: int) -> Variable:
        return Variable(parts[0][1:], Span(start, end))

    def iriref(self, parts: list[Any], start: int, end: int) -> Iri:
        return Iri(self._resolved(parts[0], start), Span(start, end))

    def prefixed_name(self, parts: list[Any], start: int, end: int) -> Iri:
        prefix, _, local = parts[0].partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            raise self._undeclared(prefix, local, start)
        if "\\" in local:
            local = _LOCAL_ESCAPE.sub(r"\1", local)
        return Iri(self._checked(namespace + local, start), Span(start, end))

    def _undeclared(self, prefix: str, local: str, place: int) -> QuerySyntaxError:
        usual = WELL_KNOWN.get(prefix)
        hint = f"; usually PREFIX {prefix}: <{usual}>" if usual else ""
        if not usual and (near := get_close_matches(prefix, self.prefixes, 1)):
            hint = f"; '{near[0]}:' is, as <{self.prefixes[near[0]]}>"
        found = self.fault(f"the prefix '{prefix}:' is not declared{hint}", place)
        return QuerySyntaxError(found.reason, found.line, found.column, f"{prefix}:{local}")

    def rdf_type(self, parts: list[Any], start: int, end: int) -> Iri:
        return Iri(RDF + "type", Span(start, end))

    def nil(self, parts: list[Any], start: int, end: int) -> Iri:
        return Iri(RDF + "nil", Span(start, end))

    def blank_node(self, parts: list[Any], start: int, end: int) -> BlankNodeLabel:
        label = parts[0][2:]
        self.labels.append((start, label))
        return BlankNodeLabel(label, Span(start, end))

    def anon(self, parts: list[Any], start: int, end: int) -> BlankNodeLabel:
        return self.fresh_blank_node(start, end)

    def string(self, parts: list[Any], start: int, end: int) -> str:
        return self._unescaped(parts[0][1:-1], start + 1)

    def long_string(self, parts: list[Any], start: int, end: int) -> str:
        return self._unescaped(parts[0][3:-3], start + 3)

    def rdf_literal(self, parts: list[Any], start: int, end: int) -> RdfLiteral:
        value, kind = parts
        if kind is None:
            return RdfLiteral(value, XSD + "string", None, None, Span(start, end))
        if isinstance(kind, Iri):
            return RdfLiteral(value, kind.value, None, None, Span(start, end))
        language, _, direction = kind[1:].partition("--")
        place = end - len(kind)
        if not _LANGUAGE.fullmatch(language):
            raise self.fault(f"'{language}' is not a well-formed language tag", place)
        if direction not in ("", "ltr", "rtl"):
            raise self.fault(f"the base direction is 'ltr' or 'rtl', not '{direction}'", place)
        datatype = RDF + ("dirLangString" if direction else "langString")
        return RdfLiteral(value, datatype, language, direction or None, Span(start, end))

    def numeric_literal(self, parts: list[Any], start: int, end: int) -> RdfLiteral:
        word = parts[0]
        datatype = "double" if "e" in word or "E" in word else "decimal" if "." in word else "integer"
        return RdfLiteral(word, XSD + datatype, None, None, Span(start, end))

    def boolean_literal(self, parts: list[Any], start: int, end: int) -> RdfLiteral:
        return RdfLiteral(parts[0].lower(), XSD + "boolean", None, None, Span(start, end))

    def triple_term(self, parts: list[Any], start: int, end: int) -> TripleTerm:
        return TripleTerm(parts[0], parts[1], parts[2], Span(start, end))

    # Texts of terms

    def _resolved(self, word: str, start: int) -> str:
        reference = word[1:-1]
        if "\\" in reference:
            reference = self._unescaped(reference, start + 1, names=False)
            if _FORBIDDEN_IN_IRI.search(reference):
                raise self.fault("an escape stands for a character that IRIs cannot hold", start)
        try:
            return resolve_iri(reference, self.base)
        except ValueError as error:
            raise self.fault(str(error), start) from None

    def _checked(self, iri: str, start: int) -> str:
        try:
            return resolve_iri(iri, None)
        except ValueError as error:
            raise self.fault(str(error), start) from None

    def _unescaped(self, written: str, start: int, names: bool = True) -> str:
        """Codepoint escapes, and with names also \\n and its like, replaced once, from the left."""
        if "\\" not in written:
            return written

        def character(escape: re.Match[str]) -> str:
            short, long, name = escape.groups()
            if name is not None:
                if names and name in _CHARACTERS:
                    return _CHARACTERS[name]
                raise self.fault(f"'\\{name}' is not an escape", start + escape.start())
            code = int(short or long, 16)
            if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                raise self.fault(f"'{escape[0]}' is not a character of Unicode", start + escape.start())
            return chr(code)

        return _ESCAPE.sub(character, written)
