"""How deep holons are nested, against a walk along every chain."""

from hypothesis import given
from hypothesis import strategies as st

from graphdb.holonic.registry import depths

NAMES = "abcdef"
memberships = st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES + "xy"), max_size=3))


def deepest(parents: dict[str, set[str]], member: str, seen: tuple[str, ...] = ()) -> float:
    """The length of the longest chain, without end where it comes back."""
    if member in seen:
        return float("inf")
    chains = [deepest(parents, parent, (*seen, member)) for parent in parents[member] if parent in parents]
    return max((1 + chain for chain in chains), default=0)


@given(memberships)
def test_depths(parents: dict[str, set[str]]) -> None:
    expected = {member: deepest(parents, member) for member in parents}
    assert depths(parents) == {m: None if d == float("inf") else d for m, d in expected.items()}
    assert list(depths(parents)) == list(parents)


def test_a_long_chain_needs_no_stack() -> None:
    count = 50_000
    parents = {str(number): {str(number - 1)} if number else set() for number in range(count)}
    assert depths(parents)[str(count - 1)] == count - 1
