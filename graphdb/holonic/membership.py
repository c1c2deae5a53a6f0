"""Membership: how deep each holon is below those that are a part of nothing."""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping

__all__ = ["depths"]


def depths(parents: Mapping[str, Collection[str]]) -> dict[str, int | None]:
    """For each key, in order, the length of its longest chain of parents; 0 where it has none.

    Parents that are no keys do not count. None stands for a key that is in a loop, or below one: its chains
    have no end.
    """
    known = {member: {parent for parent in of if parent in parents} for member, of in parents.items()}
    members: dict[str, list[str]] = defaultdict(list)
    for member, of in known.items():
        for parent in of:
            members[parent].append(member)
    waits_for = {member: len(of) for member, of in known.items()}
    found: dict[str, int | None] = dict.fromkeys(parents)
    ready = deque(member for member, count in waits_for.items() if not count)
    while ready:
        parent = ready.popleft()
        found[parent] = (
            max((depth for of in known[parent] if (depth := found[of]) is not None), default=-1) + 1
        )
        for member in members[parent]:
            waits_for[member] -= 1
            if not waits_for[member]:
                ready.append(member)
    return found
