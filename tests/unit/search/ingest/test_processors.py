"""Each processor on a document, what it refuses, and what is not to be read at all."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.ingest.document import Dropped, IngestDocument
from graphdb.search.ingest.pipeline import Definitions, Pipeline, Traced
from graphdb.search.ingest.processors import PROCESSORS

NOW = "2024-01-02T03:04:05.000Z"


def document(source: dict[str, Any]) -> IngestDocument:
    return IngestDocument(source, {"_index": "logs", "_id": "1"}, {"timestamp": NOW})


def pipeline(*processors: Any, others: dict[str, Any] | None = None, **members: Any) -> Pipeline:
    return Definitions(others or {}, {}).read("p", {"processors": list(processors), **members})


def run(source: dict[str, Any], *processors: Any, others: dict[str, Any] | None = None) -> IngestDocument:
    made = document(source)
    pipeline(*processors, others=others).run(made)
    return made


def refused(source: dict[str, Any], *processors: Any, others: dict[str, Any] | None = None) -> str:
    with pytest.raises(SearchError) as caught:
        run(source, *processors, others=others)
    return caught.value.reason


@pytest.mark.parametrize(
    ("processor", "before", "after"),
    [
        (
            {"set": {"field": "a.b", "value": "{{c}}-{{{_ingest.timestamp}}}"}},
            {"c": 1},
            {"a": {"b": f"1-{NOW}"}, "c": 1},
        ),
        ({"set": {"field": "a", "copy_from": "c"}}, {"c": {"d": [1]}}, {"a": {"d": [1]}, "c": {"d": [1]}}),
        ({"set": {"field": "a", "value": 2, "override": False}}, {"a": 1}, {"a": 1}),
        ({"set": {"field": "a", "value": "{{b}}", "ignore_empty_value": True}}, {}, {}),
        ({"append": {"field": "a", "value": [2, "{{b}}"]}}, {"a": 1, "b": "x"}, {"a": [1, 2, "x"], "b": "x"}),
        ({"append": {"field": "a", "value": [1, 2], "allow_duplicates": False}}, {"a": [1]}, {"a": [1, 2]}),
        ({"set": {"field": "a", "copy_from": "b", "ignore_empty_value": True}}, {"a": 1}, {"a": 1}),
        ({"json": {"field": "a", "strict_json_parsing": False}}, {"a": " 123 foo"}, {"a": 123}),
        (
            {"json": {"field": "a", "allow_duplicate_keys": True}},
            {"a": '{"b": 1, "b": 2}'},
            {"a": {"b": 2}},
        ),
        (
            {"kv": {"field": "{{f}}", "target_field": "{{t}}", "field_split": " ", "value_split": "="}},
            {"f": "x", "x": "a=b c=d", "t": "y"},
            {"f": "x", "x": "a=b c=d", "t": "y", "y": {"a": "b", "c": "d"}},
        ),
        ({"remove": {"field": ["a", "b.0"]}}, {"a": 1, "b": [1, 2]}, {"b": [2]}),
        ({"remove": {"keep": ["a"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"remove": {"field": "a", "ignore_missing": True}}, {"b": 1}, {"b": 1}),
        ({"rename": {"field": "a.b", "target_field": "c"}}, {"a": {"b": 1}}, {"a": {}, "c": 1}),
        ({"convert": {"field": "a", "type": "integer"}}, {"a": ["1", "0x10"]}, {"a": [1, 16]}),
        (
            {"convert": {"field": "a", "type": "boolean", "target_field": "b"}},
            {"a": "TRUE"},
            {"a": "TRUE", "b": True},
        ),
        ({"convert": {"field": "a", "type": "auto"}}, {"a": "1.5"}, {"a": 1.5}),
        ({"convert": {"field": "a", "type": "string"}}, {"a": 1}, {"a": "1"}),
        ({"lowercase": {"field": "a"}}, {"a": ["A", "B"]}, {"a": ["a", "b"]}),
        ({"uppercase": {"field": "a"}}, {"a": "x"}, {"a": "X"}),
        ({"trim": {"field": "a"}}, {"a": " x "}, {"a": "x"}),
        (
            {"gsub": {"field": "a", "pattern": r"\.(\d)", "replacement": "-$1"}},
            {"a": "1.2.3"},
            {"a": "1-2-3"},
        ),
        ({"split": {"field": "a", "separator": r"\s+"}}, {"a": "x  y z "}, {"a": ["x", "y", "z"]}),
        (
            {"split": {"field": "a", "separator": ",", "preserve_trailing": True}},
            {"a": "x,,"},
            {"a": ["x", "", ""]},
        ),
        ({"join": {"field": "a", "separator": "-"}}, {"a": ["x", 1, True]}, {"a": "x-1-true"}),
        ({"sort": {"field": "a", "order": "desc"}}, {"a": [1, 3, 2]}, {"a": [3, 2, 1]}),
        ({"json": {"field": "a", "target_field": "b"}}, {"a": '{"c":1}'}, {"a": '{"c":1}', "b": {"c": 1}}),
        ({"json": {"field": "a", "add_to_root": True}}, {"a": '{"c":1}'}, {"a": '{"c":1}', "c": 1}),
        ({"html_strip": {"field": "a"}}, {"a": "<b>x</b>"}, {"a": "x"}),
        ({"bytes": {"field": "a"}}, {"a": "1.5kb"}, {"a": 1536}),
        ({"urldecode": {"field": "a"}}, {"a": "a%20b+c"}, {"a": "a b c"}),
        ({"dot_expander": {"field": "a.b"}}, {"a.b": 1, "a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"dot_expander": {"field": "*"}}, {"a.b": 1, "c.d": 2}, {"a": {"b": 1}, "c": {"d": 2}}),
        ({"uri_parts": {"field": "a"}}, {"a": "http://u:p@h.example:80/x/y.gif?q=1#f"}, None),
        (
            {"csv": {"field": "a", "target_fields": ["x", "y", "z"]}},
            {"a": 'p,"q,r",'},
            {"a": 'p,"q,r",', "x": "p", "y": "q,r"},
        ),
        (
            {"csv": {"field": "a", "target_fields": ["x", "y"], "trim": True, "quote": "'"}},
            {"a": "p , ' q, r'"},
            {"a": "p , ' q, r'", "x": "p", "y": "q, r"},
        ),
        (
            {"kv": {"field": "a", "field_split": " ", "value_split": "="}},
            {"a": "x=1 y=2 x=3"},
            {"a": "x=1 y=2 x=3", "x": ["1", "3"], "y": "2"},
        ),
        (
            {
                "dissect": {
                    "field": "a",
                    "pattern": "%{x} [%{+t/2} %{+t/1}] %{?skip}:%{y->} %{z}",
                    "append_separator": "_",
                }
            },
            {"a": "p [b a] s:q   r"},
            {"a": "p [b a] s:q   r", "x": "p", "t": "a_b", "y": "q", "z": "r"},
        ),
        (
            {
                "grok": {
                    "field": "a",
                    "patterns": ["%{NOPE}", "%{IP:ip} %{NUMBER:n:int}"],
                    "pattern_definitions": {"NOPE": "nope"},
                }
            },
            {"a": "10.0.0.1 12"},
            {"a": "10.0.0.1 12", "ip": "10.0.0.1", "n": 12},
        ),
        (
            {"date": {"field": "a", "formats": ["UNIX", "dd/MM/yyyy"]}},
            {"a": "02/01/2024"},
            {"a": "02/01/2024", "@timestamp": "2024-01-02T00:00:00.000Z"},
        ),
        (
            {"date": {"field": "a", "formats": ["UNIX_MS"], "timezone": "Europe/Paris"}},
            {"a": 0},
            {"a": 0, "@timestamp": "1970-01-01T01:00:00.000+01:00"},
        ),
        (
            {"foreach": {"field": "a", "processor": {"uppercase": {"field": "_ingest._value"}}}},
            {"a": ["x", "y"]},
            {"a": ["X", "Y"]},
        ),
        (
            {
                "foreach": {
                    "field": "a",
                    "processor": {"set": {"field": "_ingest._value", "value": "{{_ingest._key}}"}},
                }
            },
            {"a": {"x": 1}},
            {"a": {"x": "x"}},
        ),
        ({"script": {"source": "ctx.b = ctx.a * params.n", "params": {"n": 3}}}, {"a": 2}, {"a": 2, "b": 6}),
        ({"set": {"field": "b", "value": 1, "if": "ctx.a != null && ctx.a > 1"}}, {"a": 1}, {"a": 1}),
        ({"set": {"field": "b", "value": 1, "if": "ctx._index == 'logs'"}}, {}, {"b": 1}),
    ],
)
def test_what_a_processor_does(processor: Any, before: dict[str, Any], after: dict[str, Any] | None) -> None:
    found = run(before, processor).source
    if after is not None:
        assert found == after
    else:
        assert found["url"] == {
            "domain": "h.example", "path": "/x/y.gif", "scheme": "http", "fragment": "f", "query": "q=1",
            "port": 80, "extension": "gif", "user_info": "u:p", "username": "u", "password": "p",
            "original": "http://u:p@h.example:80/x/y.gif?q=1#f",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("processor", "source", "reason"),
    [
        ({"rename": {"field": "a", "target_field": "b"}}, {}, "field [a] doesn't exist"),
        ({"rename": {"field": "a", "target_field": "b"}}, {"a": 1, "b": 2}, "field [b] already exists"),
        ({"remove": {"field": "a.b"}}, {"a": {}}, "field [b] not present as part of path [a.b]"),
        (
            {"set": {"field": "a.b", "value": 1}},
            {"a": "x"},
            "cannot set [b] with parent object of type [java.lang.String] as part of path [a.b]",
        ),
        ({"convert": {"field": "a", "type": "integer"}}, {"a": "x"}, "unable to convert [x] to integer"),
        (
            {"convert": {"field": "a", "type": "integer"}},
            {"a": 2**31},
            "unable to convert [2147483648] to integer",
        ),
        (
            {"lowercase": {"field": "a"}},
            {"a": 1},
            "field [a] of type [java.lang.Long] cannot be cast to [java.lang.String]",
        ),
        ({"date": {"field": "a", "formats": ["yyyy"]}}, {"a": "x"}, "unable to parse date [x]"),
        (
            {"grok": {"field": "a", "patterns": ["%{INT:x}"]}},
            {"a": "x"},
            "Provided Grok expressions do not match field value: [x]",
        ),
        ({"fail": {"message": "no {{a}}"}}, {"a": 1}, "no 1"),
        ({"foreach": {"field": "a", "processor": {"fail": {"message": "x"}}}}, {"a": [1]}, "x"),
        (
            {"pipeline": {"name": "none"}},
            {},
            "Pipeline processor configured for non-existent pipeline [none]",
        ),
    ],
)
def test_what_a_processor_refuses(processor: Any, source: dict[str, Any], reason: str) -> None:
    assert refused(source, processor) == reason


@pytest.mark.parametrize(
    ("processor", "reason"),
    [
        ({"set": {"value": 1}}, "[field] required property is missing"),
        ({"colour": {}}, "No processor type exists with name [colour]"),
        (
            {"trim": {"field": "a", "x": 1}},
            "processor [trim] doesn't support one or more provided configuration parameters [x]",
        ),
        ({"convert": {"field": "a", "type": "x"}}, "[type] type [x] not supported, cannot convert field."),
        ({"grok": {"field": "a", "patterns": ["%{COLOUR}"]}}, None),
        ({"gsub": {"field": "a", "pattern": "(", "replacement": ""}}, None),
        ({"set": {"field": "a", "value": 1, "if": "ctx.a ="}}, "compile error"),
        (
            {"geoip": {"field": "a"}},
            "the processor [geoip] is not supported: no database of IP addresses comes with this service; "
            "look addresses up before documents are sent",
        ),
        ({"set": {}, "trim": {}}, "a processor must be an object with one member, its type"),
    ],
)
def test_definitions_that_cannot_be(processor: Any, reason: str | None) -> None:
    with pytest.raises(SearchError) as caught:
        pipeline(processor)
    assert reason is None or caught.value.reason == reason


def test_json_that_a_processor_refuses() -> None:
    assert refused({"a": '{"b": {"c": 1, "c": 2}}'}, {"json": {"field": "a"}}) == "Duplicate field 'c'"
    assert run({"a": '{"b": "x:y"}'}, {"json": {"field": "a"}}).source == {"a": {"b": "x:y"}}
    assert "is no JSON" in refused({"a": "123 foo"}, {"json": {"field": "a"}})
    lenient = {"json": {"field": "a", "strict_json_parsing": False}}
    for text in ("foo", "", "[" * 100_000):
        assert "is no JSON" in refused({"a": text}, lenient)


def test_every_method_of_a_fingerprint_is_its_own() -> None:
    made = {
        method: run({"a": 1}, {"fingerprint": {"fields": ["a"], "method": method}}).source["fingerprint"]
        for method in ("MD5", "SHA-1", "SHA-256", "SHA-512", "MurmurHash3")
    }
    assert [len(one) for one in made.values()] == [24, 28, 44, 88, 24]
    assert len(set(made.values())) == 5


def test_every_processor_names_itself_in_an_error() -> None:
    for kind in PROCESSORS:
        with pytest.raises(SearchError) as caught:
            pipeline({kind: {"tag": "t", "nothing": 1}})
        assert caught.value.status == 400


def test_failures_are_handled_where_that_is_said() -> None:
    fails = {"fail": {"message": "bad", "tag": "t"}}
    shown = {
        "set": {"field": "e", "value": "{{_ingest.on_failure_message}} {{_ingest.on_failure_processor_tag}}"}
    }
    handled = {"fail": {**fails["fail"], "on_failure": [shown]}}
    assert run({}, handled).source == {"e": "bad t"}
    made = document({})
    pipeline(fails, on_failure=[shown]).run(made)
    assert (made.source, "on_failure_message" in made.ingest) == ({"e": "bad t"}, False)
    after = {"set": {"field": "x", "value": 1}}
    assert run({}, {"fail": {"message": "x", "ignore_failure": True}}, after).source == {"x": 1}
    with pytest.raises(SearchError) as caught:
        run({}, fails)
    assert dict(caught.value.metadata) == {"processor_type": "fail", "processor_tag": "t"}


def test_pipelines_call_one_another() -> None:
    inner = {"processors": [{"set": {"field": "by", "value": "{{_ingest.pipeline}}"}}]}
    assert run({}, {"pipeline": {"name": "inner"}}, others={"inner": inner}).source == {"by": "inner"}
    loop = {"processors": [{"pipeline": {"name": "loop"}}]}
    assert refused({}, {"pipeline": {"name": "loop"}}, others={"loop": loop}) == (
        "Cycle detected for pipeline: loop"
    )
    assert run({}, {"pipeline": {"name": "x", "ignore_missing_pipeline": True}}).source == {}


def test_a_document_is_moved_and_dropped() -> None:
    moved = run(
        {"to": "b"}, {"set": {"field": "_index", "value": "logs-{{to}}"}}, {"remove": {"field": "_id"}}
    )
    assert moved.meta == {"_index": "logs-b"}
    daily = {"date_index_name": {"field": "d", "index_name_prefix": "x-", "date_rounding": "M"}}
    assert run({"d": "2024-05-06T07:08:09Z"}, daily).meta["_index"] == "x-2024-05-01"
    with pytest.raises(Dropped):
        run({}, {"drop": {"if": "true"}})


def test_what_grows_without_end_is_ended() -> None:
    double = {"set": {"field": "a", "value": "{{a}}{{a}}"}}
    assert "more than" in refused({"a": "x" * 1000}, *[double] * 60)
    nest = {"set": {"field": "a.a", "copy_from": "a"}}
    wide = {"a": {"x" * 100: ["y" * 1000] * 100}}
    assert "larger than" in refused(wide, *[nest] * 60)
    inner: Any = {"trim": {"field": "_ingest._value", "ignore_missing": True}}
    for _ in range(3):
        inner = {"foreach": {"field": "a", "processor": inner}}
    assert "more than" in refused({"a": [" "] * 100}, inner)
    for _ in range(60):
        inner = {"foreach": {"field": "a", "processor": inner}}
    with pytest.raises(SearchError, match="too deep"):
        pipeline(inner)


def test_a_trace_has_each_step() -> None:
    steps: list[Traced] = []
    made = document({"a": 1})
    processors = [
        {"set": {"field": "b", "value": 1}},
        {"set": {"field": "b", "value": 2, "if": "false"}},
        {"fail": {"message": "x", "ignore_failure": True}},
        {"drop": {}},
    ]
    with pytest.raises(Dropped):
        pipeline(*processors).run(made, steps.append)
    assert [step.status for step in steps] == ["success", "skipped", "error_ignored", "dropped"]
    assert steps[0].document is not None
    assert steps[0].document.source == {"a": 1, "b": 1}


# Bounds.


def test_processors_make_only_so_much_of_a_document() -> None:
    many = [
        {"set": {"field": f"f{number}", "value": "{{{a}}}", "ignore_failure": True}} for number in range(60)
    ]
    assert len(run({"a": "x" * 1_000_000}, *many).source) < 30
    for grown in (
        {"gsub": {"field": "a", "pattern": "(.*)", "replacement": "$1" * 500}},
        {"join": {"field": "b", "separator": "x" * 1_000_000}},
    ):
        assert "makes more than" in refused({"a": "x" * 1_000_000, "b": ["y"] * 1_000}, grown)


def test_what_is_nested_too_deeply_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(500):
        nested = {"n": nested}
    assert "nested too deeply" in refused({"a": nested}, {"set": {"field": "b", "value": "{{a}}"}})
    assert "is not valid" in refused({}, {"set": {"field": ".".join(["a"] * 101), "value": 1}})


@pytest.mark.parametrize(
    ("given", "kind"), [("1_000", "integer"), ("0" * 45 + "5", "long"), ("1e999", "double"), ("nan", "float")]
)
def test_texts_that_are_no_numbers(given: str, kind: str) -> None:
    assert "unable to convert" in refused({"a": given}, {"convert": {"field": "a", "type": kind}})


def test_an_instant_too_far_away_is_no_date() -> None:
    assert "unable to parse date" in refused({"a": "1e300"}, {"date": {"field": "a", "formats": ["UNIX"]}})


def test_a_condition_changes_nothing_and_its_failure_is_the_processors() -> None:
    changing = {"set": {"field": "c", "value": 1, "if": "ctx.a.b = 5; return false"}}
    assert run({"a": {"b": 1}}, changing).source == {"a": {"b": 1}}
    failing = {"set": {"field": "c", "value": 1, "if": "ctx.x.y == 1", "ignore_failure": True}}
    assert run({"a": 1}, failing).source == {"a": 1}


def test_many_values_without_duplicates_are_appended_at_once() -> None:
    """Each compared with each would take minutes, which no deadline could end."""
    many = {"append": {"field": "a", "value": list(range(40_000)) * 2, "allow_duplicates": False}}
    assert run({"a": list(range(30_000))}, many).source["a"] == list(range(40_000))
