"""What geometries ask of a query's text: derived triple patterns, and slots for what an index finds."""

from functools import partial

from graphdb.geo.derived_triples import Rewriting, Slot, is_derived
from graphdb.geo.lookups import Lookup, Ordered
from graphdb.geo.narrowing_filters import lookups_of_group, nearest_of
from graphdb.sparql.graph_variables import Node, Place
from graphdb.sparql.patterns import GroupGraphPattern, OptionalPattern, SubSelect, TriplesBlock
from graphdb.sparql.scope import variables_of_element
from graphdb.sparql.slotted_text import NEAR, NEAREST, EngineText, Filling, Slots
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Span, Variable
from graphdb.sparql.text_edits import TextEdits, names_besides

__all__ = ["Derivation", "Narrowing", "has_derived"]


def has_derived(node: object) -> bool:
    """Whether a node is triples of which one matches more than is stated."""
    return isinstance(node, TriplesBlock) and any(map(is_derived, node.triples))


class Derivation:
    """Has triple patterns of one text match more than is stated, where they do.

    Blank nodes beside them become variables, so a sub-select names what its star shows.
    """

    def __init__(self, text: str, slot: Slot | None) -> None:
        self._fresh, self._slot = next(names_besides(text, "geo")), slot
        self._blank_nodes: dict[str, str] = {}  # labels, and the variables in their place

    def mend_at(self, node: Node, edits: TextEdits) -> None:
        """Change the text at one node, after what is below it."""
        place = node.place
        names = partial(self._name, place)
        match node.node:
            case GroupGraphPattern(elements=elements) if any(map(has_derived, elements)):
                rewriting = Rewriting(names, self._fresh, place.graph, self._slot)
                known: set[str] = set()
                for part in elements:
                    if isinstance(part, TriplesBlock):
                        edits.replace(part.span, rewriting.block(part.triples, known))
                    if not isinstance(part, OptionalPattern):
                        known.update(variables_of_element(part))
            case SubSelect(select=select) if select.projections is None and place.graph is None:
                columns = " ".join(f"?{place.name(column)}" for column in sorted(node.node.variables))
                edits.replace(Span(select.span.end - 1, select.span.end), f" {columns} ")

    def _name(self, place: Place, term: Variable | BlankNodeLabel) -> str:
        if isinstance(term, Variable):
            return f"?{place.name(term.name)}"
        fresh = f"?{self._fresh}n{len(self._blank_nodes)}"
        return self._blank_nodes.setdefault(term.label, fresh)


class Narrowing:
    """Marks the places in one query's text where an index can narrow what is looked at."""

    def __init__(self, query: Query, edits: TextEdits) -> None:
        self._query, self._edits = query, edits
        self._slots = Slots(next(names_besides(query.text, "geo")))
        self._lookups: list[Lookup] = []
        self._nearest: Ordered | None = None
        self._call = ""

    def mark_at(self, node: object) -> None:
        """At a node of the tree, after what is below it."""
        match node:
            case GroupGraphPattern():
                for block, lookup in lookups_of_group(node):
                    self._edits.before(block.start, f"{self.slot(lookup)} ")
            case Query(where=GroupGraphPattern(span=span)):
                self._nearest = nearest_of(node)
                if self._nearest is not None:
                    self._edits.before(self._nearest.block.start, f"{self._slots.mark(NEAREST)} ")
                    self._edits.before(span.end - 1, f" {self._slots.mark(NEAR)} ")
                    self._call = self._edits.written(self._nearest.call)

    def slot(self, lookup: Lookup, without: str = "", around: tuple[str, ...] = ("", "")) -> str:
        """The mark of a slot for what a lookup finds; see `Filling`."""
        self._lookups.append(lookup)
        return self._slots.mark(str(len(self._lookups) - 1), Filling(without, around))

    def slotted(self, text: str) -> EngineText:
        """The text once everything is written."""
        return EngineText(
            self._slots.split(text),
            True,
            tuple(self._lookups),
            self._nearest,
            self._call,
            self._slots.fillings,
        )
