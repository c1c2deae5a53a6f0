"""Explanations of scores in the form that Elasticsearch answers: value, description, details."""

from collections.abc import Iterable
from typing import Any

__all__ = ["Explanation", "explained", "matched", "no_match"]

Explanation = dict[str, Any]


def explained(value: float, description: str, details: Iterable[Explanation] = ()) -> Explanation:
    """One node of an explanation."""
    return {"value": value, "description": description, "details": list(details)}


def no_match(description: str = "no matching term", details: Iterable[Explanation] = ()) -> Explanation:
    """Why a document does not match. `matched` is recognized by its key."""
    return {"value": 0.0, "description": description, "details": list(details), "no_match": True}


def matched(explanation: Explanation) -> bool:
    """Whether an explanation is of a match; takes the mark of a failure out of it and of all below."""
    failed = explanation.pop("no_match", False)
    for detail in explanation["details"]:
        matched(detail)
    return not failed
