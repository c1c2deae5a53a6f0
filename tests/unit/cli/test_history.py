"""`graphdb history`."""

import json

from tests.unit.cli.conftest import Run


def test_a_purge_is_asked_for_and_listed(graphdb: Run, endpoint: str) -> None:
    made = graphdb("history", "purge", "--graph", "urn:g", "--yes")
    assert made.exit_code == 0
    assert made.out.startswith("purged at log index ")
    listed = graphdb("history", "purges").out.splitlines()
    assert "graph" in listed[-1].split()
    found = json.loads(graphdb("history", "purges", "--format", "json").out)["purges"]
    assert made.out.split()[-1] == str(found[-1]["index"])
    for arguments in ((), ("--graph", "urn:g", "--resource", "urn:r"), ("--resource", "no iri")):
        assert graphdb("history", "purge", "--yes", *arguments).exit_code != 0
