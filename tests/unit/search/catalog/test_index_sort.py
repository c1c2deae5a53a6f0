"""`index.sort.*`: what an index can say that it is sorted by."""

from typing import Any

import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.index_settings import check_new_settings, read_settings, static_names
from graphdb.search.catalog.index_sort import check_index_sort
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping as FieldMapping

PROPERTIES = {
    "k": {"type": "keyword"},
    "n": {"type": "long"},
    "t": {"type": "text"},
    "off": {"type": "long", "doc_values": False},
    "p": {"type": "geo_point"},
    "h": {"type": "half_float"},
}


def checked(sort: dict[str, Any]) -> dict[str, Any]:
    settings = read_settings({"index": {"sort": sort}})
    check_new_settings(settings)
    check_index_sort(settings, FieldMapping.of({"properties": PROPERTIES}, Analyzers.of({})))
    return settings


def test_sorts_are_kept() -> None:
    settings = checked({"field": ["k", "n"], "order": ["desc", "asc"], "missing": ["_first", "_last"]})
    assert settings["sort.field"] == ["k", "n"]
    assert checked({"field": "n", "mode": "max"})["sort.field"] == "n"
    assert static_names(settings) == sorted(settings)


@pytest.mark.parametrize(
    ("sort", "reason"),
    [
        ({"field": "x"}, r"unknown index sort field:\[x\]"),
        ({"field": "t"}, r"docvalues not found for index sort field:\[t\]"),
        ({"field": "off"}, r"docvalues not found for index sort field:\[off\]"),
        ({"field": "p"}, r"invalid index sort field:\[p\] of type \[geo_point\]"),
        ({"field": "h"}, r"invalid index sort field:\[h\] of type \[half_float\]"),
        ({"field": "k", "order": ["asc", "desc"]}, "size mismatch"),
        ({"order": "asc"}, "size mismatch"),
        ({"field": "k", "order": "up"}, r"Illegal sort order:\[up\]"),
        ({"field": "k", "missing": "x"}, "Illegal missing value"),
        ({"field": "k", "mode": "avg"}, "Illegal sort mode"),
    ],
)
def test_what_cannot_be_sorted_by(sort: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        checked(sort)
