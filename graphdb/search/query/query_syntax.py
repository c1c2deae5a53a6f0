"""The syntax of `query_string`: Lucene's classic one, as a tree of clauses without fields' meaning.

    word  "a phrase"~2  field:word  field:(a b)  _exists_:field  +must -not !not  AND OR NOT && ||  ( )
    wild*ca?d  word~1  /regexp/  [a TO b]  {a TO b}  >=5  *:*  and ^boost after any of them

Source: Lucene's QueryParser; AND and OR have no precedence there: they mark the clauses beside them.
"""

import re
from dataclasses import dataclass, replace

from graphdb.search.errors import SearchError

__all__ = ["Group", "Leafs", "Span", "Text", "parse_query_string", "unescaped"]

DEPTH_MAX = 30
NODES_MAX = 4096
JOINTS = "AND", "OR", "&&", "||"


@dataclass(frozen=True, slots=True)
class Text:
    """kind: word, words (several, which are analyzed together), phrase, pattern (with wildcards), regexp or
    all. suffix is what stands after `~`.
    """

    kind: str
    text: str
    field: str | None
    suffix: str | None = None
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """A range; None is an open end."""

    field: str | None
    low: str | None
    high: str | None
    with_low: bool
    with_high: bool
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses, each with `+` (must), `-` (must not) or nothing (should)."""

    clauses: "tuple[tuple[str, Leafs], ...]"
    boost: float = 1.0


Leafs = Text | Span | Group

TOKEN = re.compile(
    r"""\s*(?:
      (?P<operator>AND\b|OR\b|NOT\b|&&|\|\||[+\-!()])
    | "(?P<phrase>(?:[^"\\]|\\.)*)"
    | /(?P<regexp>(?:[^/\\]|\\.)*)/
    | (?P<open>[\[{])
    | (?P<compare>[<>]=?)(?P<bound>"(?:[^"\\]|\\.)*"|(?:[^\s()"\[\]{}^~:\\]|\\.)+)
    | (?P<word>(?:[^\s+\-!():^\[\]"{}~/\\&|]|\\.|[&|](?![&|]))(?:[^\s!():^\[\]"{}~/\\]|\\.)*)
    )""",
    re.VERBOSE | re.DOTALL,
)
FIELD = re.compile(r"((?:[^\s+\-!():^\[\]\"{}~/\\]|\\.)(?:[^\s!():^\[\]\"{}~/\\]|\\.)*):(?=\s*\S)", re.DOTALL)
INSIDE = re.compile(
    r"\s*(?P<low>\"(?:[^\"\\]|\\.)*\"|[^\s\]}]+)\s+TO\s+(?P<high>\"(?:[^\"\\]|\\.)*\"|[^\s\]}]+)\s*(?P<close>[\]}])"
)
SUFFIX = re.compile(r"(?:~(?P<tilde>[0-9.]*))?(?:\^(?P<boost>[0-9.]+))?(?:~(?P<late>[0-9.]*))?")


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def unescaped(text: str) -> str:
    """Without the backslashes that take the next character literally."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def parse_query_string(text: str, default_and: bool) -> Group:
    """Parse a whole text; fails with parse_exception where it is none."""
    parser = _Parser(text, default_and)
    group = parser.group(None, 0)
    if parser.place < len(text.rstrip()):
        raise parser.failed()
    return group


class _Parser:
    def __init__(self, text: str, default_and: bool) -> None:
        self._text, self.place = text, 0
        self._default_and = default_and
        self._nodes = 0

    def failed(self) -> SearchError:
        return SearchError(
            "parse_exception", f"Cannot parse '{self._text}': Encountered error at {self.place}"
        )

    def _operator(self, *wanted: str) -> str | None:
        """Take the operator that comes next, where it is one of those wanted."""
        found = TOKEN.match(self._text, self.place)
        if found is None or found["operator"] not in wanted:
            return None
        self.place = found.end()
        return found["operator"]

    def _comes(self, *wanted: str) -> bool:
        """Whether one of these operators comes next."""
        found = TOKEN.match(self._text, self.place)
        return found is not None and found["operator"] in wanted

    def _plain_word(self, node: Leafs, start: int) -> str | None:
        """The word that a clause is, if it is no more: without a field of its own and anything after it."""
        if not isinstance(node, Text) or node.kind != "word" or node.suffix is not None or node.boost != 1.0:
            return None
        while self._text[start].isspace():
            start += 1
        return None if FIELD.match(self._text, start) else node.text

    def _ends(self) -> bool:
        rest = self._text[self.place :].lstrip()
        return not rest or rest.startswith(")")

    def group(self, field: str | None, depth: int) -> Group:
        """Clauses up to a closing parenthesis, by Lucene's rules for what stands between them."""
        if depth > DEPTH_MAX:
            raise self.failed()
        clauses: list[tuple[str, Leafs]] = []
        joins = False  # whether the last clause may take in the next word
        while not self._ends():
            joint = self._operator(*JOINTS) if clauses else None
            sign = self._operator("+", "-", "!", "NOT") or ""
            start = self.place
            node = self._clause(field, depth)
            word = None if joint or sign else self._plain_word(node, start)
            if joins and word is not None and not self._comes(*JOINTS):
                before = clauses[-1][1]
                assert isinstance(before, Text)
                clauses[-1] = clauses[-1][0], replace(before, kind="words", text=f"{before.text} {word}")
                continue
            joins = word is not None
            both, either = joint in ("AND", "&&"), joint in ("OR", "||")
            if clauses and clauses[-1][0] != "-" and both:
                clauses[-1] = ("+", clauses[-1][1])
            if clauses and clauses[-1][0] == "+" and either and self._default_and:
                clauses[-1] = ("", clauses[-1][1])
            prohibited = sign in ("-", "!", "NOT")
            required = sign == "+" or both or (self._default_and and not either)
            clauses.append(("-" if prohibited else "+" if required else "", node))
        return Group(tuple(clauses))

    def _clause(self, field: str | None, depth: int) -> Leafs:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise SearchError("too_many_nested_clauses", f"maxClauseCount is set to {NODES_MAX}")
        while self._text[self.place : self.place + 1].isspace():
            self.place += 1
        named = FIELD.match(self._text, self.place)
        if named is not None:
            field, self.place = unescaped(named[1]), named.end()
        found = TOKEN.match(self._text, self.place)
        if field == "*" and self._text.startswith("*", self.place) and named is not None:
            self.place += 1
            return Text("all", "*", None)
        if found is None:
            raise self.failed()
        self.place = found.end()
        if found["operator"] == "(":
            node: Leafs = self.group(field, depth + 1)
            if self._operator(")") is None:
                raise self.failed()
        elif found["operator"] is not None:
            raise self.failed()
        else:
            node = self._atom(found, field)
        return self._with_suffix(node)

    def _atom(self, found: re.Match[str], field: str | None) -> Leafs:
        if found["open"] is not None:
            return self._span(found["open"], field)
        if found["compare"] is not None:
            bound, sign = unescaped(found["bound"].strip('"')), found["compare"]
            low, high = (bound, None) if sign[0] == ">" else (None, bound)
            return Span(field, low, high, sign != ">", sign != "<")
        if found["phrase"] is not None:
            return Text("phrase", unescaped(found["phrase"]), field)
        if found["regexp"] is not None:
            return Text("regexp", found["regexp"].replace("\\/", "/"), field)
        word = found["word"]
        bare = re.sub(r"\\.", "", word, flags=re.DOTALL)
        if "*" in bare or "?" in bare:
            return Text("pattern", word, field)
        return Text("word", unescaped(word), field)

    def _span(self, opening: str, field: str | None) -> Span:
        found = INSIDE.match(self._text, self.place)
        if found is None:
            raise self.failed()
        self.place = found.end()
        low, high = (unescaped(found[side].strip('"')) for side in ("low", "high"))
        return Span(
            field,
            None if low == "*" else low,
            None if high == "*" else high,
            opening == "[",
            found["close"] == "]",
        )

    def _with_suffix(self, node: Leafs) -> Leafs:
        found = SUFFIX.match(self._text, self.place)
        assert found is not None
        self.place = found.end()
        tilde = found["tilde"] if found["tilde"] is not None else found["late"]
        if isinstance(node, Text) and tilde is not None:
            node = replace(node, suffix=tilde)
        try:
            return replace(node, boost=float(found["boost"])) if found["boost"] else node
        except ValueError:
            raise self.failed() from None
