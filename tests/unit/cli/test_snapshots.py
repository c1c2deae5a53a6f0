"""`graphdb snapshots`."""

import json

from tests.unit.cli.conftest import Run


def test_a_state_gets_a_name_and_loses_it(graphdb: Run, endpoint: str) -> None:
    assert graphdb("update", "INSERT DATA { <urn:s> <urn:p> 1 }").exit_code == 0
    made = graphdb("snapshots", "create", "first")
    assert (made.exit_code, made.out) == (0, "first is the state at log index 1\n")
    assert graphdb("snapshots", "create", "empty", "--at", "0").exit_code == 0
    assert graphdb("update", "INSERT DATA { <urn:s> <urn:p> 2 }").exit_code == 0
    text = "SELECT ?o { <urn:s> <urn:p> ?o }"
    told = graphdb("query", text, "--as-of", "first", "--format", "csv")
    assert told.out.split()[1:] == ["1"]
    listed = graphdb("snapshots", "list")
    assert [line.split()[0] for line in listed.out.splitlines()[2:]] == ["empty", "first"]
    found = json.loads(graphdb("snapshots", "list", "--format", "json").out)["snapshots"]
    assert [(one["name"], one["index"], one["named_by"]) for one in found] == [
        ("empty", 0, None),
        ("first", 1, None),
    ]
    refused = graphdb("snapshots", "create", "first")
    assert refused.exit_code == 1
    assert "409" in refused.err
    assert graphdb("snapshots", "delete", "first").exit_code == 0
    assert graphdb("snapshots", "delete", "first").exit_code == 1
