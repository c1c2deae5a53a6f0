from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.fields import Storage
from graphdb.search.mapping import Mapping, MappingLimits
from tests.unit.search.mapping.support import SPACES

STRING = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


def mapping(limits: MappingLimits | None = None, **properties: Any) -> Mapping:
    return Mapping.of({"properties": properties}, SPACES, limits)


def test_shown_as_it_was_given_without_defaults_and_sorted() -> None:
    body = {
        "dynamic": False,
        "_meta": {"x": 1},
        "properties": {
            "z.y": {"type": "text", "analyzer": "whitespace"},
            "a": {"type": "keyword", "index": True, "doc_values": "false", "ignore_above": 10},
            "o": {"dynamic": "strict", "properties": {}},
            "n": {"type": "nested", "properties": {"b": {"type": "date", "format": "yyyy"}}},
        },
    }
    assert Mapping.of(body, SPACES).as_json() == {
        "dynamic": "false",
        "_meta": {"x": 1},
        "properties": {
            "a": {"type": "keyword", "doc_values": False, "ignore_above": 10},
            "n": {"type": "nested", "properties": {"b": {"type": "date", "format": "yyyy"}}},
            "o": {"type": "object", "dynamic": "strict"},
            "z": {"properties": {"y": {"type": "text", "analyzer": "whitespace"}}},
        },
    }
    assert Mapping.of({}, SPACES).as_json() == {}


REFUSED = {
    "no type": ({"a": {}}, "No type specified for field [a]"),
    "unknown type": ({"a": {"type": "foo"}}, "The mapper type [foo] declared on field [a] does not exist."),
    "absent type": (
        {"a": {"type": "semantic_text"}},
        "The mapper type [semantic_text] declared on field [a] does not exist: no model runs here",
    ),
    "unknown parameter": (
        {"a": {"type": "long", "analyzer": "x"}},
        "unknown parameter [analyzer] on mapper [a] of type [long]",
    ),
    "analyzer": (
        {"a": {"type": "text", "analyzer": "q"}},
        "analyzer [q] has not been configured in mappings",
    ),
    "normalizer": ({"a": {"type": "keyword", "normalizer": "q"}}, "normalizer [q] not found for field [a]"),
    "scaling factor": ({"a": {"type": "scaled_float"}}, "Field [scaling_factor] is required"),
    "dims": (
        {"a": {"type": "dense_vector", "dims": 4097}},
        "should be in the range [1, 4096] but was [4097]",
    ),
    "object as multi-field": (
        {"a": {"type": "text", "fields": {"b": {"type": "nested"}}}},
        "Type [nested] cannot be used in multi field",
    ),
    "multi-field with a dot": (
        {"a": {"type": "text", "fields": {"b.c": {"type": "text"}}}},
        "Field name [b.c] which is a multi field of [a] cannot contain '.'",
    ),
    "null value": (
        {"a": {"type": "long", "null_value": "x"}},
        'Error parsing [null_value] on field [a]: For input string: "x"',
    ),
    "date format": ({"a": {"type": "date", "format": "yyyy-bb"}}, "Unknown pattern letter: b"),
    "alias to nowhere of its own kind": (
        {"a": {"type": "alias", "path": "b"}, "b": {"type": "alias", "path": "a"}},
        "an alias must refer to an existing field in the mappings",
    ),
}


@pytest.mark.parametrize(("properties", "reason"), REFUSED.values(), ids=REFUSED)
def test_mappings_that_cannot_be(properties: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        mapping(**properties)
    assert caught.value.kind == "mapper_parsing_exception"
    assert reason in caught.value.reason


def test_unknown_root_parameter_and_the_error_inside() -> None:
    with pytest.raises(SearchError) as caught:
        Mapping.of({"a": {"type": "text"}}, SPACES)
    assert caught.value.reason.startswith(
        "Failed to parse mapping: Root mapping definition has unsupported parameters:  [a :"
    )
    assert caught.value.cause is not None
    assert caught.value.cause.kind == "mapper_parsing_exception"


CONFLICTS = {
    "type": ({"t": {"type": "keyword"}}, "mapper [t] cannot be changed from type [text] to [keyword]"),
    "multi-field": (
        {"t": {"type": "text", "analyzer": "whitespace", "fields": {"k": {"type": "long"}}}},
        "mapper [t.k] cannot be changed from type [keyword] to [long]",
    ),
    "field to object": (
        {"t": {"properties": {}}},
        "can't merge a non object mapping [t] with an object mapping",
    ),
    "object to field": (
        {"o": {"type": "long"}},
        "can't merge a non object mapping [o] with an object mapping",
    ),
    "to nested": ({"o": {"type": "nested"}}, "can't merge a non-nested mapping [o] with a nested mapping"),
    "enabled": (
        {"o": {"enabled": False}},
        "the [enabled] parameter can't be updated for the object mapping [o]",
    ),
    "parameters": (
        {"t": {"type": "text", "index": False}},
        "Mapper for [t] conflicts with existing mapper:"
        "\n\tCannot update parameter [index] from [true] to [false]"
        "\n\tCannot update parameter [analyzer] from [whitespace] to [default]",
    ),
}


@pytest.mark.parametrize(("update", "reason"), CONFLICTS.values(), ids=CONFLICTS)
def test_conflicts(update: dict[str, Any], reason: str) -> None:
    there = mapping(
        t={"type": "text", "analyzer": "whitespace", "fields": {"k": {"type": "keyword"}}},
        o={"properties": {"a": {"type": "long"}}},
    )
    with pytest.raises(SearchError) as caught:
        there.merged({"properties": update})
    assert (caught.value.kind, caught.value.reason) == ("illegal_argument_exception", reason)


def test_merging_adds_and_replaces_what_may_change() -> None:
    there = mapping(k={"type": "keyword", "ignore_above": 5}, v={"type": "dense_vector"})
    update = {
        "dynamic": "strict",
        "properties": {
            "k": {"type": "keyword", "fields": {"t": {"type": "text"}}},
            "v": {"type": "dense_vector", "dims": 3},
            "o.x": {"type": "long"},
        },
    }
    assert there.merged(update).as_json() == {
        "dynamic": "strict",
        "properties": {
            "k": {"type": "keyword", "fields": {"t": {"type": "text"}}},
            "o": {"properties": {"x": {"type": "long"}}},
            "v": {
                "type": "dense_vector", "dims": 3, "index": True, "similarity": "cosine",
                "index_options": INT8,
            },
        },
    }  # fmt: skip


def test_fields_aliases_and_patterns() -> None:
    there = mapping(
        user={"properties": {"name": STRING, "age": {"type": "long"}}},
        years={"type": "alias", "path": "user.age"},
        n={"type": "nested", "properties": {"o": {"properties": {"x": {"type": "ip"}}}}},
        tags={"type": "flattened"},
    )
    age, inner, key = there.field("years"), there.field("n.o.x"), there.field("tags.a.b")
    assert age is not None
    assert (age.path, age.type, age.storage) == ("user.age", "long", Storage.INTS)
    assert inner is not None
    assert inner.nested == "n"
    assert key is not None
    assert (key.path, key.storage) == ("tags.a.b", Storage.TERMS)
    assert there.field("user.none") is None
    assert [spec.path for spec in there.match("user.*")] == ["user.age", "user.name", "user.name.keyword"]
    assert [spec.path for spec in there.match("years")] == ["user.age"]
    assert there.names("*a*s") == ["tags", "years"]
    assert there.match("user") == []


def test_field_mappings() -> None:
    there = mapping(a={"properties": {"b": STRING}})
    keyword = {"type": "keyword", "ignore_above": 256}
    assert there.field_mappings("a.*") == {
        "a.b": {"full_name": "a.b", "mapping": {"b": STRING}},
        "a.b.keyword": {"full_name": "a.b.keyword", "mapping": {"keyword": keyword}},
    }


@pytest.mark.parametrize(
    ("limits", "properties", "reason"),
    [
        ({"total_fields": 2}, {"a": {"type": "text", "fields": {"b": {"type": "text"}}}, "c": {"type": "ip"}},
         "Limit of total fields [2] has been exceeded"),
        ({"depth": 1}, {"a": {"properties": {"b": {"type": "ip"}}}},
         "Limit of mapping depth [1] has been exceeded due to object field [a]"),
        ({"nested_fields": 1}, {"a": {"type": "nested"}, "b": {"type": "nested"}},
         "Limit of nested fields [1] has been exceeded"),
        ({"field_name_length": 2}, {"abc": {"type": "ip"}},
         "Field name [abc] is longer than the limit of [2] characters"),
    ],
)  # fmt: skip
def test_limits(limits: dict[str, Any], properties: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        mapping(MappingLimits(**limits), **properties)
    assert (caught.value.kind, caught.value.reason) == ("illegal_argument_exception", reason)


def test_limits_from_settings() -> None:
    assert MappingLimits.of({"total_fields": {"limit": "7"}}) == MappingLimits(total_fields=7)
    with pytest.raises(SearchError):
        MappingLimits.of({"depth": {"limit": "many"}})


INT8 = {"type": "int8_hnsw", "m": 16, "ef_construction": 100}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"dims": 3}, {"index": True, "similarity": "cosine", "index_options": INT8}),
        ({"dims": 384}, {"index": True, "similarity": "cosine", "index_options": INT8}),
        ({}, {"index": True, "similarity": "cosine", "index_options": INT8}),
        ({"dims": 3, "element_type": "byte"}, {"index": True, "similarity": "cosine"}),
        ({"dims": 3, "index": False}, {"index": False}),
        (
            {"similarity": "l2_norm", "index_options": {"type": "hnsw", "m": 8}},
            {"index": True, "index_options": {"type": "hnsw", "m": 8, "ef_construction": 100}},
        ),
        (
            {"index_options": {"type": "int4_flat"}},
            {
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "int4_flat", "confidence_interval": 0.0},
            },
        ),
    ],
)
def test_vectors_show_their_defaults_and_take_them_back(
    given: dict[str, object], shown: dict[str, object]
) -> None:
    definition = {"type": "dense_vector", **given}
    there = mapping(v=definition)
    answer = there.as_json()
    assert answer["properties"]["v"] == definition | shown
    assert there.field_mappings("v")["v"]["mapping"]["v"] == definition | shown
    assert there.merged(answer).as_json() == answer
    again = mapping(v=answer["properties"]["v"])  # as an index is opened
    assert again.merged({"properties": {"v": definition}}).as_json() == answer
