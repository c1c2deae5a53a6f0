"""A column view divided among shards on two Ray nodes: answers as of one view, updates, a killed process."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.ray_cluster import RayCluster
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

PEOPLE = 1_500
QUERIES = {
    "a star": "SELECT ?n ?a { ?s :name ?n ; :age ?a ; :town :t1 FILTER(?a > 90) }",
    "aggregates": "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?sum) (MIN(?m) AS ?first) { ?s :age ?a ; :name ?m }",
    "groups": "SELECT ?t (COUNT(?s) AS ?n) (MAX(?a) AS ?oldest) { ?s :town ?t ; :age ?a } GROUP BY ?t",
    "a join": "SELECT ?a (COUNT(*) AS ?n) { ?s :knows ?k ; :age ?a . ?k :age ?b FILTER(?b<?a) } GROUP BY ?a",
    "two joins": "SELECT ?l (SUM(?b) AS ?n) { ?s :knows ?k . ?k :town ?t ; :age ?b . ?t :label ?l } "
    "GROUP BY ?l",
    "OPTIONAL": "SELECT ?t ?l (COUNT(*) AS ?n) { ?s :town ?t OPTIONAL { ?t :label ?l } } GROUP BY ?t ?l",
    "MINUS": "SELECT (COUNT(*) AS ?n) { ?s :age ?a MINUS { ?k :knows ?s . ?k :town :t0 } }",
    "EXISTS": "SELECT (COUNT(*) AS ?n) { ?s :town ?t FILTER NOT EXISTS { ?t :label ?l } }",
    "texts": "SELECT ?n ?o { ?s :name ?n ; :knows ?k . ?k :name ?o FILTER(SUBSTR(?n, 3) > SUBSTR(?o, 2)) }",
    "first of an order": "SELECT ?n ?a { ?s :name ?n ; :age ?a } ORDER BY DESC(?a) ?n LIMIT 7",
    "a sub-select": "SELECT (MAX(?n) AS ?m) "
    "{ { SELECT ?k (COUNT(*) AS ?n) { ?s :knows ?k } GROUP BY ?k } ?k :town :t2 }",
    "triples": "CONSTRUCT { ?k :of ?t } WHERE { ?s :knows ?k ; :town ?t ; :age 7 }",
}
SETTINGS = {
    "GRAPHDB_COLUMNS__SHARDS_MIN_QUADS": "0",
    "GRAPHDB_COLUMNS__COUNTS_WITHOUT_ROWS": "false",
    "GRAPHDB_COLUMNS__CHOSEN_BY_COST": "false",
    "GRAPHDB_COLUMNS__WAIT_SECONDS": "20",
    "GRAPHDB_READERS__COUNT": "1",
}
SHARDS, NODES = 4, ("one", "two")


def people(first: int, last: int) -> str:
    """INSERT DATA of some of them."""
    triples = "".join(
        f":p{n} :knows :p{(n * 7) % PEOPLE}, :p{(n + 2) % PEOPLE} ; :town :t{n % 5} ; :age {n * 31 % 97} ; "
        f':name "N{n * 13 % PEOPLE:04}" . '
        for n in range(first, last)
    )
    return f'PREFIX : <urn:> INSERT DATA {{ {triples} :t0 :label "north" . :t1 :label "south"@en . }}'


class Divided:
    """A service whose column view is divided."""

    def __init__(self, service: Service, cluster: RayCluster | None = None) -> None:
        self.service, self._cluster = service, cluster
        self._asked = 0

    def answer(self, query: str) -> list[str]:
        """Its rows; each time another text, for a text that was answered may be answered from a cache."""
        self._asked += 1
        form = "text/csv" if "SELECT" in query else "application/n-triples"
        response = self.ask(f"PREFIX : <urn:> {query} #{self._asked}", form)
        assert response.status_code == 200, response.text
        lines = response.text.splitlines()
        return lines if "ORDER" in query else sorted(lines)

    def ask(
        self, query: str, form: str = "text/csv", leaves_s: float = HANG_S, **more: str
    ) -> httpx.Response:
        return httpx.get(
            f"{self.service.url}/sparql",
            params={"query": query, **more},
            headers={"accept": form},
            timeout=leaves_s,
            trust_env=False,
        )

    def path(self, query: str) -> str:
        """Who would answer, as `explain` says."""
        path: str = self._explain(query)["path"]
        return path

    def explained(self, query: str) -> dict[str, Any]:
        """What `explain` says of the shards."""
        shards: dict[str, Any] = self._explain(query).get("shards", {})
        return shards

    def _explain(self, query: str) -> dict[str, Any]:
        document = self.ask(f"PREFIX : <urn:> {query}", "application/json", explain="true").json()
        columns: dict[str, Any] = document["columns"]
        return columns

    def shards(self) -> list[int]:
        """The processes that have them, by their Ray nodes."""
        assert self._cluster is not None
        workers = [each for name in NODES for each in self._cluster.workers(name).items()]
        return [pid for title, pid in workers if title.startswith("ray::ColumnShard")]

    def await_shards(self) -> float:
        """Wait until a query can be asked of the shards; how long it took."""
        query = QUERIES["groups"]
        return self.service.wait_until(lambda: self.explained(query).get("reason", "") is None, 3 * HANG_S)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The answers of a service whose view is not divided."""
    service = Service(tmp_path_factory.mktemp("whole"), environment=SETTINGS).start()
    try:
        service.update(people(0, PEOPLE))
        made = Divided(service)
        service.wait_until(lambda: made.path(QUERIES["groups"]) == "columns", HANG_S)
        return {name: made.answer(query) for name, query in QUERIES.items()}
    finally:
        service.close()


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Divided]:
    cluster = RayCluster()
    try:
        for name in NODES:
            cluster.add(name)
        environment = SETTINGS | cluster.environment("one") | {"GRAPHDB_COLUMNS__SHARDS": str(SHARDS)}
        service = Service(tmp_path_factory.mktemp("divided") / "data", environment=environment).start()
        try:
            made = Divided(service, cluster)
            service.update(people(0, PEOPLE // 2))
            made.await_shards()
            yield made
        finally:
            service.close()
    finally:
        cluster.close()


def test_answers_are_those_of_one_view(divided: Divided, whole: dict[str, list[str]]) -> None:
    divided.service.update(people(PEOPLE // 2, PEOPLE))  # followed: the shards were filled before
    for name, query in QUERIES.items():
        assert divided.answer(query) == whole[name], name
        shards = divided.explained(query)
        assert shards["reason"] is None, (name, shards)
        assert shards["last"]["moves"] >= 1, name
        assert (shards["count"], shards["processes"]) == (SHARDS, len(NODES))


def test_updates_are_seen_at_once(divided: Divided) -> None:
    query = "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?sum) { ?s :town ?t ; :age ?a }"
    for number in range(1, 11):
        divided.service.update(f"PREFIX : <urn:> INSERT DATA {{ :e{number} :town :t9 ; :age 7 }}")
        assert divided.answer(query)[0].split(",")[0] == str(PEOPLE + number)
    assert divided.explained(query)["last"]["moves"] >= 1
    divided.service.update("PREFIX : <urn:> DELETE { ?s ?p ?o } WHERE { ?s :town :t9 ; ?p ?o }")
    assert divided.answer(query)[0].split(",")[0] == str(PEOPLE)


def test_the_shards_of_a_killed_process_are_filled_anew(
    divided: Divided, whole: dict[str, list[str]]
) -> None:
    query = QUERIES["two joins"]
    before = divided.shards()
    assert len(before) == len(NODES)
    os.kill(before[0], signal.SIGKILL)
    began = time.monotonic()
    while time.monotonic() - began < 3:  # at every moment somebody answers
        assert divided.answer(query) == whole["two joins"]
    divided.await_shards()
    assert divided.answer(query) == whole["two joins"]
    assert divided.explained(query)["last"]["moves"] >= 1
    after = divided.shards()
    assert len(after) == len(NODES)
    assert before[1] in after, "the others go on"


def test_a_query_ends_on_all_shards(divided: Divided) -> None:
    """By its deadline, and when its client leaves: then their processors rest."""
    endless = (
        "PREFIX : <urn:> SELECT (COUNT(*) AS ?n) "
        "{ ?a :age ?x . ?b :age ?y . ?c :age ?z FILTER(?x + ?y = ?z * ?x) }"
    )
    assert divided.ask(endless, timeout="1s").status_code == 503
    with pytest.raises(httpx.ReadTimeout):
        divided.ask(endless + "#2", leaves_s=1)
    processes = [psutil.Process(pid) for pid in divided.shards()]
    divided.service.wait_until(lambda: all(p.cpu_percent(0.3) < 30 for p in processes), HANG_S)
    assert len(divided.answer(QUERIES["groups"])) == 6
    assert [process.pid for process in processes] == divided.shards(), "none had to be killed"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_shards_are_spread_and_one_comes_back_elsewhere(tmp_path: Path, whole: dict[str, list[str]]) -> None:
    """Three Ray nodes, a service on the first; the node of a shard is killed with all that it runs."""
    cluster, title = RayCluster(), "ray::ColumnShard"
    try:
        for name in ("one", "two", "three"):
            cluster.add(name)
        environment = SETTINGS | cluster.environment("one") | {"GRAPHDB_COLUMNS__SHARDS": "3"}
        service = Service(tmp_path / "data", environment=environment).start()
        try:
            divided = Divided(service)
            service.update(people(0, PEOPLE))
            divided.await_shards()
            for name in ("one", "two", "three"):
                assert [each for each in cluster.workers(name) if each.startswith(title)], name
            query = "two joins"
            assert divided.answer(QUERIES[query]) == whole[query]
            assert divided.explained(QUERIES[query])["last"]["moves"] >= 1
            cluster.remove("three")
            again = QUERIES[query] + " LIMIT 100"  # one that no shard was asked yet

            def is_answered_by_shards() -> bool:
                assert divided.answer(again) == whole[query], "somebody answers"
                return bool(divided.explained(again)["last"])

            service.wait_until(is_answered_by_shards, 3 * HANG_S)
            for name in QUERIES:
                assert divided.answer(QUERIES[name]) == whole[name], name
        finally:
            service.close()
    finally:
        cluster.close()
