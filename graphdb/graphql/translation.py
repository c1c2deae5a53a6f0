"""From what an operation wants to one SPARQL query.

Its rows are (?b, ?s, ?v): the number of a branch, a resource, and a value or a resource that it leads to.
Each list has branches of its own, joined by UNION, so lists side by side never multiply; below a page stands
a UNION of all that is wanted of its resources, in which each branch begins with a pattern on the resource:
the engine then evaluates the page once and each branch for each of its resources, never on its own.
"""

from collections.abc import Iterator

from graphdb.graphql.cursors import Cursor, OrderKey, beyond, key_expression, valid_expression
from graphdb.graphql.demand import TYPES, Demand, Level, Page, RootLevel
from graphdb.graphql.filters import Filters, step
from graphdb.graphql.model import Model, ObjectType, Path
from graphdb.graphql.scalars import iri_text, is_iri

__all__ = ["translate"]

_CLASSES_MAX = 8  # that are looked up one by one; of more, all types of everything are gone through
_MERGED_FROM = 60  # branches: from there on the values of a resource are one pattern, for the gate's sake


def translate(model: Model, demand: Demand, rows_max: int) -> str | None:
    """The query; None where nothing of the graph is wanted. One row more than rows_max may come of it."""
    branches = list(_Translation(model, demand).branches())
    if not branches:
        return None
    return f"SELECT ?b ?s ?v WHERE {{\n{_union(branches)}\n}} LIMIT {rows_max + 1}"


class _Translation:
    def __init__(self, model: Model, demand: Demand) -> None:
        self._model, self._demand = model, demand
        self._filters = Filters(model)
        self._merged = demand.branches >= _MERGED_FROM

    def branches(self) -> Iterator[str]:
        for level in self._demand.roots.values():
            for branch in self._root(level):
                yield f"GRAPH {iri_text(level.graph)} {{ {branch} }}" if level.graph else branch

    def _root(self, level: RootLevel) -> Iterator[str]:
        if level.iri is not None:
            if is_iri(level.iri):
                yield from self._one(level, iri_text(level.iri))
            return
        assert level.page is not None
        page = level.page
        if page.limit:
            yield f"{{ {self._page(level, page)} }}\n{_union(list(self._at_root(level, '?n0')))}"
        if level.counted is not None:
            counted = self._members(level)
            yield f"{{ SELECT (COUNT(DISTINCT ?n0) AS ?v) {{ {counted} }} }} BIND({level.counted} AS ?b)"
        if level.before is not None and page.after is not None:
            yield f"{{ {self._probe(level, page.after, False)} }} BIND({level.before} AS ?b)"
        if level.after is not None and page.before is not None:
            yield f"{{ {self._probe(level, page.before, True)} }} BIND({level.after} AS ?b)"

    def _one(self, level: RootLevel, subject: str) -> Iterator[str]:
        yield from self._at_root(level, subject, self._condition(level.type, level, subject))

    def _at_root(self, level: RootLevel, subject: str, condition: str = "") -> Iterator[str]:
        classes = _is_in("?v", self._class_names(level.type))
        yield f"{step(subject, TYPES, '?v')} {classes} {condition} {_tag(level.branch, subject)}"
        yield from self._wanted(level, subject, 0)

    # Pages

    def _page(self, level: RootLevel, page: Page) -> str:
        conditions = []
        if page.after is not None:
            conditions.append(_beyond(level.orders, page.after, True))
        if page.before is not None:
            conditions.append(_beyond(level.orders, page.before, False))
        return self._ordered(level, conditions, page.forward, page.limit + 1)

    def _probe(self, level: RootLevel, cursor: Cursor, forward: bool) -> str:
        """One resource at the cursor or beyond it, if there is any."""
        other_way = _beyond(level.orders, cursor, not forward)
        inner = self._ordered(level, [f"!({other_way})"], forward, 1)
        return f"SELECT (?n0 AS ?s) {{ {{ {inner} }} }}"

    def _ordered(self, level: RootLevel, conditions: list[str], forward: bool, limit: int) -> str:
        found, keyed = self._members(level), [one for one in level.orders if one.field is not None]
        filters = " ".join(f"FILTER({one})" for one in conditions)
        if not keyed:
            inner = f"SELECT DISTINCT ?n0 {{ {found} {filters} }}"
        else:
            keys = " ".join(_aggregate(number, one) for number, one in enumerate(keyed))
            values = " ".join(_optional(number, one) for number, one in enumerate(keyed))
            inner = f"SELECT ?n0 {keys} {{ {found} {values} }} GROUP BY ?n0"
            inner = f"SELECT ?n0 {{ {{ {inner} }} {filters} }}"
        order = " ".join(
            f"{'DESC' if one.descending is forward else 'ASC'}({key})"
            for one, key in zip(level.orders, _keys(level.orders), strict=True)
        )
        return f"{inner} ORDER BY {order} LIMIT {limit}"

    def _members(self, level: RootLevel) -> str:
        """The resources of a collection. Only those with an IRI: a blank node cannot be gone on from."""
        assert level.type is not None
        anchors = self._filters.anchors(level.type, level.filter, "?n0")
        classes = self._class_names(level.type)
        if len(classes) <= _CLASSES_MAX:
            typed = _union([f"?n0 a {one}" for one in classes])
        else:
            typed = f"?n0 a ?t0 {_is_in('?t0', classes)}"
        condition = self._condition(level.type, level, "?n0")
        return f"{' '.join(anchors)} {typed} FILTER(isIRI(?n0)) {condition}"

    def _class_names(self, kind: ObjectType | None) -> list[str]:
        """All classes of the model where the type is not known."""
        kinds = self._model.types.values() if kind is None else self._model.below(kind.name)
        return [iri_text(one.class_iri.value) for one in kinds if one.class_iri is not None]

    def _condition(self, kind: ObjectType | None, level: Level, subject: str) -> str:
        if kind is None or not level.filter:
            return ""
        return f"FILTER({self._filters.condition(kind, level.filter, subject)})"

    # What is wanted of the resources of a level

    def _wanted(self, level: Level, subject: str, depth: int) -> Iterator[str]:
        yield from self._values(level, subject)
        for path, below in level.below.values():
            yield from self._below(path, below, subject, depth + 1)

    def _values(self, level: Level, subject: str) -> Iterator[str]:
        forward = {path: number for path, number in level.values.items() if not path.inverse}
        if self._merged and len(forward) > 1:
            number = "-1"
            for path, branch in forward.items():
                number = f"IF(?p = {iri_text(path.iri)}, {branch}, {number})"
            properties = [iri_text(path.iri) for path in forward]
            yield f"{subject} ?p ?v {_is_in('?p', properties)} BIND({number} AS ?b) BIND({subject} AS ?s)"
        for path, branch in level.values.items():
            if path.inverse or not self._merged or len(forward) == 1:
                yield f"{step(subject, path, '?v')} {_tag(branch, subject)}"

    def _below(self, path: Path, level: Level, subject: str, depth: int) -> Iterator[str]:
        variable = f"?n{depth}"

        def reached() -> str:
            condition = self._condition(level.type, level, variable)
            return f"{step(subject, path, variable)} FILTER(!isLiteral({variable})) {condition}"

        yield f"{reached()} BIND({variable} AS ?v) {_tag(level.branch, subject)}"
        wanted = list(self._wanted(level, variable, depth))
        if wanted:
            yield f"{reached()} {_union(wanted)}"


def _union(branches: list[str]) -> str:
    return " UNION\n".join(f"{{ {one} }}" for one in branches)


def _tag(branch: int, subject: str) -> str:
    return f"BIND({branch} AS ?b) BIND({subject} AS ?s)"


def _is_in(variable: str, terms: list[str]) -> str:
    return f"FILTER({variable} IN ({', '.join(terms)}))"


def _keys(orders: tuple[OrderKey, ...]) -> list[str]:
    return [*(f"?k{number}" for number in range(len(orders) - 1)), "?n0"]


def _beyond(orders: tuple[OrderKey, ...], cursor: Cursor, forward: bool) -> str:
    return beyond(orders, cursor, _keys(orders), forward)


def _aggregate(number: int, order: OrderKey) -> str:
    assert order.field is not None
    of = key_expression(order.field, f"?w{number}")
    return f"({'MAX' if order.descending else 'MIN'}({of}) AS ?k{number})"


def _optional(number: int, order: OrderKey) -> str:
    assert order.field is not None
    variable = f"?w{number}"
    valid = valid_expression(order.field, variable)
    return f"OPTIONAL {{ {step('?n0', order.field.path, variable)} FILTER({valid}) }}"
