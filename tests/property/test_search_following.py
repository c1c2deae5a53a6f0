"""An index that follows random changes of the graph has what one has that is made of the graph anew."""

import pytest
from hypothesis import given, settings
from pyoxigraph import Quad

from graphdb.config.limits import GateLimits
from graphdb.search.following.graph_settings import read_shape
from tests.support.followed_graphs import EX, FollowedStore, changes, graphs

SHAPES = {
    "class": f"{EX}Work",
    "star": {
        "query": f"PREFIX : <{EX}> SELECT ?id ?name ?part {{ ?id a :Work OPTIONAL {{ ?id :name ?name }} "
        "OPTIONAL { ?id :part ?part FILTER(isIRI(?part)) } } # documents"
    },
    "chain": {"query": f"PREFIX : <{EX}> SELECT * {{ ?id a :Work ; :part/:name ?name }}"},
    "counted": {
        "query": f"PREFIX : <{EX}> SELECT ?id (COUNT(?part) AS ?parts) {{ ?id :part ?part }} GROUP BY ?id"
    },
}
Changes = list[tuple[list[Quad], list[Quad]]]


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=150, deadline=None)
@given(graph=graphs, happenings=changes)
def test_following_is_building_anew(name: str, graph: list[Quad], happenings: Changes) -> None:
    shape = read_shape({"shape": SHAPES[name]}, GateLimits())
    followed = FollowedStore(shape, graph)
    for removed, added in happenings:
        followed.change(removed, added)
        assert followed.documents == FollowedStore(shape, followed.store).documents
