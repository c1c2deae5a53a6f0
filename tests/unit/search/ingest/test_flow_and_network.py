"""Processors of network traffic, `redact`, and those that end a pipeline."""

from typing import Any

import pytest

from tests.unit.search.ingest.test_processors import document, pipeline, refused, run


def flow(source: str, destination: str, transport: Any, *ports: int) -> dict[str, Any]:
    first, second = ports if ports else (None, None)
    return {
        "source": {"ip": source, "port": first},
        "destination": {"ip": destination, "port": second},
        "network": {"transport": transport},
    }


def icmp(source: str, destination: str, transport: str, kind: int, code: int) -> dict[str, Any]:
    return {**flow(source, destination, transport), "icmp": {"type": kind, "code": code}}


@pytest.mark.parametrize(
    ("source", "seed", "expected"),
    [
        # those of the specification's own examples
        (flow("128.232.110.120", "66.35.250.204", "tcp", 34855, 80), 0, "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
        (flow("66.35.250.204", "128.232.110.120", "TCP", 80, 34855), 0, "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
        (flow("128.232.110.120", "66.35.250.204", 6, 34855, 80), 1, "1:3V71V58M3Ksw/yuFALMcW0LAHvc="),
        (flow("192.168.1.52", "8.8.8.8", "udp", 54585, 53), 0, "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
        (icmp("192.168.0.89", "192.168.0.1", "icmp", 8, 0), 0, "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
    ],
)
def test_the_id_of_a_flow(source: dict[str, Any], seed: int, expected: str) -> None:
    made = run(source, {"community_id": {"seed": seed}})
    assert made.source["network"]["community_id"] == expected


def test_flows_that_have_no_id() -> None:
    assert "community_id" not in run({"network": {}}, {"community_id": {}}).source["network"]
    assert (
        refused({}, {"community_id": {"ignore_missing": False}}) == "unable to construct flow from document"
    )
    assert refused(flow("1.1.1.1", "1.1.1.2", "tcp", 0, 1), {"community_id": {}}) == "invalid source port [0]"
    assert "IP string" in refused(flow("1.1.1", "1.1.1.2", "tcp", 1, 1), {"community_id": {}})
    assert "transport" in refused(flow("1.1.1.1", "1.1.1.2", "x", 1, 1), {"community_id": {}})


@pytest.mark.parametrize(
    ("source", "destination", "networks", "expected"),
    [
        ("192.168.1.1", "10.0.0.1", ["private"], "internal"),
        ("192.168.1.1", "8.8.8.8", ["private"], "outbound"),
        ("8.8.8.8", "192.168.1.1", ["10.0.0.0/8", "{{mine}}"], "inbound"),
        ("8.8.8.8", "8.8.4.4", ["private", "loopback"], "external"),
        ("::1", "fe80::1", ["loopback", "link_local_unicast"], "internal"),
        ("8.8.8.8", "10.0.0.1", ["public"], "outbound"),
        ("ff02::1", "224.0.0.1", ["link_local_multicast"], "internal"),
        ("0.0.0.0", "8.8.8.8", ["unspecified"], "outbound"),
    ],
)
def test_the_direction_of_traffic(source: str, destination: str, networks: list[str], expected: str) -> None:
    given = {"source": {"ip": source}, "destination": {"ip": destination}, "mine": "192.168.0.0/16"}
    made = run(given, {"network_direction": {"internal_networks": networks}})
    assert made.source["network"]["direction"] == expected
    given |= {"nets": networks}
    assert run(given, {"network_direction": {"internal_networks_field": "nets"}}).get(
        "network.direction"
    ) == (expected)


def test_directions_that_cannot_be() -> None:
    assert "required" in refused({}, {"network_direction": {}})
    networks = {"internal_networks": ["private"], "ignore_missing": False}
    assert "unable to calculate" in refused({}, {"network_direction": networks})
    given = {"source": {"ip": "1.1.1.1"}, "destination": {"ip": "1.1.1.1"}}
    assert "not a network" in refused(given, {"network_direction": {"internal_networks": ["mine"]}})


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        (
            {"patterns": ["%{EMAILADDRESS:EMAIL}", "%{IP:IP_ADDRESS}"]},
            "ada@example.org from 10.0.0.1, 10.0.0.2",
            "<EMAIL> from <IP_ADDRESS>, <IP_ADDRESS>",
        ),
        ({"patterns": ["%{CARD:CARD}"], "pattern_definitions": {"CARD": r"\d{4}-\d{4}"}, "prefix": "[",
          "suffix": "]"}, "1234-5678", "[CARD]"),
        ({"patterns": ["%{INT:SHORT}", r"(?<LONG>x\d+y)"]}, "ax12y", "a<LONG>"),
        ({"patterns": ["%{IP:IP}"]}, "nothing", "nothing"),
    ],
)  # fmt: skip
def test_what_is_redacted(options: dict[str, Any], text: str, expected: str) -> None:
    assert run({"a": text}, {"redact": {"field": "a", **options}}).source == {"a": expected}


def test_what_is_not_to_be_redacted() -> None:
    options = {"field": "a", "patterns": ["%{IP:IP}"]}
    assert run({}, {"redact": options}).source == {}
    assert refused({}, {"redact": {**options, "ignore_missing": False}}) == "field [a] is null or missing"
    assert "must not be empty" in refused({}, {"redact": {"field": "a", "patterns": []}})
    made = run({"a": "10.0.0.1"}, {"redact": {**options, "trace_redact": True}})
    assert made.ingest["_redact"] == {"_is_redacted": True}


def steps(*values: str) -> list[dict[str, Any]]:
    return [{"append": {"field": "steps", "value": value}} for value in values]


def test_terminate_ends_its_own_pipeline() -> None:
    inner = {"processors": [*steps("before"), {"terminate": {"if": "ctx.n < 50"}}, *steps("after")]}
    outer = pipeline({"pipeline": {"name": "inner"}}, *steps("outer"), others={"inner": inner})
    for number, expected in ((40, ["before", "outer"]), (60, ["before", "after", "outer"])):
        made = document({"n": number})
        outer.run(made)
        assert made.source["steps"] == expected
    handler = pipeline(
        {"fail": {"message": "x", "on_failure": [*steps("a"), {"terminate": {}}, *steps("b")]}}, *steps("c")
    )
    made = document({})
    handler.run(made)
    assert made.source["steps"] == ["a"]


@pytest.mark.parametrize(
    ("options", "source", "index"),
    [
        ({"destination": "{{to}}"}, {"to": "there"}, "there"),
        ({"dataset": "x"}, {}, "logs-x-main"),
        ({"dataset": "x", "namespace": "{{env}}"}, {"env": "A-b:c"}, "logs-x-a-b_c"),
        ({"type": "metrics"}, {}, "metrics-web-main"),
        ({}, {"data_stream": {"dataset": "d", "namespace": "n"}}, "logs-d-n"),
        ({"dataset": ["{{none}}", "d"]}, {}, "logs-d-main"),
    ],
)
def test_where_a_document_is_rerouted_to(options: dict[str, Any], source: dict[str, Any], index: str) -> None:
    made = document(source)
    made.meta["_index"] = "logs-web-main"
    pipeline({"reroute": options}, *steps("never")).run(made)
    assert (made.meta["_index"], made.source.get("steps")) == (index, None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"destination": "a", "dataset": "b"}, "can only be set if"),
        ({"dataset": "a-b"}, "contains disallowed characters"),
        ({"dataset": "a"}, "invalid data stream name: [logs]"),
    ],
)
def test_what_cannot_be_rerouted(options: dict[str, Any], reason: str) -> None:
    assert reason in refused({}, {"reroute": options})
