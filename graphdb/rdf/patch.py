"""RDF Patch, version 1, in its text form: changes of a dataset as rows, read and written.

Source: https://afs.github.io/rdf-delta/rdf-patch.html. A blank node of a patch is the stored one with this
label. A patch has no rows for empty graphs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from pyoxigraph import DefaultGraph, Quad

from graphdb.errors import LimitExceeded, RdfSyntaxError
from graphdb.model import ChangeSet, NamedGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads

__all__ = ["PATCH_TYPE", "ROWS_MAX", "QuadPatch", "decode_patch", "header_row", "patch_rows", "read_patch"]

PATCH_TYPE = "application/rdf-patch"
ROWS_MAX = 500_000  # about 0.4 GB of memory while the patch is applied
_ROWS_PARSED = 1_000  # at once

_OTHER_ROW = re.compile(
    rb"""(?: H \s+ [^\s<"]+ \s+ \S.* | T[XCAB] | PA \s+ \S+ \s+ \S.* | PD \s+ \S.* | Segment )
         \s* (?:\. \s*)? (?:\#.*)?""",
    re.VERBOSE,
)
# What N-Quads do not have but Jena writes: <_:label>, numbers and booleans. Strings and IRIs stay.
_TERM = re.compile(
    rb"""
    "(?:[^"\\]|\\.)*"? | <_:(?P<label>[^<>\s]*)> | <[^<>\s]*>
    | (?<=\s)(?: (?P<double>[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+) | (?P<decimal>[+-]?\d*\.\d+)
        | (?P<integer>[+-]?\d+) | (?P<boolean>true|false) )(?=\s)
    """,
    re.VERBOSE,
)
_LABEL = re.compile(rb"[0-9A-Za-z_](?:[0-9A-Za-z_.-]*[0-9A-Za-z_-])?")
_NOT_IN_LABELS = re.compile(rb"[^0-9A-Za-z_-]")


@dataclass(frozen=True, slots=True)
class QuadPatch:
    """Quads to remove and quads to add, none of them in both.

    Removing a quad that does not exist and adding one that does are allowed. replaces_all: everything else is
    removed, and graphs without a quad are dropped.
    """

    removed: tuple[Quad, ...] = ()
    added: tuple[Quad, ...] = ()
    replaces_all: bool = False

    @property
    def targets(self) -> tuple[NamedGraph | None, ...]:
        """The graphs of its quads; None for the default graph."""
        names = dict.fromkeys(quad.graph_name for quad in chain(self.removed, self.added))
        return tuple(None if isinstance(name, DefaultGraph) else name for name in names)

    def encode(self) -> bytes:
        """As RDF Patch, for another node; `decode_patch` reads it."""
        return b"".join(patch_rows(ChangeSet(self.removed, self.added)))


def read_patch(document: bytes, rows_max: int = ROWS_MAX) -> QuadPatch:
    """The net effect of a patch: of each quad the last row counts, and rows of aborted transactions do not.

    Each row is a line. Rows outside of transactions count too. Headers and prefixes mean nothing here.
    Raises RdfSyntaxError, LimitExceeded.
    """
    reader = _Reader(rows_max)
    for number, line in enumerate(document.split(b"\n"), 1):
        reader.read(number, line.strip())
    return reader.finish()


def decode_patch(document: bytes, replaces_all: bool) -> QuadPatch:
    """What `QuadPatch.encode` has written, of any length."""
    patch = read_patch(document, len(document))
    return QuadPatch(patch.removed, patch.added, replaces_all)


def patch_rows(change: ChangeSet) -> Iterator[bytes]:
    """The rows of a change, removals first."""
    for code, quads in ((b"D", change.removed), (b"A", change.added)):
        for quad in quads:
            yield b"%s %s .\n" % (code, str(quad).encode())


def header_row(field: str, value: str) -> bytes:
    """One row of a header. value is a term in N-Triples."""
    return f"H {field} {value} .\n".encode()


class _Reader:
    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._rows = 0
        self._is_added: dict[Quad, bool] = {}  # of the rows that count
        self._transaction: dict[Quad, bool] | None = None
        self._codes: list[bool] = []  # of the rows that wait to be parsed: whether they add
        self._lines: list[bytes] = []
        self._numbers: list[int] = []

    def read(self, number: int, line: bytes) -> None:
        if line[:2] in (b"A ", b"A\t", b"D ", b"D\t"):
            self._rows += 1
            if self._rows > self._rows_max:
                raise LimitExceeded("rows of a patch", self._rows, self._rows_max)
            row = line[2:].lstrip()
            if not row.startswith((b"<", b"_:")):
                raise RdfSyntaxError("expected a subject: an IRI in < >, or a blank node", number, 3)
            self._codes.append(line.startswith(b"A"))
            self._lines.append(_TERM.sub(_as_in_n_quads, row))
            self._numbers.append(number)
            if len(self._lines) >= _ROWS_PARSED:
                self._parse()
        elif line and not line.startswith(b"#"):
            self._parse()
            self._read_other(number, line)

    def finish(self) -> QuadPatch:
        self._parse()
        if self._transaction is not None:
            raise RdfSyntaxError("the patch ends within a transaction: TC is missing")
        found = self._is_added
        return QuadPatch(
            tuple(quad for quad, is_added in found.items() if not is_added),
            tuple(quad for quad, is_added in found.items() if is_added),
        )

    def _read_other(self, number: int, line: bytes) -> None:
        if not _OTHER_ROW.fullmatch(line):
            raise RdfSyntaxError("expected a row of a patch: H, TX, TC, TA, PA, PD, A or D", number, 1)
        code = line[:2]
        if code in (b"TX", b"TB"):
            if self._transaction is not None:
                raise RdfSyntaxError("a transaction within a transaction", number, 1)
            self._transaction = {}
        elif code in (b"TC", b"TA"):
            if self._transaction is None:
                raise RdfSyntaxError(f"{code.decode()} without TX", number, 1)
            if code == b"TC":
                self._is_added |= self._transaction
            self._transaction = None

    def _parse(self) -> None:
        """The rows that wait, as N-Quads; its parser takes one statement a line."""
        if not self._lines:
            return
        found = self._is_added if self._transaction is None else self._transaction
        quads = read_quads(b"\n".join((*self._lines, b"")), RdfSyntax.N_QUADS, fresh_blank_nodes=False)
        try:
            found.update(zip(quads, self._codes, strict=True))
        except RdfSyntaxError as error:
            line = self._numbers[min(error.line or 1, len(self._numbers)) - 1]
            column = None if error.column is None else error.column + 2
            raise RdfSyntaxError(error.reason, line, column) from None
        self._codes, self._lines, self._numbers = [], [], []


def _as_in_n_quads(found: re.Match[bytes]) -> bytes:
    kind = found.lastgroup
    if kind is None:
        return found[0]
    if kind != "label":
        return b'"%s"^^<http://www.w3.org/2001/XMLSchema#%s>' % (found[0], kind.encode())
    label = found[kind]
    if not _LABEL.fullmatch(label):  # any text; each other character becomes its code, as unique as it was
        label = b"x" + _NOT_IN_LABELS.sub(_coded, label)
    return b"_:" + label


def _coded(character: re.Match[bytes]) -> bytes:
    return b"-%02x-" % character[0][0]
