"""`GraphChangers`: clients that change works and their makers, and what indexes of these must hold then."""

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import httpx
import orjson
from pyoxigraph import RdfFormat, parse

from graphdb.config.limits import GateLimits
from graphdb.search.following.graph_settings import read_shape
from tests.support.bulk_clients import search_client
from tests.support.client_threads import ClientThreads
from tests.support.cluster_service import ClusterService
from tests.support.followed_graphs import EX, FollowedStore
from tests.support.service import Service

__all__ = ["INDEXES", "GraphChangers", "await_followed", "following"]

_PAUSE_S = 0.05
_TIMEOUT_S = 40.0
_FOLLOWED_S = 120.0
_PREFIX = f"PREFIX : <{EX}> "
_SHACL = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{EX}> .
    :Works sh:targetClass :Work ; sh:property [ sh:path :title ], [ sh:path :frame ; sh:node :Frame ],
        [ sh:path [ sh:inversePath :made ] ; sh:name "maker" ; sh:node :Maker ] .
    :Frame sh:property [ sh:path :wood ] . :Maker sh:property [ sh:path :name ] ."""
INDEXES: dict[str, Any] = {
    "followed-class": {"class": f"{EX}Work"},
    "followed-star": {"query": f"{_PREFIX} SELECT ?id ?title {{ ?id a :Work ; :title ?title }}"},
    "followed-chain": {
        "query": f"{_PREFIX} SELECT ?id ?name {{ ?id a :Work . ?maker :made ?id ; :name ?name }}"
    },
    "followed-shacl": {"shacl": _SHACL},
}
"""Shapes, by the name of the index."""


class GraphChangers(ClientThreads):
    """Run them with `with`. One at each node; all of them change the same few works."""

    def __init__(self, urls: Sequence[str], seed: int) -> None:
        super().__init__(partial(self._run, url, random.Random(f"{seed} {url}")) for url in urls)
        self.confirmed = 0
        self.unexpected: list[str] = []  # answers that nobody should get

    def _run(self, url: str, rng: random.Random) -> None:
        headers = {"Content-Type": "application/sparql-update"}
        with httpx.Client(base_url=url, timeout=_TIMEOUT_S, trust_env=False) as client:
            while not self._ended.is_set():
                try:
                    answer = client.post("/update", content=_PREFIX + _change(rng), headers=headers)
                except httpx.TransportError:
                    time.sleep(_PAUSE_S)
                    continue
                if answer.status_code == 200:
                    self.confirmed += 1
                elif answer.status_code == 503:
                    time.sleep(_PAUSE_S)
                else:
                    self.unexpected.append(answer.text)


def _change(rng: random.Random) -> str:
    work, maker, number = f":w{rng.randrange(150)}", f":m{rng.randrange(8)}", rng.randrange(1000)
    return rng.choice(
        [
            f'DELETE {{ {work} :title ?old }} INSERT {{ {work} a :Work ; :title "title {number}" }} '
            f"WHERE {{ OPTIONAL {{ {work} :title ?old }} }}",
            f'INSERT DATA {{ {work} a :Work ; :frame [ :wood "wood {number}" ] }}',
            f"DELETE {{ {work} ?p ?o . ?f :wood ?w }} "
            f"WHERE {{ {{ {work} ?p ?o }} UNION {{ {work} :frame ?f . ?f :wood ?w }} }}",
            f"INSERT DATA {{ {maker} :made {work} }}",
            f"DELETE WHERE {{ {maker} :made {work} }}",
            f'DELETE {{ {maker} :name ?old }} INSERT {{ {maker} :name "name {number}" }} '
            f"WHERE {{ OPTIONAL {{ {maker} :name ?old }} }}",
        ]
    )


def following(node: Service) -> dict[str, dict[str, Any]]:
    """How the node's indexes follow the graph, by name: those that follow it since the search has started."""
    with search_client(node.search_url) as client:
        indices = client.get("/followed-*/_stats").raise_for_status().json()["indices"]
    return {name: index["graph"] for name, index in indices.items() if "graph" in index}


def await_followed(cluster: ClusterService) -> None:
    """Wait until the node that leads has followed what is committed, and every node's indexes have what the
    graph says, and nothing else.
    """
    index = cluster.report(cluster.leader())["commit_index"]
    _await(lambda: _is_followed(cluster, index))
    quads = list(parse("\n".join(cluster.await_same_dumps()).encode(), RdfFormat.N_QUADS))
    for name, shape in INDEXES.items():
        made = FollowedStore(read_shape({"shape": shape}, GateLimits()), quads).documents
        wanted = {doc_id: orjson.loads(source) for doc_id, source in made.items()}
        for number, node in cluster.nodes.items():
            try:
                _await(partial(_has, node, name, wanted))
            except TimeoutError:
                found = _documents(node, name)
                raise AssertionError(f"{name} at node {number}: {_difference(found, wanted)}") from None


def _await(holds: Callable[[], bool]) -> None:
    """A node that is starting does not answer for its indexes yet."""
    give_up_at = time.monotonic() + _FOLLOWED_S
    while time.monotonic() < give_up_at:
        with contextlib.suppress(httpx.HTTPError):
            if holds():
                return
        time.sleep(_PAUSE_S)
    raise TimeoutError


def _is_followed(cluster: ClusterService, index: int) -> bool:
    shown = following(cluster.nodes[cluster.leader()])
    return shown.keys() == INDEXES.keys() and all(
        one["state"] == "following" and one["position"] >= index for one in shown.values()
    )


def _has(node: Service, name: str, wanted: dict[str, Any]) -> bool:
    return _documents(node, name) == wanted


def _documents(node: Service, index: str) -> dict[str, Any]:
    with search_client(node.search_url) as client:
        client.post(f"/{index}/_refresh").raise_for_status()
        hits = client.post(f"/{index}/_search", json={"size": 10_000}).raise_for_status().json()["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits["hits"]}


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    other = [
        (one, found[one], wanted[one]) for one in found.keys() & wanted.keys() if found[one] != wanted[one]
    ]
    lacks, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    return f"lacks {lacks[:3]}, has {extra[:3]} too, and others: {other[:2]}"
