"""`QueryPlan`: what follows from the text of a query alone. It is kept by the text, and by its shape."""

from collections.abc import Callable
from dataclasses import dataclass

from graphdb.bounded_cache import BoundedCache
from graphdb.config.limits import GateLimits
from graphdb.planning.decisions import is_cheap, is_repeatable
from graphdb.planning.engine_text import engine_text
from graphdb.planning.gate import read_query
from graphdb.planning.text_shapes import CutText, Slots, cut_text, slots_of
from graphdb.sparql.printing import written_term
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import RdfLiteral
from graphdb.store.small_joins import SmallJoin, small_join
from graphdb.store.view import Term

__all__ = ["PlansByShape", "QueryPlan", "plan_of"]


_STRING = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(slots=True)
class QueryPlan:
    """A query that has passed the gate. One that is neither cheap nor a small join is for a reader."""

    text: str
    base_iri: str | None
    like: Query  # of this text, or of another that differs in the slots of its shape alone
    is_cheap: bool
    join: SmallJoin | None  # what is not cheap by its text may be a small join, by what the store holds
    is_repeatable: bool
    engine_text: str | None  # None: what an index finds is to be written into it, or it is not needed
    limits: GateLimits
    shape_text: str | None = None  # what two texts of one shape have in common; None: it has no shape

    @property
    def query(self) -> Query:
        """The tree of the text, which is parsed only now if it came by its shape."""
        if self.like.text == self.text:
            return self.like
        return read_query(self.text, self.base_iri, self.limits)


def plan_of(query: Query, limits: GateLimits, *, is_long: bool = False) -> QueryPlan:
    """The plan of a query that has passed the gate with these limits. A long text is for a reader."""
    plan = QueryPlan(query.text, query.base_iri, query, False, None, is_repeatable(query), None, limits)
    if is_long:
        return plan
    plan.is_cheap = is_cheap(query)
    plan.join = small_join(query)
    has_searches = plan.join is not None and bool(plan.join.searches)
    if plan.is_cheap or (plan.join is not None and plan.join.looks_at_triples_only and not has_searches):
        made = engine_text(query)
        plan.engine_text = made.text if len(made.pieces) == 1 and not made.calls_geometry else None
        plan.shape_text = plan.engine_text
    elif has_searches and plan.join is not None and plan.join.columns:
        texts = (written_term(RdfLiteral(each, _STRING, None, None)) for each in plan.join.sought)
        plan.shape_text = "\n".join((*engine_text(query).pieces, *texts))
    return plan


class _Shape:
    """A plan with marks in its slots."""

    def __init__(self, plan: QueryPlan, marked: QueryPlan, slots: Slots, marks: list[Term]) -> None:
        assert marked.shape_text is not None
        self._plan, self._slots, self._marks = plan, slots, marks
        self._join = join = marked.join
        self._fill = None if join is None else join.filled if join.looks_at(marks) else join.seeking
        self._pieces, self._numbers = slots.pieces(marked.shape_text)

    def filled(self, text: str, cut: CutText) -> QueryPlan | None:
        """The plan of another text of this shape."""
        constants = self._slots.constants(cut)
        if constants is None:
            return None
        join = self._join
        if self._fill is not None:
            join = self._fill({mark: each.term for mark, each in zip(self._marks, constants, strict=True)})
        written = [self._pieces[0]]
        for number, piece in zip(self._numbers, self._pieces[1:], strict=True):
            written += (constants[number].written, piece)
        plan, shape_text = self._plan, "".join(written)
        return QueryPlan(
            text,
            plan.base_iri,
            plan.like,
            plan.is_cheap,
            join,
            plan.is_repeatable,
            None if plan.engine_text is None else shape_text,
            plan.limits,
            shape_text,
        )


class PlansByShape:
    """Plans of queries that the engine may answer at once, for any thread. A shape is kept from its second
    text on.
    """

    def __init__(self, plan: Callable[[str, str | None], QueryPlan]) -> None:
        """plan makes the plan of a text in full."""
        self._plan = plan
        self._met: BoundedCache[bool] = BoundedCache(entries_max=1024, chars_max=1_000_000)
        # (): without slots, or one whose constants decide. A plan has a tree, of 200 bytes a character.
        self._slots: BoundedCache[Slots | tuple[()]] = BoundedCache(entries_max=512, chars_max=250_000)
        self._shapes: BoundedCache[_Shape | tuple[()]] = BoundedCache(entries_max=512, chars_max=250_000)

    def get(self, text: str, base_iri: str | None) -> QueryPlan | None:
        """The plan of a text that has a known shape."""
        cut = cut_text(text)
        if cut is None:
            return None
        slots = self._slots.get(cut.form, base_iri)
        if not slots:
            return None
        shape = self._shapes.get(cut.with_fixed(slots.places), base_iri)
        return shape.filled(text, cut) if shape else None

    def note(self, plan: QueryPlan) -> None:
        """Keep the shape of a text whose plan has been made in full, if others have the same."""
        if plan.shape_text is None or (cut := cut_text(plan.text)) is None:
            return
        if not self._met.get(cut.form, plan.base_iri):
            self._met.put(cut.form, plan.base_iri, True)
            return
        slots = self._slots.get(cut.form, plan.base_iri)
        if slots is None:
            slots = slots_of(plan.query, cut) or ()
            self._slots.put(cut.form, plan.base_iri, slots)
        if slots:
            key = cut.with_fixed(slots.places)
            if self._shapes.get(key, plan.base_iri) is None:
                self._shapes.put(key, plan.base_iri, self._shape(plan, cut, slots) or ())

    def _shape(self, plan: QueryPlan, cut: CutText, slots: Slots) -> _Shape | None:
        """None where the constants that the text has in its slots have decided anything."""
        # the places hold for all texts of this form, but each shape has prefixes of its own
        slots = slots.with_prefixes(dict(plan.query.prologue.prefixes))
        text, marks = slots.text_with_marks(plan.text)
        marked = self._plan(text, plan.base_iri)
        if marked.shape_text is None:
            return None
        shape = _Shape(plan, marked, slots, [mark.term for mark in marks])
        again = shape.filled(plan.text, cut)
        is_same = (
            again is not None
            and again.shape_text == plan.shape_text
            and (marked.engine_text is None) == (plan.engine_text is None)
            and marked.is_cheap == plan.is_cheap
            and marked.is_repeatable == plan.is_repeatable
            and (marked.join is None) == (plan.join is None)
        )
        return shape if is_same else None
