"""The YAML tests of Elasticsearch's own clients, over HTTP as the clients speak it, on a node in memory.

Every case passes or stands below: with the first of the APIs that it needs and we do not offer, or with a
known difference. A case that stands there and passes fails as stale.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.conformance.elasticsearch_runner import StepFailed, run_case
from tests.conformance.elasticsearch_suite import read_client_cases
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S

CASES = read_client_cases()
pytestmark = pytest.mark.skipif(not CASES, reason="the YAML tests of the clients are not at ../shared/suites")

# cases, of them passed, of them for want of an API, of them with a known difference
COUNTS = (207, 107, 91, 9)

# What begins so is not offered. The cases that call it are listed by that.
NOT_OFFERED = {
    "cat.ml_": "machine learning",
    "cat.transforms": "transforms",
    "cluster.delete_voting_config_exclusions": "votes: members are changed at port 7001",
    "cluster.post_voting_config_exclusions": "votes: members are changed at port 7001",
    "connector.": "connectors",
    "enrich.": "enriching at ingest",
    "eql.": "EQL",
    "esql.": "ES|QL",
    "features.reset_features": "no feature keeps state of its own",
    "graph.": "graph explore: the graph itself is at port 7001",
    "indices.downsample": "downsampling",
    "indices.field_usage_stats": "use by field",
    "inference.": "inference",
    "ingest.delete_geoip_database": "data bases of addresses",
    "ingest.geo_ip_stats": "data bases of addresses",
    "ingest.get_ip_location_database": "data bases of addresses",
    "license.post": "licences",
    "logstash.": "Logstash",
    "migration.": "migrations",
    "ml.": "machine learning",
    "monitoring.": "monitoring",
    "nodes.usage": "counters of nodes",
    "query_rules.": "query rules",
    "scripts_painless_execute": "scripts",
    "search_application.": "search applications",
    "searchable_snapshots.": "snapshots",
    "security.": "users and keys of Elasticsearch",
    "sql.": "SQL of Elasticsearch",
    "ssl.": "certificates of the port",
    "text_structure.": "guessing formats",
    "transform.": "transforms",
    "xpack.usage": "usage of licensed features",
}

DIFFERENCES = {
    "cat/fielddata": "no tokens are in memory before somebody sorts by a text",
    "cat/component_templates": "there are no templates but those that somebody has made",
    "cat/nodeattrs": "nodes have no attributes",
    "ilm/10_basic": "it asks for the status with a parameter that the specification does not have",
    "cat/templates": "there are no templates but those that somebody has made",
    "indices/segments": "segments have other names than Lucene's",
    "info_serverless": "the node has another name",
    "snapshot/10_basic": "_recovery does not name a snapshot: restored documents come through the log",
    "tasks": "it asks for a task without saying which, for which there is no path",
}


class Newest:
    """One server's application for many nodes: `renew` begins with an empty one."""

    def __init__(self, snapshots: Path) -> None:
        """snapshots: a directory for repositories, which stay when the node is renewed."""
        self._settings = Settings.model_validate({"search": {"snapshot_paths": [str(snapshots)]}})
        self.renew()

    def renew(self) -> None:
        self._app = build_search_app(MemorySearch(), self._settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Newest, httpx.Client]]:
    app = Newest(tmp_path_factory.mktemp("snapshots"))
    with serving(app) as url, httpx.Client(base_url=url, timeout=HANG_S, trust_env=False) as client:
        yield app, client


@pytest.fixture
def client(server: tuple[Newest, httpx.Client]) -> httpx.Client:
    """Of a node with an index in it: Elasticsearch has some of its own from the start, as the suite knows."""
    app, client = server
    app.renew()
    body = {"settings": {"number_of_replicas": 0}}  # green on one node, as they are
    client.put("/here-before", json=body).raise_for_status()
    return client


def lacks(name: str) -> str | None:
    """The first API that a case needs and we do not offer."""
    calls = sorted(CASES[name].calls())
    return next((call for call in calls if any(call.startswith(prefix) for prefix in NOT_OFFERED)), None)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, client: httpx.Client) -> None:
    reason = DIFFERENCES.get(name) or lacks(name)
    if reason is None:
        run_case(CASES[name], client)
    else:
        assert not passes(name, client), f"stale: {name} passes; it was listed because of {reason}"


def passes(name: str, client: httpx.Client) -> bool:
    try:
        run_case(CASES[name], client)
    except StepFailed:
        return False
    return True


def test_the_tables_are_needed() -> None:
    unknown = DIFFERENCES.keys() - CASES.keys()
    twice = {name for name in DIFFERENCES if name in CASES and lacks(name)}
    called = {call for case in CASES.values() for call in case.calls()}
    unused = {prefix for prefix in NOT_OFFERED if not any(call.startswith(prefix) for call in called)}
    assert (unknown, twice, unused) == (set(), set(), set())


def test_the_counts_are_right() -> None:
    listed = Counter(
        "differs" if name in DIFFERENCES else "lacks" if lacks(name) else "passes" for name in CASES
    )
    assert (len(CASES), listed["passes"], listed["lacks"], listed["differs"]) == COUNTS
