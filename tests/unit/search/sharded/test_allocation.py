"""Where copies of shards are placed: the rules, for random nodes and shards."""

from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.sharded.allocation import allocate, next_move

PLACES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), max_size=6)
SHARDS = st.dictionaries(st.integers(0, 8), st.integers(1, 3), max_size=6)


@given(SHARDS, PLACES, PLACES)
def test_copies_are_apart_even_and_stay(
    wanted: dict[int, int], before: dict[str, str], now: dict[str, str]
) -> None:
    placed = allocate(wanted, {}, before)
    nodes = {place: before.get(place, node) for place, node in now.items()}
    again = allocate(wanted, placed, nodes)
    for shard, places in again.items():
        assert len({nodes[place] for place in places}) == len(places)
        assert len(places) == min(wanted[shard], len(set(nodes.values())))
        assert [place for place in placed[shard] if place in nodes] == places[: len(places)][
            : sum(place in nodes for place in placed[shard])
        ]
    for _ in range(50):
        move = next_move(again, nodes)
        if move is None:
            return
        places = again[move.shard]  # type: ignore[index]
        places[places.index(move.source)] = move.target
        assert len({nodes[place] for place in places}) == len(places)
    raise AssertionError("moving never ends")
