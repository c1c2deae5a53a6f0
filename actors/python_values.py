"""RDF terms as Python values, for people who work in Python rather than in RDF."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryResultsFormat,
    QuerySolutions,
    Triple,
    parse_query_results,
)

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

__all__ = ["Rows", "python_value", "rows_from_json"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = (
    *(
        "integer",
        "int",
        "long",
        "short",
        "byte",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    ),
    *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
)
_READERS: dict[str, Callable[[str], object]] = {
    **{_XSD + name: int for name in _INTEGERS},
    _XSD + "decimal": Decimal,
    _XSD + "double": float,
    _XSD + "float": float,
    _XSD + "boolean": lambda text: text in ("true", "1"),
    _XSD + "dateTime": datetime.datetime.fromisoformat,
    _XSD + "date": datetime.date.fromisoformat,
    _XSD + "time": datetime.time.fromisoformat,
}


class Rows(list[dict[str, object]]):
    """The solutions of a query, one dict a row: variable to value; what is unbound is None."""

    def __init__(self, variables: list[str], rows: list[dict[str, object]]) -> None:
        super().__init__(rows)
        self.variables = variables

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame with a column a variable, also where there are no rows."""
        import pandas

        return pandas.DataFrame(self, columns=self.variables)


def rows_from_json(document: bytes) -> Rows:
    """The rows of a SPARQL results JSON document."""
    solutions = parse_query_results(document, format=QueryResultsFormat.JSON)
    assert isinstance(solutions, QuerySolutions)
    names = [variable.value for variable in solutions.variables]
    return Rows(names, [{name: python_value(row[name]) for name in names} for row in solutions])


def python_value(term: NamedNode | BlankNode | Literal | Triple | None) -> object:
    """The nearest Python value: an IRI is its text, a blank node `_:label`, a triple term three values.

    A literal of a datatype that Python has no type for, or with a value outside Python's range, is its text.
    """
    match term:
        case None:
            return None
        case NamedNode():
            return term.value
        case BlankNode():
            return str(term)
        case Triple():
            return tuple(python_value(part) for part in (term.subject, term.predicate, term.object))
    reader = _READERS.get(term.datatype.value)
    if reader is None:
        return term.value
    try:
        return reader(term.value)
    except (ValueError, ArithmeticError):
        return term.value
