"""LIVE SELECT, read: over a table, or a SELECT of SPARQL.

    prologue LIVE SELECT * | field, ... FROM table [WHERE condition]
    prologue LIVE SELECT ... WHERE { ... }                              a query of SPARQL: there are braces

A name is a local name, a prefixed name or `<IRI>`; the prologue is PREFIXes, some are known without. Keywords
are read in any case of letters.
"""

import re
from dataclasses import dataclass

from graphdb.errors import QuerySyntaxError
from graphdb.live.records import RDF_TYPE
from graphdb.live.table_queries import (
    AnyCondition,
    Compare,
    Contains,
    Every,
    Field,
    IsNull,
    OneOf,
    Scalar,
    Some,
    Table,
    TableQuery,
    Without,
)
from graphdb.planning.gate import BYTE_ORDER_MARK
from graphdb.rdf.prefixes import WELL_KNOWN

__all__ = ["SparqlText", "read_statement"]

TEXT_CHARACTERS_MAX = 100_000
_NESTING_MAX = 50
_TERMS_MAX = 1_000  # comparisons in one statement, and values in its lists

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<prefixed>[^\W\d][\w.-]*(?<!\.):[\w][\w.-]*(?<!\.)|:[\w][\w.-]*(?<!\.))
    |(?P<prefix>(?:[^\W\d][\w.-]*)?:(?=\s*<))
    |(?P<quoted>`[^`]+`)
    |(?P<word>[^\W\d][\w-]*)
    |(?P<sign><=|>=|!=|<>|==|[=<>(),*\[\];])""",
    re.VERBOSE | re.DOTALL,
)
# LIVE in front of a SPARQL query: what comes before it is a prologue, or a comment
_LIVE = re.compile(
    r"(?:\s|\#[^\r\n]*|PREFIX\s+[^\s:<>]*:\s*<[^<>\s]*>|BASE\s*<[^<>\s]*>|)*+(?P<live>LIVE)(?=\s)",
    re.IGNORECASE,
)
_SHADOWED = re.compile(
    r"""<[^<>"{}|^`\\\x00-\x20]*>|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class SparqlText:
    """A query of SPARQL that was asked for live; the text is the statement without LIVE."""

    text: str


def read_statement(text: str) -> TableQuery | SparqlText:
    """What a statement asks for. Raises QuerySyntaxError."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if len(text) > TEXT_CHARACTERS_MAX:
        raise QuerySyntaxError(f"the statement is longer than {TEXT_CHARACTERS_MAX} characters", 1, 1)
    if "{" in _SHADOWED.sub("", text):
        live = _LIVE.match(text)
        if live is None:
            raise QuerySyntaxError("a statement begins with LIVE SELECT", 1, 1)
        # blanks in its place, so that errors name lines and columns as they were sent
        return SparqlText(text[: live.start("live")] + "    " + text[live.end("live") :])
    return _Reader(text).read()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Reader:
    """Recursive descent, for one statement."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut())
        self._at = 0
        self._depth = self._terms = 0
        self._prefixes = dict(WELL_KNOWN)

    def _cut(self) -> list[_Token]:
        found: list[_Token] = []
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise self._error_at(place, f"{self._text[place]!r} is not understood")
            if match.lastgroup != "space":
                found.append(_Token(match.lastgroup or "", match[0], place))
            place = match.end()
        return found

    def _error_at(self, place: int, message: str) -> QuerySyntaxError:
        before = self._text[:place]
        return QuerySyntaxError(message, before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1)

    def _error(self, expected: str) -> QuerySyntaxError:
        token = self._next
        found = "the end" if token is None else repr(token.text[:60])
        place = len(self._text) if token is None else token.start
        return self._error_at(place, f"expected {expected}, found {found}")

    @property
    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _is_word(self, word: str) -> bool:
        token = self._next
        return token is not None and token.kind == "word" and token.text.upper() == word

    def _take_word(self, word: str) -> bool:
        if self._is_word(word):
            self._at += 1
            return True
        return False

    def _take_sign(self, *signs: str) -> str | None:
        token = self._next
        if token is not None and token.kind == "sign" and token.text in signs:
            self._at += 1
            return token.text
        return None

    def _need_word(self, word: str) -> None:
        if not self._take_word(word):
            raise self._error(word)

    def _need_sign(self, sign: str) -> None:
        if self._take_sign(sign) is None:
            raise self._error(repr(sign))

    def read(self) -> TableQuery:
        while self._take_word("PREFIX"):
            self._read_prefix()
        self._need_word("LIVE")
        self._need_word("SELECT")
        fields = None if self._take_sign("*") else self._fields()
        self._need_word("FROM")
        table = self._table()
        condition = self._either() if self._take_word("WHERE") else None
        self._take_sign(";")
        if self._next is not None:
            raise self._error("the end" if condition is not None else "WHERE or the end")
        return TableQuery(table, fields, condition)

    def _read_prefix(self) -> None:
        name = self._next
        if name is None or name.kind != "prefix":
            raise self._error("a prefix")
        self._at += 1
        iri = self._next
        if iri is None or iri.kind != "iri":
            raise self._error("an IRI")
        self._at += 1
        self._prefixes[name.text[:-1]] = self._iri(iri)

    def _fields(self) -> tuple[Field, ...]:
        fields = [self._field("a field or *")]
        while self._take_sign(","):
            fields.append(self._field("a field"))
        return tuple(dict.fromkeys(fields))

    def _named(self, expected: str) -> tuple[str, bool]:
        """A name, and whether it is an IRI."""
        token = self._next
        if token is None or token.kind not in ("word", "quoted", "prefixed", "iri"):
            raise self._error(expected)
        self._at += 1
        if token.kind == "word":
            return token.text, False
        if token.kind == "quoted":
            return token.text[1:-1], False
        return self._iri(token), True

    def _iri(self, token: _Token) -> str:
        if token.kind == "iri":
            if ":" not in token.text:
                raise self._error_at(token.start, f"{token.text} is not an absolute IRI")
            return token.text[1:-1]
        prefix, _, local = token.text.partition(":")
        if prefix not in self._prefixes:
            raise self._error_at(token.start, f"the prefix {prefix!r} is not declared")
        return self._prefixes[prefix] + local

    def _field(self, expected: str) -> Field:
        name, is_iri = self._named(expected)
        return Field("type") if name == RDF_TYPE else Field(name, is_iri)

    def _table(self) -> Table:
        return Table(*self._named("a class"))

    def _either(self) -> AnyCondition:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise self._error(f"brackets and NOT at most {_NESTING_MAX} deep")
        conditions = [self._both()]
        while self._take_word("OR"):
            conditions.append(self._both())
        self._depth -= 1
        return conditions[0] if len(conditions) == 1 else Some(tuple(conditions))

    def _both(self) -> AnyCondition:
        conditions = [self._one()]
        while self._take_word("AND"):
            conditions.append(self._one())
        return conditions[0] if len(conditions) == 1 else Every(tuple(conditions))

    def _one(self) -> AnyCondition:
        if self._take_word("NOT"):
            self._depth += 1
            if self._depth > _NESTING_MAX:
                raise self._error(f"brackets and NOT at most {_NESTING_MAX} deep")
            inner = self._one()
            self._depth -= 1
            return Without(inner)
        if self._take_sign("("):
            inner = self._either()
            self._need_sign(")")
            return inner
        return self._comparison(self._field("a field"))

    def _comparison(self, field: Field) -> AnyCondition:
        self._count()
        if operator := self._take_sign("=", "==", "!=", "<>", ">", ">=", "<", "<="):
            if self._is_word("NULL"):
                raise self._error("a value (IS NULL says that there is none)")
            return Compare(field, {"==": "=", "<>": "!="}.get(operator, operator), self._value())
        if self._take_word("IS"):
            negated = self._take_word("NOT")
            self._need_word("NULL")
            return Without(IsNull(field)) if negated else IsNull(field)
        negated = self._take_word("NOT")
        if self._take_word("IN"):
            found: AnyCondition = OneOf(field, self._list())
        elif self._take_word("CONTAINS"):
            found = Contains(field, self._value())
        else:
            raise self._error("IN or CONTAINS" if negated else "a comparison, IN, CONTAINS or IS NULL")
        return Without(found) if negated else found

    def _list(self) -> tuple[Scalar, ...]:
        opened = self._take_sign("[", "(")
        if opened is None:
            raise self._error("'[' or '('")
        closing = "]" if opened == "[" else ")"
        if self._take_sign(closing):
            return ()
        values = [self._value()]
        while self._take_sign(","):
            self._count()
            values.append(self._value())
        self._need_sign(closing)
        return tuple(values)

    def _count(self) -> None:
        self._terms += 1
        if self._terms > _TERMS_MAX:
            raise self._error(f"at most {_TERMS_MAX} comparisons and values")

    def _value(self) -> Scalar:
        token = self._next
        if token is not None:
            self._at += 1
            if token.kind == "text":
                return re.sub(
                    r"\\(.)",
                    lambda found: _ESCAPES.get(found[1], found[1]),
                    token.text[1:-1],
                    flags=re.DOTALL,
                )
            if token.kind == "number":
                return self._number(token)
            if token.kind in ("iri", "prefixed"):
                return self._iri(token)
            if token.kind == "word" and token.text.upper() in ("TRUE", "FALSE"):
                return token.text.upper() == "TRUE"
            self._at -= 1
        raise self._error("a value: text in quotes, a number, true, false or an IRI")

    def _number(self, token: _Token) -> int | float:
        if re.fullmatch(r"[+-]?\d{1,30}", token.text):
            return int(token.text)
        number = float(token.text)
        if number in (float("inf"), float("-inf")):
            raise self._error_at(token.start, f"{token.text[:60]} is too large")
        return number
