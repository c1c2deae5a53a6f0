"""Which indexes analyse with regular expressions of their users.

How long such a pattern takes depends on the node, and nodes must not disagree on which documents are
refused. So their documents are tried before they are logged (`Catalog.prepare`), with a time limit, and
applied without one.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["has_patterns"]

_PATTERN_PARAMETERS = {"pattern", "patterns", "keywords_pattern"}


def has_patterns(settings: Mapping[str, Any]) -> bool:
    """Whether any component that the settings define has one."""
    pending: list[Any] = [settings.get("analysis")]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            if _PATTERN_PARAMETERS & value.keys():
                return True
            pending += value.values()
    return False
