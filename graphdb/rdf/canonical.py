"""Canonical N-Quads and N-Triples: blank nodes labelled by RDFC-1.0, lines sorted by code point.

Datasets that differ only in blank node labels and in order come out as the same bytes. Steps are numbered as
in https://www.w3.org/TR/rdf-canon/, and the escapes are those of canonical N-Triples in RDF 1.2;
`escaped_controls` is the one thing that our interface adds. RDFC-1.0 knows no triple terms: here a blank node
in one is mentioned by the quad around it, and its position is that of the triple term and that within it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import TypeAlias, cast

from pyoxigraph import BlankNode, Quad, RdfFormat, Triple, serialize

from graphdb.errors import LimitExceeded

__all__ = [
    "canonical_labels",
    "canonical_lines",
    "canonical_nquads",
    "canonical_ntriples",
    "escaped_controls",
]

_Item: TypeAlias = Quad | Triple  # a triple is in the default graph

WORK_MAX = 200_000  # steps of Hash N-Degree Quads; about a second
_LINES_PER_CHUNK = 1_000


def canonical_ntriples(triples: Iterable[Triple]) -> Iterator[bytes]:
    """Canonical N-Triples of a graph, in chunks, computed before the first. Raises LimitExceeded."""
    return _chunks(triples)


def canonical_nquads(quads: Iterable[Quad]) -> Iterator[bytes]:
    """Canonical N-Quads of a dataset, likewise."""
    return _chunks(quads)


def _chunks(statements: Iterable[_Item]) -> Iterator[bytes]:
    lines = canonical_lines(statements)
    for start in range(0, len(lines), _LINES_PER_CHUNK):
        yield escaped_controls("".join(lines[start : start + _LINES_PER_CHUNK])).encode()


def canonical_lines(quads: Iterable[_Item], hash_name: str = "sha256") -> list[str]:
    """The lines as RDFC-1.0 has them, with line feeds, sorted, none twice. Raises LimitExceeded."""
    plain, statements = _read(quads)
    labels = _Canonicalization(statements, hash_name).labels()
    return sorted(plain | {statement.line(labels) for statement in statements})


def canonical_labels(quads: Iterable[_Item], hash_name: str = "sha256") -> dict[str, str]:
    """The canonical label, c14n0 and so on, for each blank node's label. Raises LimitExceeded."""
    return _Canonicalization(_read(quads)[1], hash_name).labels()


def escaped_controls(text: str) -> str:
    r"""Write the C1 controls as \uXXXX, which our interface asks for and RDF 1.2 does not.

    It is done last, so that hashes and labels are those that every other implementation finds.
    """
    return _C1.sub(lambda match: f"\\u{ord(match[0]):04X}", text)


_C1 = re.compile("[\x80-\x9f]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>]*>|_:([^\s]+)')


@dataclass(frozen=True, slots=True)
class _Statement:
    """A quad with blank nodes: texts and labels in turn, a text first and last, as its line has them.

    mentions holds each blank node's label with its position, and the predicate unless it is the graph name:
    what Hash Related Blank Node begins with.
    """

    parts: tuple[str, ...]
    mentions: tuple[tuple[str, str], ...] = field(compare=False)

    def line(self, labels: dict[str, str]) -> str:
        """The line with these labels in place of its own."""
        return "".join(f"_:{labels[part]}" if place % 2 else part for place, part in enumerate(self.parts))


def _read(quads: Iterable[_Item]) -> tuple[set[str], set[_Statement]]:
    """The lines of the quads without blank nodes, and the others as statements."""
    listed = cast(list[Quad], list(quads))  # or all triples: the serialiser takes either
    document = serialize(listed, format=RdfFormat.N_QUADS)
    assert document is not None  # no output was given
    plain, statements = set(), set()
    for quad, line in zip(listed, document.decode().split("\n"), strict=False):
        if "_:" in line and (mentions := tuple(_mentions(quad))):
            statements.add(_Statement(tuple(_parts(f"{line}\n")), mentions))
        else:
            plain.add(f"{line}\n")
    return plain, statements


def _parts(line: str) -> Iterator[str]:
    start = 0
    for match in _TOKEN.finditer(line):
        if match[1] is not None:
            yield line[start : match.start()]
            yield match[1]
            start = match.end()
    yield line[start:]


def _mentions(item: _Item) -> Iterator[tuple[str, str]]:
    yield from _mentions_in_triple(item.triple if isinstance(item, Quad) else item, "")
    if isinstance(item, Quad) and isinstance(item.graph_name, BlankNode):
        yield item.graph_name.value, "g"


def _mentions_in_triple(triple: Triple, around: str) -> Iterator[tuple[str, str]]:
    if isinstance(triple.subject, BlankNode):
        yield triple.subject.value, f"{around}s{triple.predicate}"
    if isinstance(triple.object, BlankNode):
        yield triple.object.value, f"{around}o{triple.predicate}"
    elif isinstance(triple.object, Triple):
        yield from _mentions_in_triple(triple.object, f"{around}o{triple.predicate}")


class _Issuer:
    """An identifier issuer (section 4.5): labels in the order in which they were asked for."""

    def __init__(self, prefix: str, issued: dict[str, str] | None = None) -> None:
        self._prefix = prefix
        self.issued = dict(issued or {})

    def issue(self, label: str) -> str:
        return self.issued.setdefault(label, f"{self._prefix}{len(self.issued)}")

    def copy(self) -> "_Issuer":
        return _Issuer(self._prefix, self.issued)


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A result of Hash N-Degree Quads."""

    digest: str
    issuer: _Issuer


# A recursive step: it yields the calls that it makes, is sent their results and returns its own. So depth is
# on the heap: a chain of a few hundred like blank nodes would overflow Python's stack.
_Step: TypeAlias = Generator[tuple[str, _Issuer], _Hashed, _Hashed]


class _Canonicalization:
    """The canonicalization state (section 4.3), and the algorithms on it."""

    def __init__(self, statements: set[_Statement], hash_name: str) -> None:
        self._hash_name = hash_name
        self._issuer = _Issuer("c14n")
        self._work = 0
        self._statements_of: dict[str, list[_Statement]] = defaultdict(list)  # 4.4.3 step 2
        for statement in statements:
            for label in {label for label, _ in statement.mentions}:
                self._statements_of[label].append(statement)
        self._first_degree = {label: self._hash_first_degree(label) for label in self._statements_of}

    def labels(self) -> dict[str, str]:
        """Section 4.4.3, the canonicalization algorithm, from step 3 on."""
        by_hash: dict[str, list[str]] = defaultdict(list)
        for label, digest in self._first_degree.items():  # 3
            by_hash[digest].append(label)
        shared = [by_hash[digest] for digest in sorted(by_hash)]
        for labels in shared:  # 4
            if len(labels) == 1:
                self._issuer.issue(labels[0])
        for labels in shared:  # 5
            if len(labels) > 1:
                self._issue_shared(labels)
        return self._issuer.issued

    def _issue_shared(self, labels: list[str]) -> None:
        """Steps 5.1 to 5.3, for the blank nodes of one first-degree hash."""
        results = []
        for label in labels:  # 5.2
            if label not in self._issuer.issued:
                issuer = _Issuer("b")
                issuer.issue(label)
                results.append(self._run(self._hash_n_degree(label, issuer)))
        for result in sorted(results, key=lambda result: result.digest):  # 5.3
            for label in result.issuer.issued:
                self._issuer.issue(label)

    def _hash_first_degree(self, label: str) -> str:
        """Section 4.6.3."""
        lines = []
        for statement in self._statements_of[label]:
            names = {other: "a" if other == label else "z" for other, _ in statement.mentions}
            lines.append(statement.line(names))
        return self._digest("".join(sorted(lines)))

    def _hash_related(self, label: str, position: str, issuer: _Issuer) -> str:
        """Section 4.7.3; position comes with the predicate."""
        issued = self._issuer.issued.get(label) or issuer.issued.get(label)
        return self._digest(position + (f"_:{issued}" if issued else self._first_degree[label]))

    def _hash_n_degree(self, label: str, issuer: _Issuer) -> _Step:
        """Section 4.8.3."""
        related = self._related(label, issuer)  # 1 to 3
        data = ""  # 4
        for digest in sorted(related):  # 5
            chosen_path, chosen_issuer = "", issuer  # 5.2, 5.3
            for order in permutations(related[digest]):  # 5.4
                path, tried = yield from self._path(order, issuer, chosen_path)
                if path and (not chosen_path or path < chosen_path):  # 5.4.6
                    chosen_path, chosen_issuer = path, tried
            data += digest + chosen_path  # 5.1, 5.5
            issuer = chosen_issuer  # 5.6
        return _Hashed(self._digest(data), issuer)  # 6

    def _related(self, label: str, issuer: _Issuer) -> dict[str, list[str]]:
        """Steps 1 to 3: the other blank nodes of label's statements, by their related hash."""
        related: dict[str, list[str]] = defaultdict(list)
        for statement in self._statements_of[label]:
            for other, position in statement.mentions:
                if other != label:
                    self._count_work()
                    related[self._hash_related(other, position, issuer)].append(other)
        return related

    def _path(
        self, order: tuple[str, ...], issuer: _Issuer, chosen: str
    ) -> Generator[tuple[str, _Issuer], _Hashed, tuple[str, _Issuer]]:
        """Steps 5.4.1 to 5.4.5: the path of one permutation, "" where it cannot be the chosen one."""
        issuer, path, recursion = issuer.copy(), "", []  # 5.4.1 to 5.4.3
        for label in order:  # 5.4.4
            self._count_work()
            if label in self._issuer.issued:
                path += f"_:{self._issuer.issued[label]}"
                continue
            if label not in issuer.issued:
                recursion.append(label)
            path += f"_:{issuer.issue(label)}"
            if _is_hopeless(path, chosen):
                return "", issuer
        for label in recursion:  # 5.4.5
            result = yield label, issuer
            path += f"_:{issuer.issue(label)}<{result.digest}>"
            issuer = result.issuer
            if _is_hopeless(path, chosen):
                return "", issuer
        return path, issuer

    def _run(self, step: _Step) -> _Hashed:
        """Run a step and those that it calls, on a stack of our own."""
        calls, result = [step], None
        while True:
            try:
                label, issuer = calls[-1].send(result) if result is not None else next(calls[-1])
            except StopIteration as done:
                calls.pop()
                result = done.value
                assert isinstance(result, _Hashed)
                if not calls:
                    return result
            else:
                calls.append(self._hash_n_degree(label, issuer))
                result = None

    def _count_work(self) -> None:
        """Bound the work, which is exponential for graphs made to be so (section 7.1, dataset poisoning)."""
        self._work += 1
        if self._work > WORK_MAX:
            raise LimitExceeded("the work of canonicalization", self._work, WORK_MAX)

    def _digest(self, text: str) -> str:
        return hashlib.new(self._hash_name, text.encode()).hexdigest()


def _is_hopeless(path: str, chosen: str) -> bool:
    return bool(chosen) and len(path) >= len(chosen) and path > chosen
