"""`index.sort.*`: what an index can say that it is sorted by."""

from typing import Any

import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.index_settings import check_new_settings, read_settings, static_names
from graphdb.search.catalog.index_sort import checked_order, order_of
from graphdb.search.errors import SearchError
from graphdb.search.index_order import OrderField
from graphdb.search.mapping import Mapping as FieldMapping

PROPERTIES = {
    "k": {"type": "keyword"},
    "n": {"type": "long"},
    "t": {"type": "text"},
    "off": {"type": "long", "doc_values": False},
    "p": {"type": "geo_point"},
    "h": {"type": "half_float"},
    "a": {"type": "alias", "path": "k"},
    "c": {"type": "nested", "properties": {"n": {"type": "long"}}},
}


def checked(sort: dict[str, Any]) -> dict[str, Any]:
    settings = read_settings({"index": {"sort": sort}})
    check_new_settings(settings)
    checked_order(settings, FieldMapping.of({"properties": PROPERTIES}, Analyzers.of({})))
    return settings


def test_an_order_has_a_field_for_each_and_its_defaults() -> None:
    mapping = FieldMapping.of({"properties": PROPERTIES}, Analyzers.of({}))
    settings = checked({"field": "k,n", "order": "desc,asc", "missing": "_first,_last"})
    assert order_of(settings, mapping) == (
        OrderField("k", "terms", True, "max", False),
        OrderField("n", "ints", False, "min", True),
    )
    assert order_of(checked({"field": "n", "mode": "max"}), mapping) == (OrderField("n", "ints", mode="max"),)
    assert order_of({}, mapping) == ()


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
        ({"field": "a"}, r"Cannot use alias \[a\] as an index sort field"),
        ({"field": "c.n"}, r"cannot apply index sort to field \[c.n\] under nested object \[c\]"),
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
