"""Tables of `_cat`: columns, sorting, units, forms."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from serve.search.administration.cat_table import (
    Column,
    Size,
    TableOptions,
    Time,
    make_table,
    render_help,
    size_text,
    time_text,
)

COLUMNS = (
    Column("index", ("i", "idx"), "index name"),
    Column("docs.count", ("dc", "docsCount"), "available docs", right=True),
    Column("docs.deleted", ("dd",), "deleted docs", right=True),
    Column("store.size", ("ss",), "size", right=True, on=False),
    Column("took", ("t",), "time", on=False),
)
ROWS: list[dict[str, Any]] = [
    {"index": "cats", "docs.count": 12, "docs.deleted": 0, "store.size": Size(2048), "took": Time(1500)},
    {"index": "a", "docs.count": 7, "docs.deleted": None, "store.size": Size(5), "took": Time(20)},
    {"index": "b", "docs.count": 7, "docs.deleted": 3, "store.size": Size(900), "took": Time(0)},
]


def text(verbose: bool = False, **options: str) -> str:
    return make_table(COLUMNS, ROWS, TableOptions(**options)).text(verbose)


def test_numbers_are_aligned_to_the_right_and_what_is_missing_is_empty() -> None:
    assert text() == "cats 12 0\na     7  \nb     7 3\n"


def test_headers_widen_the_columns() -> None:
    assert text(verbose=True) == (
        "index docs.count docs.deleted\n"
        "cats          12            0\n"
        "a              7             \n"
        "b              7            3\n"
    )


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("index", ["index"]),
        ("dc,i", ["dc", "i"]),
        ("docs.*", ["docs.count", "docs.deleted"]),
        ("s*,nothing,index", ["store.size", "index"]),
        ("d*,dc", ["docs.count", "docs.deleted", "dc"]),
        ("*", [column.name for column in COLUMNS]),
        ("nothing", []),
    ],
)
def test_columns_are_chosen_and_shown_under_the_name_they_were_asked_for(
    chosen: str, names: list[str]
) -> None:
    table = make_table(COLUMNS, ROWS, TableOptions(chosen=chosen))
    assert [list(record) for record in table.records()] == [names] * 3


@pytest.mark.parametrize(
    ("sort", "indexes"),
    [
        ("index", "a b cats"),
        ("dc,index:desc", "b a cats"),
        ("dc:desc,i", "cats a b"),
        ("docs.deleted", "a cats b"),  # none at all is before any number
        ("store.size:desc", "cats b a"),
        ("took:asc", "b a cats"),
    ],
)
def test_rows_are_sorted_by_values_not_by_text(sort: str, indexes: str) -> None:
    assert text(chosen="i", sort=sort).split() == indexes.split()


def test_an_unknown_key_to_sort_by_is_refused() -> None:
    with pytest.raises(SearchError, match="Unable to sort by unknown sort key `nothing`"):
        text(sort="nothing")


def test_units() -> None:
    assert text(chosen="ss,took").split("\n")[0] == " 2kb 1.5s"
    assert text(chosen="ss,took", bytes="b", time="ms") == "2048 1500\n   5 20\n 900 0\n"
    assert text(chosen="ss", bytes="kb") == "2\n0\n0\n"
    with pytest.raises(SearchError, match="unit"):
        TableOptions(bytes="miles")
    with pytest.raises(SearchError, match="unit"):
        TableOptions(time="miles")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0b"), (1023, "1023b"), (1024, "1kb"), (1587, "1.5kb"), (1 << 20, "1mb"), (5 << 50, "5pb")],
)
def test_sizes_in_the_unit_that_suits(count: int, shown: str) -> None:
    assert size_text(count) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0s"), (0.5, "500micros"), (12, "12ms"), (1000, "1s"), (90_000, "1.5m"), (3_600_000, "1h")],
)
def test_times_in_the_unit_that_suits(milliseconds: float, shown: str) -> None:
    assert time_text(milliseconds) == shown


def test_json_and_yaml_hold_text_and_null() -> None:
    table = make_table(COLUMNS, ROWS[1:2], TableOptions())
    assert table.records() == [{"index": "a", "docs.count": "7", "docs.deleted": None}]
    assert table.yaml() == '---\n- index: "a"\n  docs.count: "7"\n  docs.deleted: null\n'
    assert make_table(COLUMNS, [], TableOptions()).yaml() == "--- []\n"


def test_help_lists_all_columns() -> None:
    assert render_help(COLUMNS[:2]) == (
        "index      | i,idx        | index name    \ndocs.count | dc,docsCount | available docs\n"
    )


def test_columns_without_rows() -> None:
    empty = make_table(COLUMNS, [], TableOptions())
    assert empty.text(False) == ""
    assert empty.text(True) == "index docs.count docs.deleted\n"
