"""Counts that follow random changes are those of a count of everything."""

from collections import Counter
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from graphdb.model import ChangeSet
from graphdb.store.dataset_counts import DatasetCounts

TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBJECTS = [NamedNode("urn:s1"), NamedNode("urn:s2"), BlankNode("b")]
PREDICATES = [TYPE, NamedNode("urn:p"), NamedNode("urn:q")]
OBJECTS = [NamedNode("urn:C"), NamedNode("urn:D"), BlankNode("b"), Literal("C")]
GRAPHS = [DefaultGraph(), NamedNode("urn:g"), BlankNode("g")]

QUADS = st.builds(Quad, *(st.sampled_from(terms) for terms in (SUBJECTS, PREDICATES, OBJECTS, GRAPHS)))
EMPTY = DatasetCounts(Counter(), Counter(), Counter(), Counter())


def counted(quads: set[Quad]) -> DatasetCounts:
    """By looking at every pair of quads."""
    classes = [quad for quad in quads if quad.predicate == TYPE and not isinstance(quad.object, Literal)]
    return DatasetCounts(
        Counter(str(quad.predicate) for quad in quads),
        Counter(str(quad.object) for quad in classes),
        Counter(
            (str(kind.object), str(quad.predicate))
            for kind in classes
            for quad in quads
            if (quad.subject, quad.graph_name) == (kind.subject, kind.graph_name)
        ),
        Counter(str(quad.graph_name) for quad in quads if not isinstance(quad.graph_name, DefaultGraph)),
    )


def _of(quads: set[Quad], subject: object, graph: object) -> list[Quad]:
    return [quad for quad in quads if (quad.subject, quad.graph_name) == (subject, graph)]


@given(st.lists(st.lists(st.tuples(st.sets(QUADS, max_size=6), st.sets(QUADS, max_size=6)), max_size=4)))
def test_counts_follow(steps: list[list[tuple[set[Quad], set[Quad]]]]) -> None:
    quads, counts = set[Quad](), EMPTY
    for step in steps:
        changes = []
        for wanted, unwanted in step:
            removed = quads & unwanted
            quads = quads - removed
            added = wanted - quads
            quads = quads | added
            both = removed & added  # a change holds real changes only
            changes.append(ChangeSet(tuple(removed - both), tuple(added - both)))
        counts = counts.after(changes, partial(_of, quads))
        assert counts == counted(quads)
