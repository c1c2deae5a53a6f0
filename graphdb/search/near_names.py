"""Elasticsearch's hint for a name that is not known: the known names that are like it."""

from collections.abc import Iterable

__all__ = ["did_you_mean", "likeness"]

_ALIKE = 0.5
_NAME_LENGTH_MAX = 100  # of longer ones the beginning is compared


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` did you mean [terms]?`, the likeliest first where there are several; empty where nothing is like it.

    Source: `SuggestingErrorOnUnknown` of Elasticsearch 8.
    """
    short = name[:_NAME_LENGTH_MAX]
    rated = sorted((-likeness(short, other), other) for other in known)
    alike = [other for likeness, other in rated if -likeness > _ALIKE]
    if not alike:
        return ""
    meant = f"[{', '.join(alike)}]"
    return f" did you mean {meant if len(alike) == 1 else f'any of {meant}'}?"


def likeness(one: str, other: str) -> float:
    """1 less the edits (Levenshtein's distance: a swap of neighbours is two) over the longer length."""
    row = list(range(len(other) + 1))
    for place, char in enumerate(one, 1):
        above, row = row, [place]
        for column, wanted in enumerate(other, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (char != wanted)))
    return 1 - row[-1] / max(len(one), len(other), 1)
