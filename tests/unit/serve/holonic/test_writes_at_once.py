"""Writes that come twice, and writes that come at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.unit.serve.conftest import dump
from tests.unit.serve.holonic.conftest import A, B, Holons, confirmed, in_path, refused

CONSTRUCT = "CONSTRUCT { ?s <urn:seen> ?o } WHERE { ?s <urn:p> ?o }"


def once(holons: Holons, key: str) -> Holons:
    """A client all of whose requests have this key."""
    http = httpx.Client(base_url=holons.http.base_url, trust_env=False, headers={"Idempotency-Key": key})
    return Holons(http)


def test_a_write_that_is_sent_again_takes_effect_once(holons: Holons) -> None:
    sender = once(holons, "again-1")
    with sender.http:
        writes: list[Callable[[], httpx.Response]] = [
            lambda: sender.declare(A, label="A"),
            lambda: sender.add(A, "interior", "<urn:s> <urn:p> [] ."),
            lambda: sender.connect("urn:p", A, A, CONSTRUCT),
            lambda: sender.run("urn:p", store="true"),
        ]
        first = [confirmed(write()) for write in writes]
        stored = dump(holons.http)
        again = [confirmed(write()) for write in writes]
        assert again == [{**confirmation, "message": "applied before"} for confirmation in first]
        assert dump(holons.http) == stored
        other = [
            sender.declare(A, label="B"),
            sender.declare(A),
            sender.add(A, "interior", "<urn:s> <urn:p> 1 ."),
            sender.connect("urn:p", A, B, CONSTRUCT),
        ]
        assert [answer.status_code for answer in other] == [422] * 4
        assert dump(holons.http) == stored


def test_of_declarations_at_once_one_succeeds(holons: Holons) -> None:
    confirmed(holons.declare(B))
    with ThreadPoolExecutor(8) as threads:
        for number in range(10):
            iri = f"urn:new:{number}"
            labels = [f"label {label}" for label in range(8)]
            answers = list(threads.map(lambda label, iri=iri: holons.declare(iri, label=label), labels))
            assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
            winner = next(label for label, a in zip(labels, answers, strict=True) if a.status_code == 200)
            assert holons.detail(iri)["label"] == winner

            def connect(query: str, iri: str = iri) -> httpx.Response:
                return holons.connect(iri, B, B, query)

            queries = [f"{CONSTRUCT} # {which}" for which in range(8)]
            answers = list(threads.map(connect, queries))
            assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    assert len(holons.get("portals")["portals"]) == 10


def test_layers_at_once_add_up(holons: Holons) -> None:
    confirmed(holons.declare(A))
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(
            lambda number: holons.add(A, "interior", f"<urn:s> <urn:p> {number} ."), range(100)
        )
        assert sum(confirmed(answer)["affected_triples"] for answer in answers) == 100
    assert len(holons.layer(A, "interior")) == 100


def test_a_run_at_once_with_others_leaves_one_of_the_results(holons: Holons) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.declare(B))
    confirmed(holons.connect("urn:p", A, B, CONSTRUCT))
    with ThreadPoolExecutor(8) as threads:
        adding = [
            threads.submit(holons.add, A, "interior", f"<urn:s> <urn:p> {number} .") for number in range(20)
        ]
        running = [threads.submit(holons.run, "urn:p", store="true") for _ in range(20)]
        for future in (*adding, *running):
            confirmed(future.result())
    confirmed(holons.run("urn:p", store="true"))
    assert len(holons.layer(B, "projection")) == 20


def test_a_list_is_of_one_state(holons: Holons) -> None:
    """Each write adds to the interior of a, then to that of b: b never has more."""
    for iri in (A, B):
        confirmed(holons.declare(iri))

    def write() -> None:
        for number in range(60):
            for iri in (A, B):
                confirmed(holons.add(iri, "interior", f"<urn:s> <urn:p> {number} ."))

    def count(graphs: list[dict[str, int]]) -> int:
        return sum(graph["triples"] for graph in graphs)

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not writing.done():
            counts = {
                holon["iri"]: count(holon["layers"]["interior"]) for holon in holons.get("holons")["holons"]
            }
            assert counts[A] - counts[B] in (0, 1)
        writing.result()
    refused(holons.http.get(f"/holonic/holons/{in_path('urn:none')}"), 404)
