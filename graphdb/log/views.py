"""`LogViews`: what each follower of a log needs of it still. The log forgets only what none of them does."""

from collections.abc import Iterable

__all__ = ["QUADS", "SEARCH", "LogViews", "views_of"]

QUADS, SEARCH = "quads", "search"  # the views that a node may have


def views_of(*, search_enabled: bool) -> tuple[str, ...]:
    """The views of a node."""
    return (QUADS, SEARCH) if search_enabled else (QUADS,)


class LogViews:
    """A view that has said nothing yet may need everything. What is not durable of it, it can read again."""

    def __init__(self, names: Iterable[str]) -> None:
        self._needed_from = dict.fromkeys(names, 0)

    def release(self, view: str, index: int) -> int:
        """A view needs no entries before index; the answer: the index before which nobody needs any.

        What is no view of this log has no say.
        """
        if view in self._needed_from:
            self._needed_from[view] = index
        return min(self._needed_from.values(), default=index)
