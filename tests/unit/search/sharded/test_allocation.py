"""Where copies of shards are placed: the rules, for random nodes and shards."""

from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.sharded.allocation import Move, ShardKey, allocate, next_move

PLACES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), max_size=6)
SHARDS = st.dictionaries(
    st.tuples(st.sampled_from(("books", "films")), st.integers(0, 5)), st.integers(1, 3), max_size=8
)
APART = {"a": "x", "b": "y", "c": "z"}


@settings(deadline=None)
@given(SHARDS, PLACES, PLACES)
def test_copies_are_apart_even_and_stay(
    wanted: dict[ShardKey, int], before: dict[str, str], now: dict[str, str]
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
    for _ in range(80):
        move = next_move(again, nodes)
        if move is None:
            return
        places = again[move.shard]
        places[places.index(move.source)] = move.target
        assert len({nodes[place] for place in places}) == len(places)
    raise AssertionError("moving never ends")


def _placed(**places: list[str]) -> dict[ShardKey, list[str]]:
    """By index: of each shard the place of its one copy."""
    return {(index, number): [place] for index, found in places.items() for number, place in enumerate(found)}


def test_what_is_even_is_what_it_is_in_elasticsearch() -> None:
    assert next_move(_placed(books=["a", "a", "b"]), APART) == Move(("books", 0), "a", "c")
    assert next_move(_placed(books=["a", "a", "b", "b", "c"]), APART) is None  # 1.0 is not more than 1
    assert next_move(_placed(books=["a", "b", "c"], films=["a"]), APART) is None
    assert next_move(_placed(books=["a", "b", "c"], films=["a"], maps=["a"]), APART) is not None  # 1.45
    # as many copies on each, but those of one index together: 1.1
    assert next_move(_placed(books=["a", "a"], films=["b", "b"], maps=["c", "c"]), APART) is not None


def test_a_threshold_and_kinds_of_copies_keep_what_is_moved_by_hand() -> None:
    uneven = _placed(books=["a", "a", "b"])
    assert next_move(uneven, APART, threshold=2.0) is None
    assert next_move(uneven, APART, kinds="replicas") is None
    assert next_move(uneven, APART, kinds="primaries") == Move(("books", 0), "a", "c")


def test_another_copy_is_moved_before_one_that_was_moved_by_hand() -> None:
    uneven = _placed(books=["a", "a", "b"])
    assert next_move(uneven, APART, stay={(("books", 0), "a")}) == Move(("books", 1), "a", "c")
    assert next_move(_placed(books=["a", "a"]), APART, stay={(("books", n), "a") for n in (0, 1)}) is not None
