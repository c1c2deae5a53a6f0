"""Plain INSERT DATA and DELETE DATA, the usual updates of a program, read without the grammar.

One operation on the default graph, whose block has only absolute IRIs, prefixed names, blank node labels and
literals without escapes. A regular expression says whether a text is one; pyoxigraph's TriG parser reads
the block, for within these bounds the two languages are the same. Any other text, and each that the TriG
parser refuses, is for the grammar, which also names the faults: nothing is refused here. A text of one triple
takes a seventh of the time.

One triple of IRIs, or with a string as its object, is the most usual of all. Its terms are made without the
TriG parser, and it has a class of its own, `OneTriple`, that is planned and logged in fewer steps.
"""

import re

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse, serialize

from graphdb.sparql.iris import why_invalid
from graphdb.sparql.syntax import DeleteData, InsertData, Operation, Prologue, Update
from graphdb.sparql.terms import Span

__all__ = ["CHARS_MAX", "OneTriple", "plain_update"]

CHARS_MAX = 8192  # of a text; what is longer goes to the native parser by another way
_TOKENS = 4  # of an operation, beside its data

_SPACE = r"[ \t\r\n]"
_ABSOLUTE = r'[A-Za-z][A-Za-z0-9+.\-]*+:[^<>"{}|^`\\\x00-\x20]*+'
_IRI = f"<{_ABSOLUTE}>"
_PREFIX = r"(?:[A-Za-z][A-Za-z0-9_\-]*+)?:"
# Where a word ends, so that both lexers see the same one; the same goes for a dot and a number after it.
_END = rf"(?={_SPACE}|[;,}}]|\.(?:{_SPACE}|\}}))"
_NAME = rf"{_PREFIX}[A-Za-z0-9_][A-Za-z0-9_\-]*+{_END}"
_TAG = rf"@[A-Za-z]{{1,8}}(?:-[A-Za-z0-9]{{1,8}}|)*+{_END}"
_STRING = rf'"(?!"")[^"\\\r\n]*+"(?:{_TAG}|\^\^(?:{_IRI}|{_NAME})|)?+'
_NUMBER = rf"[+\-]?[0-9]++(?:\.[0-9]++|)?+(?:[eE][+\-]?[0-9]++|)?+{_END}"
_WORD = rf"(?:a|true|false){_END}"
_LABEL = rf"_:[A-Za-z0-9_]++{_END}"
_BLOCK = rf"(?:{_SPACE}++|{_IRI}|{_STRING}|{_NAME}|{_NUMBER}|{_WORD}|{_LABEL}|[;,]|\.(?={_SPACE}|\}})|)*+"
_DECLARATION = rf"(?i:PREFIX){_SPACE}++({_PREFIX}){_SPACE}*+({_IRI}){_SPACE}*+"
_DECLARED = re.compile(_DECLARATION)
_NO_PROLOGUE = Prologue()
_TRIPLE = re.compile(
    rf"{_SPACE}*+(?P<operation>(?P<verb>(?i:INSERT|DELETE)){_SPACE}++(?i:DATA){_SPACE}*+"
    rf"(?P<block>\{{{_SPACE}*+<({_ABSOLUTE})>{_SPACE}*+<({_ABSOLUTE})>{_SPACE}*+"
    rf'(?:<({_ABSOLUTE})>|"([^"\\\r\n]*+)"){_SPACE}*+\.?+{_SPACE}*+\}}))'
    rf"{_SPACE}*+\Z"
)
_TEXT = re.compile(
    rf"{_SPACE}*+(?P<declared>(?:(?i:PREFIX){_SPACE}++{_PREFIX}{_SPACE}*+{_IRI}{_SPACE}*+|)*+)"
    rf"(?P<operation>(?P<verb>(?i:INSERT|DELETE)){_SPACE}++(?i:DATA){_SPACE}*+(?P<block>\{{{_BLOCK}\}}))"
    rf"{_SPACE}*+\Z"
)


class OneTriple(Update):
    """INSERT DATA or DELETE DATA of one triple without blank nodes, in the form that the store keeps.

    Its operation is made when somebody asks for it: who plans it takes the quad.
    """

    __slots__ = ("_found", "deletes", "line", "quad")

    deletes: bool
    line: bytes  # of the quad in N-Quads
    quad: Quad
    _found: re.Match[str]

    def __init__(
        self, text: str, base_iri: str | None, found: re.Match[str], deletes: bool, quad: Quad, line: bytes
    ) -> None:
        """found: what `_TRIPLE` has found in the text."""
        put = object.__setattr__  # it is frozen, as any `Update`
        put(self, "text", text)
        put(self, "base_iri", base_iri)
        put(self, "_found", found)
        put(self, "deletes", deletes)
        put(self, "quad", quad)
        put(self, "line", line)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The one operation."""
        prologue = _NO_PROLOGUE if self.base_iri is None else Prologue(self.base_iri)
        return (_operation(self._found, prologue, (self.quad,)),)

    @property
    def service_hosts(self) -> tuple[()]:
        """Data calls nobody."""
        return ()


def plain_update(text: str, base_iri: str | None, tokens_max: int) -> Update | None:
    """What `parse_update` would make of a text; None where the grammar is to decide.

    base_iri is as for `parse_update`. tokens_max: a text with more tokens beside its data is not for here.
    The operation has its quads as `read`, in place of its syntax.
    """
    if len(text) > CHARS_MAX:
        return None
    if (found := _TRIPLE.match(text)) is not None:
        return _one_triple(text, found, base_iri, tokens_max)
    if (found := _TEXT.match(text)) is None:
        return None
    document = found["block"]
    deletes = found["verb"][0] in "Dd"
    declared = _DECLARED.findall(text, *found.span("declared")) if found["declared"] else ()
    if (
        3 * len(declared) + _TOKENS > tokens_max
        or (deletes and "_:" in document)
        or "angString" in text  # a datatype that goes with a language tag only
        or (base_iri is not None and why_invalid(base_iri))
    ):
        return None
    prologue = _NO_PROLOGUE if base_iri is None else Prologue(base_iri)
    if declared:
        prefixes = {prefix[:-1]: iri[1:-1] for prefix, iri in declared}
        if len(prefixes) < len(declared):  # one was declared twice
            return None
        prologue = Prologue(base_iri, tuple(prefixes.items()))
        document = "".join([f"@prefix {prefix} {iri} .\n" for prefix, iri in declared]) + document
    try:
        read: tuple[Quad, ...] = tuple(parse(document.encode(), RdfFormat.TRIG))
    except (SyntaxError, ValueError):  # ValueError: half of a surrogate pair
        return None
    return _update(text, found, prologue, base_iri, read)


def _one_triple(text: str, found: re.Match[str], base_iri: str | None, tokens_max: int) -> Update | None:
    """The same for a text that is one triple."""
    if tokens_max < _TOKENS or (base_iri is not None and why_invalid(base_iri)):
        return None
    _, verb, _, subject, predicate, iri, string = found.groups()
    try:
        if iri is not None:
            quad = Quad(NamedNode(subject), NamedNode(predicate), NamedNode(iri))
            line = f"<{subject}> <{predicate}> <{iri}> .\n".encode()
        else:
            quad = Quad(NamedNode(subject), NamedNode(predicate), Literal(string))
            if string.isprintable():
                line = f'<{subject}> <{predicate}> "{string}" .\n'.encode()
            else:  # some of its characters are escaped
                line = serialize((quad,), format=RdfFormat.N_QUADS) or b""
    except ValueError:  # no IRI, or half of a surrogate pair
        return None
    return OneTriple(text, base_iri, found, verb[0] in "Dd", quad, line)


def _update(
    text: str, found: re.Match[str], prologue: Prologue, base_iri: str | None, read: tuple[Quad, ...]
) -> Update:
    return Update(text, (_operation(found, prologue, read),), (), base_iri)


def _operation(found: re.Match[str], prologue: Prologue, read: tuple[Quad, ...]) -> InsertData | DeleteData:
    block, span = Span(*found.span("block")), Span(*found.span("operation"))
    kind = DeleteData if found["verb"][0] in "Dd" else InsertData
    return kind(prologue, None, block, span, read)
