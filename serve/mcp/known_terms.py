"""What the data have that is near to what a query names: hints by which a model mends its query."""

import difflib
import re
from collections.abc import Sequence

__all__ = ["local_name", "nearest"]

_LOCAL = re.compile(r"[^#/:]*$")


def local_name(iri: str) -> str:
    """What stands behind the last #, / or : of an IRI."""
    found = _LOCAL.search(iri)
    assert found is not None
    return found[0]


def nearest(iri: str, known: Sequence[str], count: int = 3) -> list[str]:
    """The known IRIs whose local names, or else whose whole texts, are most like that of iri."""
    name = local_name(iri).lower()
    by_name: dict[str, list[str]] = {}
    for one in known:
        by_name.setdefault(local_name(one).lower(), []).append(one)
    names = difflib.get_close_matches(name, by_name, count, cutoff=0.6)
    names += [one for one in by_name if name and name in one and one not in names]
    found = [one for near in names for one in by_name[near]]
    return (found or difflib.get_close_matches(iri, known, count, cutoff=0.8))[:count]
