"""Variables of a query or an update that have a value before it is evaluated, as the text of another one."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import InvalidParameter
from graphdb.sparql.patterns import GroupGraphPattern, SubSelect
from graphdb.sparql.syntax import Modify, Query, Update

__all__ = ["with_values"]

_Term: TypeAlias = NamedNode | BlankNode | Literal | Triple


def with_values(request: Query | Update, values: Mapping[str, _Term]) -> str:
    """The text with VALUES at the start of each outermost WHERE, so that filters of it see them too.

    A group that is nothing but a sub-select is joined with them. values: by names without question marks,
    which the caller has checked to be names. Raises InvalidParameter for a blank node, which SPARQL cannot
    name, and for a request without WHERE.
    """
    groups = list(_groups(request))
    if not values:
        return request.text
    if not groups:
        raise InvalidParameter(
            f"${next(iter(values))}", "the request has no WHERE in which it could be bound"
        )
    names = " ".join(f"?{name}" for name in values)
    block = f"VALUES ({names}) {{ ({' '.join(_written(name, term) for name, term in values.items())}) }} "
    pieces, text = list[str](), request.text
    end = len(text)
    for group in reversed(groups):
        start, stop = group.span.start + 1, group.span.end - 1
        inner = text[start:stop]
        if any(isinstance(element, SubSelect) for element in group.elements):
            inner = f"{{ {inner} }}"
        pieces += [text[stop:end], f" {block}{inner}"]
        end = start
    pieces.append(text[:end])
    return "".join(reversed(pieces))


def _groups(request: Query | Update) -> Iterator[GroupGraphPattern]:
    if isinstance(request, Query):
        if request.where is not None:
            yield request.where
    else:
        yield from (one.pattern for one in request.operations if isinstance(one, Modify))


def _written(name: str, term: _Term) -> str:
    if isinstance(term, BlankNode):
        raise InvalidParameter(f"${name}", "is a blank node, which no query can name")
    return str(term)
