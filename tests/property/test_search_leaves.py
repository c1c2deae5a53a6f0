"""The best documents of terms are the same, to the last bit, from all leaves at once and leaf by leaf."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import Query, QueryContext, Searcher, collect, parse_query
from graphdb.search.query.few_terms import NEVER
from graphdb.search.segments import SegmentBuilder

# the package has a function of the same name
module: Any = import_module("graphdb.search.query.top_hits")
FIELDS = {"t": {"type": "text"}, "k": {"type": "keyword"}, "o": {"type": "nested"}}
WORDS = [f"w{number}" for number in range(16)]
# the first words are in most documents, and many documents have none
texts = st.lists(st.integers(0, 60).map(lambda place: WORDS[min(place // 2, 15) % 16]), max_size=8)
documents = st.fixed_dictionaries(
    {"k": st.sampled_from("ab")},
    optional={"t": texts.map(" ".join), "o": st.just([{"k": "x"}, {"k": "y"}])},
)
# (document, whether it is deleted), by leaf
corpora = st.lists(st.lists(st.tuples(documents, st.booleans()), min_size=1, max_size=20), max_size=5)
queries = st.builds(
    lambda words, operator, narrowed: {
        "bool": {
            "must": [{"match": {"t": {"query": " ".join(words), "operator": operator}}}],
            **({"filter": [{"term": {"k": "a"}}], "must_not": [{"term": {"t": "w5"}}]} if narrowed else {}),
        }
    },
    st.lists(st.sampled_from([*WORDS, "nowhere"]), min_size=1, max_size=15),
    st.sampled_from(["or", "or", "and"]),
    st.booleans(),
)


def _searcher(corpus: Sequence[Sequence[tuple[dict[str, Any], bool]]]) -> tuple[Searcher, QueryContext]:
    analyzers = Analyzers.of({})
    mapping = Mapping.of({"properties": FIELDS}, analyzers)
    leaves, base = list[Leaf](), 0
    for place, docs in enumerate(corpus):
        builder = SegmentBuilder()
        for number, (doc, _) in enumerate(docs):
            parsed, _ = mapping.parse(doc)
            builder.add(f"{place}-{number}", orjson.dumps(doc), number, 1, parsed)
        segment = builder.build(f"s{place}")
        live = np.ones(segment.size, np.bool_)
        for doc_number, (_, is_deleted) in zip(segment.root_docs().tolist(), docs, strict=True):
            live[segment.block(doc_number)] = not is_deleted
        leaves.append(Leaf(segment, live, base))
        base += segment.size
    return Searcher(leaves, mapping, analyzers), QueryContext(mapping, analyzers)


@settings(max_examples=150, deadline=None)
@given(corpora, queries, st.integers(0, 6), st.sampled_from([None, 0, 3]), st.sampled_from([1, 1 << 20]))
def test_the_same_as_leaf_by_leaf(
    corpus: Any, body: dict[str, Any], k: int, counted: int | None, at_once: int
) -> None:
    searcher, context = _searcher(corpus)
    query = parse_query(body, context)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE_DOCUMENTS", at_once)
        found = collect(query, searcher, k, counted)
    twin = module._leaf_by_leaf(query, searcher, k, NEVER if counted is None else counted)
    assert (found.docs.tolist(), found.scores.tolist()) == (twin.docs.tolist(), twin.scores.tolist())
    matching = _matching(query, searcher)
    assert found.total == matching if counted is None else min(found.total, counted + 1) <= matching
    assert counted is None or min(found.total, counted + 1) == min(matching, counted + 1)


def _matching(query: Query, searcher: Searcher) -> int:
    masks = [query.mask(leaf, searcher) & leaf.roots for leaf in searcher.leaves]
    return int(sum(np.count_nonzero(mask) for mask in masks))
