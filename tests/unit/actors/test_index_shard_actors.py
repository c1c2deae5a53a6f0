"""How the database nodes on one Ray cluster share the processes for index shards."""

from hypothesis import given
from hypothesis import strategies as st

from actors.index_shard_actors import divided


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 7)), st.sets(st.sampled_from("xyz"), min_size=1)
)
def test_each_process_is_one_nodes_and_all_have_nearly_as_many(
    counts: dict[str, int], names: set[str]
) -> None:
    sharing = sorted(names)
    shares = [divided(counts, sharing, name) for name in sharing]
    for node, count in counts.items():
        of_node = [share.get(node, 0) for share in shares]
        assert sum(of_node) == count
        assert max(of_node) - min(of_node) <= 1
    assert divided(counts, [name for name in sharing if name != sharing[0]], sharing[0]) == shares[0]
    assert divided(counts, ["x"], "x") == {node: count for node, count in counts.items() if count}


def test_no_node_is_left_out_where_each_ray_node_has_one_process() -> None:
    counts = {"a": 1, "b": 1, "c": 1}
    assert [divided(counts, ["x", "y", "z"], name) for name in "xyz"] == [{"a": 1}, {"b": 1}, {"c": 1}]
