"""`Questions`: one SPARQL query for many candidates, in place of one for each.

Where the placeholder may become a variable (`varying`), the candidates' values stand in front of the pattern:

    SELECT ... ?n WHERE { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ... ?iri ... }

Else the query is copied for each of them, as often as the gate admits in one query:

    SELECT * WHERE { { { SELECT ... <a> ... } BIND(0 AS ?n) } UNION { { SELECT ... <b> ... } BIND(1 AS ?n) } }
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.search.extension.template import Slot, Template, value_as_iri, value_as_string
from graphdb.search.extension.varying import enumerates, varies
from graphdb.sparql.complexity import Complexity, measure
from graphdb.sparql.gate import read_query
from graphdb.sparql.terms import Span

__all__ = ["Question", "Questions"]

VALUES_MAX = 2_000  # candidates of one query, so that no query keeps a reader long
_TEXT_BYTES = (
    64_000  # of the copies in one query: reading SPARQL takes far longer than evaluating little of it
)

Numbered = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Question:
    """A query about some candidates. In each row of its answer the column `number` says of which."""

    text: str
    number: str
    added: frozenset[str]  # the columns that are ours

    def rows(self, answer: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(candidate, binding as in SPARQL's results JSON) of an answer, in its order."""
        for binding in answer["results"]["bindings"]:
            shown = {name: value for name, value in binding.items() if name not in self.added}
            yield int(binding[self.number]["value"]), shown


class Questions:
    """Makes the questions of one template."""

    def __init__(self, template: Template, limits: GateLimits) -> None:
        self._template, self._limits = template, limits
        self.varies = varies(template)
        self.enumerates = self.varies and enumerates(template)
        fresh = (f"placeholder{number}" for number in count())
        names = (name for name in fresh if name not in template.text)
        self._number, self._iri, self._string = next(names), next(names), next(names)

    def about(self, values: Sequence[str], rows_max: int) -> Iterator[Question]:
        """Questions about all of the values that the template takes; a candidate's number is its place.

        rows_max: an answer has at most one row more.
        """
        taken = [(number, value) for number, value in enumerate(values) if self._template.takes(value)]
        limit = f"\nLIMIT {rows_max + 1}"
        make, chunks = (
            (self._with_values, self._chunks_of_values(taken))
            if self.varies
            else (self._with_copies, _chunks(taken, self._copies_max(taken) if taken else 1))
        )
        added = frozenset((self._number, self._iri, self._string))
        for chunk in chunks:
            yield Question(make(chunk) + limit, self._number, added)

    def all_values(self, rows_max: int) -> str:
        """A SELECT of one column: every value that the query holds for. Only where it `enumerates`."""
        body = self._body(self._variable)
        name = self._variable(self._template.slots[0])
        return f"{self._head(f'SELECT DISTINCT {name}')}{{ {body}\n}}\nLIMIT {rows_max + 1}"

    def _head(self, select: str) -> str:
        return f"{self._template.head}{select}\n{self._template.dataset}WHERE "

    def _variable(self, slot: Slot) -> str:
        return f"?{self._iri if slot.is_iri else self._string}"

    def _body(self, fill: Any) -> str:
        """What stands between the braces of WHERE."""
        where = self._template.query.where
        assert where is not None
        return self._template.written(fill, Span(where.span.start + 1, where.span.end - 1))

    # candidates in VALUES

    def _with_values(self, chunk: Sequence[Numbered]) -> str:
        select = self._template.query.select
        if select is None:
            columns = f"SELECT DISTINCT ?{self._number}"
        else:
            columns = self._template.written(self._variable, select.span)
            columns += "" if select.projections is None else f" ?{self._number}"
        rows = "\n".join(self._row(number, value) for number, value in chunk)
        values = f"VALUES (?{self._number} ?{self._iri} ?{self._string}) {{\n{rows} }}"
        return f"{self._head(columns)}{{ {values}\n{self._body(self._variable)}\n}}"

    def _row(self, number: int, value: str) -> str:
        """A column that the template does not use is undefined."""
        kinds = {slot.is_iri for slot in self._template.slots}
        iri = value_as_iri(value) if True in kinds else "UNDEF"
        string = value_as_string(value) if False in kinds else "UNDEF"
        return f"({number} {iri} {string})"

    def _chunks_of_values(self, taken: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
        """As many rows at a time as the text may be long."""
        room = self._limits.max_query_bytes - 2 * len(self._template.text.encode()) - 500
        chunk: list[Numbered] = []
        size = 0
        for number, value in taken:
            own = len(self._row(number, value).encode()) + 1
            if chunk and (size + own > room or len(chunk) >= VALUES_MAX):
                yield chunk
                chunk, size = [], 0
            chunk.append((number, value))
            size += own
        if chunk:
            yield chunk

    # copies for each candidate

    def _with_copies(self, chunk: Sequence[Numbered]) -> str:
        branches = "\nUNION\n".join(self._copy(number, value) for number, value in chunk)
        return f"{self._head('SELECT *')}{{\n{branches}\n}}"

    def _copy(self, number: int, value: str) -> str:
        template, query = self._template, self._template.query
        assert query.where is not None
        where = template.filled(value, query.where.span, number)
        rest = template.filled(value, Span(query.where.span.end, len(template.text)), number)
        if query.select is None:
            found = f"SELECT ({number} AS ?{self._number}) WHERE {where}{rest}"
            if query.modifiers.limit is None and query.values is None:
                return f"{{ {found}\nLIMIT 1\n}}"
            return f"{{ SELECT DISTINCT ?{self._number} WHERE {{ {{ {found}\n}} }} }}"  # one row will do
        columns = template.filled(value, query.select.span, number)
        return f"{{ {{ {columns} WHERE {where}{rest}\n}} BIND({number} AS ?{self._number}) }}"

    def _copies_max(self, taken: Sequence[Numbered]) -> int:
        """How many copies one query may have: each figure of the gate grows by the same with each of them."""
        value = taken[0][1]
        try:
            two, three = (self._figures([(number, value) for number in range(size)]) for size in (2, 3))
        except LimitExceeded:  # two of them are a text that is too long already
            return 1
        longest = max(len(self._copy(number, value).encode()) for number, value in taken)
        tokens = self._template.size + 40
        bounds = [
            min(_TEXT_BYTES, self._limits.max_query_bytes) // (longest + 10),
            self._limits.max_query_tokens // tokens - 1,
            *self._by_figures(two, three),
        ]
        return max(1, min(bounds))

    def _figures(self, copies: Sequence[Numbered]) -> Complexity:
        return measure(read_query(self._with_copies(copies), None, self._limits))

    def _by_figures(self, two: Complexity, three: Complexity) -> Iterable[int]:
        for name in Complexity.__slots__:
            figure, step = getattr(two, name), getattr(three, name) - getattr(two, name)
            if step > 0:
                yield 2 + (getattr(self._limits, f"max_{name}") - figure) // step


def _chunks(taken: Sequence[Numbered], size: int) -> Iterator[Sequence[Numbered]]:
    for start in range(0, len(taken), size):
        yield taken[start : start + size]
