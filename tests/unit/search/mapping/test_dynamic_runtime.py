"""`dynamic: runtime`, and dynamic templates that make runtime fields."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping, MappingLimits
from tests.unit.search.mapping.support import SPACES

LONG, KEYWORD = {"type": "long"}, {"type": "keyword"}


def grown(body: dict[str, Any], *documents: dict[str, Any], **limits: Any) -> Mapping:
    mapping = Mapping.of(body, SPACES, MappingLimits(**limits))
    for source in documents:
        _, mapping = mapping.parse(source, "1")
    return mapping


def test_leaves_become_runtime_fields_and_objects_nothing() -> None:
    source = {"a": {"b": [1, 2], "c": [{"d": "x"}, {"d": "y", "e": None}]}, "v": [1.5] * 130, "n": [None]}
    shown = grown({"dynamic": "runtime"}, source).as_json()
    kinds = {"a.b": "long", "a.c.d": "keyword", "v": "double"}
    assert shown == {"dynamic": "runtime", "runtime": {name: {"type": kind} for name, kind in kinds.items()}}


def test_a_document_without_new_fields_changes_nothing() -> None:
    source = {"a": {"b": 1}, "c": "x"}
    mapping = grown({"dynamic": "runtime"}, source)
    others: list[dict[str, Any]] = [source, {"a.b": 7}, {"a": {"b": "other"}}, {"a": None, "c": []}]
    for again in others:
        assert mapping.parse(again, "1")[1] is mapping
    grows = mapping.parse({"c": {"d": 1}}, "1")[1]
    assert grows.as_json()["runtime"]["c.d"] == LONG


def test_it_holds_for_an_object_and_is_inherited() -> None:
    body = {"dynamic": "runtime", "properties": {"o": {"dynamic": "true", "properties": {}}}}
    shown = grown(body, {"o": {"a": 1, "p": {"q": 1}}, "b": 1}).as_json()
    assert shown["runtime"] == {"b": LONG}
    assert shown["properties"]["o"]["properties"] == {"a": LONG, "p": {"properties": {"q": LONG}}}
    body = {"properties": {"o": {"dynamic": "runtime", "properties": {"n": {"type": "nested"}}}}}
    shown = grown(body, {"o": {"n": [{"a": 1}], "p": {"q": 1}}}).as_json()
    assert shown["runtime"] == {"o.n.a": LONG, "o.p.q": LONG}


def test_strings_are_looked_at() -> None:
    body = {"dynamic": "runtime", "numeric_detection": True}
    shown = grown(body, {"a": "1.5", "b": "7", "c": "2020-01-01", "d": "x"}).as_json()["runtime"]
    assert {name: one["type"] for name, one in shown.items()} == {
        "a": "double",
        "b": "long",
        "c": "date",
        "d": "keyword",
    }


TEMPLATES = [
    {"strings": {"match": "s_*", "match_mapping_type": "string", "runtime": {}}},
    {"addresses": {"match": "ip_*", "runtime": {"type": "ip"}}},
    {"noted": {"match": "m_*", "runtime": {"type": "{dynamic_type}", "meta": {"of": "{name}"}}}},
    {"deep": {"path_match": "deep.*", "match_mapping_type": "*", "runtime": {"type": "keyword"}}},
    {"kept": {"match": "k_*", "mapping": KEYWORD}},
]


def test_templates_make_them() -> None:
    source = {"s_a": "x", "ip_a": "::1", "m_a": 1, "deep": {"x": 1, "y": {"z": 2}}, "k_a": "x", "s_b": 5}
    shown = grown({"dynamic_templates": TEMPLATES}, source).as_json()
    assert shown["runtime"] == {
        "deep.x": KEYWORD,
        "deep.y.z": KEYWORD,
        "ip_a": {"type": "ip"},
        "m_a": {"type": "long", "meta": {"of": "m_a"}},
        "s_a": KEYWORD,
    }
    objects = {"deep": {"properties": {"y": {"type": "object"}}}}
    assert shown["properties"] == {**objects, "k_a": KEYWORD, "s_b": LONG}


def test_a_template_may_index_a_field_of_a_runtime_object() -> None:
    shown = grown(
        {"dynamic": "runtime", "dynamic_templates": TEMPLATES}, {"o": {"k_a": "x", "z": 1}}
    ).as_json()
    assert shown["properties"] == {"o": {"properties": {"k_a": KEYWORD}}}
    assert shown["runtime"] == {"o.z": LONG}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (
            {"match": "a", "runtime": {}, "mapping": {}},
            "mapping and runtime cannot be both specified in the same dynamic template [t]",
        ),
        (
            {"match_mapping_type": "object", "runtime": {}},
            "Dynamic template [t] defines a runtime field but type [object] is not supported as runtime "
            "field",
        ),
        (
            {"match": "a", "runtime": {"type": "text"}},
            'dynamic template [t] has invalid content [{"match":"a","runtime":{"type":"text"}}], attempted '
            "to validate it with the following match_mapping_type: [string, long, double, boolean, date]",
        ),
        ({"match": "a"}, "template [t] must have either mapping or runtime set"),
    ],
)
def test_templates_that_cannot_be(template: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        grown({"dynamic_templates": [{"t": template}]})
    assert caught.value.reason == f"Failed to parse mapping: {reason}"


def test_they_count_as_fields() -> None:
    with pytest.raises(SearchError, match="Limit of total fields"):
        grown({"properties": {"a": LONG}, "runtime": {"r": LONG}}, total_fields=1)
    with pytest.raises(SearchError, match="Limit of total fields"):
        grown({"dynamic": "runtime"}, {"a": 1, "b": 2}, total_fields=1)
    mapping = grown({"dynamic": "runtime"}, total_fields=1, ignores_beyond=True)
    document, mapping = mapping.parse({"a": 1, "b": 2}, "1")
    assert (list(mapping.as_json()["runtime"]), document.ignored) == (["a"], ["b"])


def test_an_index_that_has_a_wrong_template_is_opened() -> None:
    """Earlier versions took such ones."""
    body = {"dynamic_templates": [{"t": {"match": "a", "runtime": {"type": "text"}}}]}
    mapping = Mapping.stored(body, SPACES)
    assert mapping.as_json() == body
    _, grows = mapping.parse({"b": 1}, "1")
    assert grows.field("b") is not None
    with pytest.raises(SearchError, match="No handler for type"):
        mapping.parse({"a": "x"}, "1")
