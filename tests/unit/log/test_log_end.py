"""What may be appended where, and what each view of a log lets go of."""

from hypothesis import given
from hypothesis import strategies as st

from graphdb.log.log_end import LogEnd
from graphdb.log.views import QUADS, SEARCH, LogViews, views_of
from graphdb.model import EntryKind, LogEntry

KINDS = st.lists(st.sampled_from(EntryKind), max_size=12)


def entries(kinds: list[EntryKind]) -> list[LogEntry]:
    return [LogEntry(0, 0, kind, bytes(16), 0, b"") for kind in kinds]


@given(KINDS, KINDS, st.integers(0, 12), st.integers(0, 30))
def test_a_plan_holds_while_only_documents_follow(
    before: list[EntryKind], added: list[EntryKind], cut: int, expected: int
) -> None:
    end = LogEnd.of_opened(len(before)).extended(entries(added))
    kinds = [*before, *added]
    assert (end.last_index, end.admits(0)) == (len(kinds), True)
    left = max(len(before), len(kinds) - cut)
    kinds, taken_back = kinds[:left], kinds[left:]
    end = end.cut(left)
    # what was there when the log was opened is taken for quads, and so is what quads were taken back behind
    known = left if any(kind is not EntryKind.SEARCH for kind in taken_back) else len(before)
    is_plain = all(kind is EntryKind.SEARCH for kind in kinds[max(expected - 1, 0) :])
    if expected > 0:
        assert end.admits(expected) == (known < expected <= len(kinds) + 1 and is_plain)


def test_a_log_keeps_what_a_view_may_need() -> None:
    views = LogViews(views_of(search_enabled=True))
    assert views.release(QUADS, 70) == 0, "the other one has said nothing yet"
    assert views.release(SEARCH, 50) == 50
    assert views.release(SEARCH, 90) == 70
    assert views.release(QUADS, 60) == 60, "a store that was made anew begins further back"
    assert views.release("no view", 200) == 60


def test_without_search_only_quads_have_a_say() -> None:
    views = LogViews(views_of(search_enabled=False))
    assert views.release(SEARCH, 50) == 0
    assert views.release(QUADS, 70) == 70
