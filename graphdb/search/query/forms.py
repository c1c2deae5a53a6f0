"""The form of a query: what it is without the texts and numbers that it looks for.

A program asks the same few queries again and again, each time for other words, terms or bounds. All else
that parsing finds out, the form says: which clauses there are, on which fields, with which options. So a
clause that takes part (`FORMS` of its module) is read in two steps. The first reads a body with a `Slot` in
the place of each text and number, and says which of these it leaves open; the second makes the query of their
values. The parser of the clause takes the same two steps at once, so that there is one way to read it.

A text or number that is not left open belongs to the form: `Clause` reads it out of its slot.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdb.search.query.clause import ClauseParser, QueryContext
from graphdb.search.query.slots import Slot
from graphdb.search.query.tree import Query

__all__ = ["ClauseForm", "Form", "Make", "NoForm", "Values", "fixed"]

Values = Sequence[Any]
"""Those of the slots that are left open, in the order in which they were."""

Make = Callable[[Values, QueryContext], Query]
"""Makes the query, as parsing the whole does. Raises SearchError."""


class NoForm(Exception):
    """A clause takes no part, or something stands where a text or number should."""


class Form:
    """One while its query is read. places: of the slots that are left open, in the order of the values."""

    def __init__(self, clauses: "Mapping[str, ClauseForm]") -> None:
        self._clauses = clauses
        self.places: list[int] = []

    def open(self, given: Any) -> int:
        """Leave a slot open; its number among the values. Raises NoForm where no text or number stands."""
        if not isinstance(given, Slot):
            raise NoForm
        self.places.append(given.place)
        return len(self.places) - 1

    def clause(self, body: Any, context: QueryContext) -> Make:
        """The first step of any clause. Raises NoForm, SearchError."""
        if not isinstance(body, dict) or len(body) != 1:
            raise NoForm
        ((kind, inner),) = body.items()
        read = self._clauses.get(kind)
        if read is None or not isinstance(inner, dict):
            raise NoForm
        return read(inner, context.deeper(), self)


ClauseForm = Callable[[Mapping[str, Any], QueryContext, Form], Make]
"""The first step of one kind of clause. Raises NoForm, SearchError."""


def fixed(parse: ClauseParser) -> ClauseForm:
    """That of a clause which leaves nothing open, and has none within."""

    def read(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
        query = parse(body, context, _none_within)
        return lambda values, context: query

    return read


def _none_within(body: object, context: QueryContext) -> Query:
    raise NoForm
