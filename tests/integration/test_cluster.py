"""Three real services as one cluster, broken in every way that one machine allows, under clients.

Where the machine allows it each node is in a network namespace of its own; else all are on the loopback, and
what needs a network to cut is skipped.
"""

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.cluster_clients import ClusterClients
from tests.support.cluster_service import ClusterService
from tests.support.file_texts import files_with
from tests.support.network import Network, why_unavailable
from tests.support.remote_host import answering, remote_host
from tests.support.rolling_clients import RollingClients
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S, quick_enough

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(600)]

FAILOVER_S = 5.0  # with two cores for everything; about 1 s where nodes have machines of their own
MINORITY_S = 5.0  # until a node that was cut off says so
BLOB = 'INSERT DATA {{ GRAPH <urn:ballast> {{ <urn:blob> <urn:number> "{number} {noise}" }} }}'


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    network = Network() if why_unavailable() is None else None
    cluster = ClusterService(tmp_path_factory.mktemp("cluster"), network=network)
    try:
        yield cluster.start()
    finally:
        cluster.close()
        if network is not None:
            network.close()


@pytest.fixture
def cluster(started: ClusterService) -> ClusterService:
    """The running cluster, whole again whatever the last test has left."""
    started.repair()
    return started


@pytest.fixture
def network(cluster: ClusterService) -> Network:
    if cluster.network is None:
        pytest.skip(why_unavailable() or "")
    return cluster.network


def clients_of(cluster: ClusterService, seed: int) -> ClusterClients:
    return ClusterClients({number: node.url for number, node in cluster.nodes.items()}, seed)


def ask(node: Service, level: str = "local", timeout_s: float = 30) -> httpx.Response:
    """A read at a level."""
    query = {"query": "ASK {}", "consistency": level}
    return httpx.get(f"{node.url}/sparql", params=query, timeout=timeout_s, trust_env=False)


def numbers(node: Service, graph: str, level: str) -> set[str]:
    form = {"query": f"SELECT ?o {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}", "consistency": level}
    answer = httpx.post(f"{node.url}/sparql", data=form, timeout=30, trust_env=False)
    assert answer.status_code == 200, answer.text
    return {row["o"]["value"] for row in answer.json()["results"]["bindings"]}


def test_a_transaction_is_used_at_any_node(cluster: ClusterService) -> None:
    """It lives on the node where it began, which the others ask."""
    urls = [node.url for node in cluster.nodes.values()]
    root, turtle = "/repositories/graphdb/transactions", {"Content-Type": "text/turtle"}

    def act(number: int, action: str, **options: Any) -> httpx.Response:
        address = f"{urls[number]}{root}/{transaction}"
        return httpx.put(address, params={"action": action}, timeout=HANG_S, trust_env=False, **options)

    begun = httpx.post(f"{urls[0]}{root}", timeout=HANG_S, trust_env=False)
    transaction = begun.headers["location"].rpartition("/")[2]
    body = "<urn:transaction> <urn:p> 1, 2 ."
    assert act(1, "ADD", content=body, headers=turtle).status_code == 200
    query = {"content": "SELECT * { <urn:transaction> ?p ?o }", "headers": {"Accept": "text/csv"}}
    for number in range(3):
        assert len(act(number, "QUERY", **query).text.splitlines()) == 3
    committed = act(2, "COMMIT")
    assert committed.status_code == 200, committed.text
    index = committed.headers["X-Snapshot-Index"]
    for url in urls:
        form = {"query": "SELECT * { <urn:transaction> ?p ?o }", "min_index": index}
        answer = httpx.post(f"{url}/sparql", data=form, timeout=HANG_S, trust_env=False)
        assert len(answer.json()["results"]["bindings"]) == 2
    assert [act(number, "SIZE").status_code for number in range(3)] == [404, 404, 404]


def test_any_node_takes_writes_and_what_was_confirmed_is_read_at_all(cluster: ClusterService) -> None:
    expected = set()
    for round_, (number, writer) in itertools.product(range(3), cluster.nodes.items()):
        value = f"{round_ + 1}{number}"
        confirmed = writer.update(f"INSERT DATA {{ GRAPH <urn:any> {{ <urn:s> <urn:p> {value} }} }}")
        expected.add(value)
        assert confirmed["affected_triples"] == 1
        for reader in cluster.nodes.values():
            assert numbers(reader, "urn:any", "linearizable") == expected
            assert numbers(reader, "urn:any", "leader") == expected
        assert numbers(writer, "urn:any", "local") == expected, "who writes here can read it here"
    cluster.await_same_dumps()


def test_updates_that_look_at_what_is_there_through_a_follower(cluster: ClusterService) -> None:
    follower = cluster.nodes[cluster.followers()[0]]
    follower.update("INSERT DATA { GRAPH <urn:where> { <urn:a> <urn:n> 1 . <urn:b> <urn:n> 2 } }")
    raised = "INSERT { ?s ?p ?new } WHERE { ?s ?p ?o BIND(?o + 10 AS ?new) }"
    confirmed = follower.update(f"WITH <urn:where> DELETE {{ ?s ?p ?o }} {raised}")
    assert confirmed["affected_triples"] == 4
    follower.update("INSERT { GRAPH <urn:where> { [] <urn:id> ?id } } WHERE { BIND(STRUUID() AS ?id) }")
    assert follower.try_update("INSERT DATA {").status_code == 400
    assert follower.try_update("CREATE GRAPH <urn:where>").status_code == 409
    dump = [line for line in cluster.await_same_dumps() if "<urn:where>" in line]
    assert [line for line in dump if "<urn:n>" in line] == [
        f'<urn:{name}> <urn:n> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:where> .'
        for name, value in (("a", 11), ("b", 12))
    ]
    assert len(dump) == 3


def test_whole_graphs_through_a_follower(cluster: ClusterService) -> None:
    follower = cluster.nodes[cluster.followers()[0]]
    triples = [f'<urn:s{number}> <urn:p> "{number:0>80}" .' for number in range(60_000)]
    with httpx.Client(base_url=follower.url, timeout=120, trust_env=False) as client:

        def write(method: str, lines: list[str]) -> dict[str, int]:
            headers = {"Content-Type": "application/n-triples"}
            body = "\n".join(lines)
            answer = client.request(method, "/data?graph=urn:whole", content=body, headers=headers)
            assert answer.is_success, answer.text
            confirmation: dict[str, int] = answer.json()
            return confirmation

        assert write("PUT", triples)["affected_triples"] == len(triples)
        assert write("PUT", triples[1:])["affected_triples"] == 1
        assert write("POST", triples[:2])["affected_triples"] == 1
        assert sum("<urn:whole>" in line for line in cluster.await_same_dumps()) == len(triples)
        assert client.delete("/data?graph=urn:whole").json()["affected_triples"] == len(triples)
        assert client.delete("/data?graph=urn:whole").status_code == 404
    cluster.await_same_dumps()


def test_a_write_that_is_sent_again_to_another_leader_takes_effect_once(cluster: ClusterService) -> None:
    def count_up(node: Service) -> dict[str, int]:
        text = """WITH <urn:once> DELETE { <urn:n> <urn:is> ?n } INSERT { <urn:n> <urn:is> ?next }
            WHERE { OPTIONAL { <urn:n> <urn:is> ?n } BIND(COALESCE(?n, 0) + 1 AS ?next) }"""
        headers = {"Idempotency-Key": '"up"'}
        answer = httpx.post(
            f"{node.url}/update", data={"update": text}, headers=headers, timeout=30, trust_env=False
        )
        assert answer.status_code == 200, answer.text
        confirmation: dict[str, int] = answer.json()
        return confirmation

    first = count_up(cluster.nodes[cluster.leader()])
    successor = cluster.followers()[0]
    graphdb(cluster.nodes[cluster.leader()], "lead", str(successor))
    for node in cluster.nodes.values():
        again = count_up(node)
        assert again["snapshot_index"] == first["snapshot_index"], "it is confirmed as it was"
        assert again["affected_triples"] == first["affected_triples"] == 1
    assert numbers(cluster.nodes[successor], "urn:once", "linearizable") == {"1"}


def test_kill_9_of_the_leader_and_of_a_follower(cluster: ClusterService) -> None:
    for number, took in enumerate(quick_enough(FAILOVER_S)):
        follower, leader = cluster.followers()[0], cluster.leader()
        others = [number for number in cluster.nodes if number != leader]
        with clients_of(cluster, seed=1 + 100 * number) as clients:
            time.sleep(1)
            cluster.nodes[follower].kill()
            follower_killed_at = time.monotonic()
            time.sleep(2)
            cluster.start(follower)
            cluster.await_healthy()
            cluster.nodes[leader].kill()
            leader_killed_at = time.monotonic()
            assert cluster.leader(*others) != leader
            time.sleep(2)
            cluster.start(leader)
            cluster.await_healthy()
        for what, moment in (("a follower", follower_killed_at), ("the leader", leader_killed_at)):
            silence_s = clients.silence_between_s(moment, moment + 2)
            print(f"no write was confirmed for {silence_s:.1f} s when {what} was killed")
            took.seconds = max(took.seconds, silence_s)
        clients.check()
        cluster.await_same_dumps()


def test_who_leads_evaluates_alerts_and_the_next_one_goes_on(cluster: ClusterService) -> None:
    own_address = cluster.network.own_address if cluster.network is not None else "127.0.0.1"
    follower = cluster.nodes[cluster.followers()[0]]
    with remote_host(answering(), own_address) as receiver:
        alert = {"name": "led", "query": "ASK {}", "condition": "result == 1", "interval_seconds": 1}
        body = alert | {"webhook": receiver.url}
        made = httpx.post(f"{follower.url}/alerts", json=body, timeout=30, trust_env=False)
        assert made.status_code == 200, made.text
        began = time.monotonic()
        follower.wait_until(lambda: len(receiver.requests) >= 2, HANG_S)
        leader = cluster.leader()
        cluster.nodes[leader].kill()
        successor = cluster.leader(*(number for number in cluster.nodes if number != leader))
        count = len(receiver.requests)
        cluster.nodes[successor].wait_until(lambda: len(receiver.requests) > count + 2, HANG_S)
        cluster.start(leader)
        cluster.await_healthy()
        assert httpx.delete(f"{follower.url}/alerts/led", timeout=30, trust_env=False).status_code == 200
        told = [request.partition(b"\r\n\r\n")[2] for request in receiver.requests]
        assert len(set(told)) <= time.monotonic() - began + 1, "once an interval"
    for node in cluster.nodes.values():
        node.wait_until(lambda node=node: alerts_of(node) == [], HANG_S)


def alerts_of(node: Service) -> list[object]:
    found: list[object] = httpx.get(f"{node.url}/alerts", timeout=5, trust_env=False).json()["alerts"]
    return found


def test_kill_9_of_all_at_once(cluster: ClusterService) -> None:
    with clients_of(cluster, seed=2) as clients:
        time.sleep(2)
        for node in cluster.nodes.values():
            node.kill()
        time.sleep(0.5)
        cluster.start()
        time.sleep(1)
    clients.check()
    cluster.await_same_dumps()


def test_a_leader_that_stood_still_serves_nothing_stale_when_it_wakes(cluster: ClusterService) -> None:
    leader = cluster.leader()
    others = [number for number in cluster.nodes if number != leader]
    with clients_of(cluster, seed=3) as clients:
        time.sleep(1)
        cluster.nodes[leader].pause()
        successor = cluster.leader(*others)
        cluster.nodes[successor].update("INSERT DATA { GRAPH <urn:pause> { <urn:s> <urn:p> 1 } }")
        time.sleep(3)
        cluster.nodes[leader].resume()
        assert numbers(cluster.nodes[leader], "urn:pause", "linearizable") == {"1"}
        time.sleep(1)
    clients.check()
    cluster.await_same_dumps()


def test_a_leader_cut_off_refuses_and_the_others_go_on(cluster: ClusterService, network: Network) -> None:
    leader = cluster.leader()
    others = [number for number in cluster.nodes if number != leader]
    minority = cluster.nodes[leader]
    with clients_of(cluster, seed=4) as clients:
        time.sleep(1)
        network.isolate(leader)
        cut_at = time.monotonic()
        refused = ask(minority, "linearizable")
        print(f"a linearizable read was refused {time.monotonic() - cut_at:.1f} s after the cut")
        assert refused.status_code == 503
        refused = minority.try_update("INSERT DATA { <urn:cut> <urn:off> 1 }")
        print(f"a write was refused {time.monotonic() - cut_at:.1f} s after the cut")
        assert refused.status_code == 503
        assert time.monotonic() - cut_at < 2 * MINORITY_S
        assert ask(minority, "local").status_code == 200
        assert ask(minority, "leader").status_code == 503
        assert minority.health()["status"] == "degraded"
        assert minority.health()["role"] != "leader"
        assert cluster.leader(*others) != leader
        time.sleep(1)
        network.heal()
        cluster.await_healthy()
    clients.check()
    assert not any("<urn:cut>" in line for line in cluster.await_same_dumps()), "it was refused"


def test_a_way_that_is_cut_in_one_direction(cluster: ClusterService, network: Network) -> None:
    leader = cluster.leader()
    followers = cluster.followers()
    with clients_of(cluster, seed=5) as clients:
        time.sleep(1)
        network.cut(leader, followers[0])  # it hears nothing, and is heard
        time.sleep(3)
        network.heal()
        network.cut(followers[1], leader)  # it hears, and is not heard
        time.sleep(3)
        network.heal()
        cluster.await_healthy()
    print(f"the longest silence: {clients.longest_silence_s():.1f} s")
    clients.check()
    cluster.await_same_dumps()


def test_wiped_and_lagging_nodes_come_back_by_a_snapshot(cluster: ClusterService) -> None:
    lagging = cluster.followers()[0]
    cluster.nodes[lagging].stop()
    leader = cluster.nodes[cluster.leader()]
    first_missed = leader.update("DROP SILENT GRAPH <urn:ballast>")["snapshot_index"] + 1
    person, secret = "https://example.org/person/4713", "Secret-0816"
    leader.update(f'INSERT DATA {{ <{person}> <urn:name> "{secret}" }}')
    for number in range(14):  # two checkpoints' worth, of which the log keeps one
        noise = os.urandom(6 << 20).hex()
        leader.update(f"DROP SILENT GRAPH <urn:ballast> ; {BLOB.format(number=number, noise=noise)}")
    for number, node in cluster.nodes.items():
        if number != lagging:  # a checkpoint is made beside the writes, and drops the log at its end
            node.wait_until(lambda node=node: first_index_of_log(node) > first_missed, 120)
    with clients_of(cluster, seed=6) as clients:
        cluster.start(lagging)
        cluster.await_healthy()
        cluster.await_applied(lagging)
        assert first_index_of_log(cluster.nodes[lagging]) > 1, "it has got every entry, and no snapshot"
        wiped = cluster.followers()[1]
        cluster.nodes[wiped].kill()
        cluster.wipe(wiped)
        cluster.start(wiped)
        cluster.await_voting(wiped)
        assert first_index_of_log(cluster.nodes[wiped]) > 1, "it has got every entry, and no snapshot"
    # the history before their snapshots comes from the others, and nothing of what is purged meanwhile
    leader.wait_until(lambda: purge(leader, person) in (200, 202), HANG_S)
    for node in cluster.nodes.values():
        node.wait_until(lambda node=node: is_purged(node) and oldest_index(node) == 0, HANG_S)
        told = httpx.get(f"{node.url}/history", params={"resource": person}, trust_env=False, timeout=HANG_S)
        assert told.raise_for_status().json()["entries"] == []
        node.wait_until(lambda node=node: not files_with(node.data_dir, person, secret), HANG_S)
    clients.check()
    cluster.await_same_dumps()


def purge(node: Service, resource: str) -> int:
    """Its status. Who sends it again gets the same purge."""
    address, headers = f"{node.url}/history/purge", {"Idempotency-Key": f"purge of {resource}"}
    asked = {"resource": resource}
    return httpx.post(address, params=asked, headers=headers, timeout=HANG_S, trust_env=False).status_code


def is_purged(node: Service) -> bool:
    told = httpx.get(f"{node.url}/history/purge", trust_env=False, timeout=HANG_S)
    return bool(told.json().get("purges")) and all(purge["done"] for purge in told.json()["purges"])


def oldest_index(node: Service) -> int:
    told = httpx.get(f"{node.url}/history", params={"limit": "1"}, trust_env=False, timeout=HANG_S)
    index: int = told.raise_for_status().json()["oldest_index"]
    return index


def first_index_of_log(node: Service) -> int:
    return min(int(path.stem.partition("-")[2]) for path in (node.data_dir / "log").glob("*.segment"))


def test_members_come_and_go(cluster: ClusterService) -> None:
    asked = cluster.nodes[cluster.followers()[0]]
    with clients_of(cluster, seed=7) as clients:
        cluster.add_node(4)
        graphdb(asked, "add", f"4@{cluster.peer_address(4)}")
        cluster.start(4)
        cluster.await_voting(4)
        assert "4" in graphdb(cluster.nodes[4], "status")
        graphdb(asked, "lead", "4")
        assert cluster.leader() == 4
        graphdb(asked, "remove", "4")
        cluster.forget_node(4)
        replaced = next(number for number in cluster.followers() if cluster.nodes[number] is not asked)
        cluster.replace_node(replaced)
        graphdb(asked, "add", f"{replaced}@{cluster.peer_address(replaced)}")
        cluster.start(replaced)
        cluster.await_voting(replaced)
    clients.check()
    addresses = {number: cluster.peer_address(number) for number in cluster.nodes}
    members = cluster.report(cluster.leader())["members"]
    assert {member["node_id"]: member["address"] for member in members} == addresses
    cluster.await_same_dumps()


def graphdb(node: Service, *arguments: str) -> str:
    """`graphdb cluster ...` at a node; what it says."""
    command = [str(COMMAND), "cluster", *arguments, "--endpoint", node.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rolling_restart_loses_no_request(cluster: ClusterService) -> None:
    order = [*cluster.followers(), cluster.leader()]
    with RollingClients([node.url for node in cluster.nodes.values()]) as clients:
        time.sleep(1)
        for number in order:
            assert cluster.nodes[number].stop(signal.SIGTERM) == 0
            cluster.start(number)
            cluster.await_healthy()
    assert clients.failures == []
    leader = cluster.nodes[cluster.leader()]
    assert clients.written <= numbers(leader, "urn:rolling", "linearizable")
    print(f"{len(clients.written)} writes, {clients.reads} reads, the slowest took {clients.slowest_s:.1f} s")
    cluster.await_same_dumps()
