"""Random requests to /holonic, of few names, so that much of what they name is there."""

import json
from random import Random
from typing import Any
from urllib.parse import quote

from tests.support.fuzzing.mutations import mutated
from tests.support.fuzzing.seeds import body_seeds

__all__ = ["random_holonic"]

IRIS = ("urn:a", "http://e/b/c?d#e", "urn:é", "http://e/x y", "", "rel", "urn:" + "x" * 5_000)
TENANTS = ("", "?tenant=t", "?tenant=default", "?tenant=%zz", "?tenant=a:b", "?tenant=t&tenant=t")
LAYERS = ("interior", "boundary", "context", "projection", "membrane", "nothing")
SLUGS = (None, "s", "a.b", "a:b", "", 1)
QUERIES = (
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "CONSTRUCT { ?s ?p [] } WHERE { GRAPH ?g { ?s ?p ?o } }",
    "CONSTRUCT WHERE { ?s ?p ?o . ?a ?b ?c . ?d ?e ?f }",
    "CONSTRUCT { } FROM <urn:g> WHERE { }",
    "SELECT * { }",
    "",
)
SHAPES = (
    "@prefix sh: <http://www.w3.org/ns/shacl#> . "
    "<urn:s> a sh:NodeShape ; sh:targetSubjectsOf <http://e/p> ; "
    "sh:property [ sh:path <http://e/p> ; sh:maxCount 0 ] ."
)


def random_holonic(random: Random) -> tuple[bytes, bytes, bytes, bytes]:
    """Method, target, media type and body of one."""
    method, path, members = _request(random)
    target = f"/holonic/{path}{random.choice(TENANTS)}".encode()
    if members is None:
        return method, target, b"", b""
    if random.random() < 0.1:
        members[random.choice(("iri", "turtle", "extra"))] = random.choice((None, 1, [], {}, "\0"))
    body = json.dumps(members).encode()
    if random.random() < 0.1:
        body = mutated(random, body, (body,))
    return method, target, b"application/json", body


def _request(random: Random) -> tuple[bytes, str, dict[str, Any] | None]:
    iri, other = random.choice(IRIS[:3]), random.choice(IRIS)
    holon, portal = f"holons/{quote(other, safe='')}", f"portals/{quote(other, safe='')}"
    members: dict[str, Any]
    match random.randrange(8):
        case 0 | 1:
            members = {"iri": iri, "label": random.choice((None, "l", '"\n'))}
            return b"POST", "holons", members | ({"member_of": other} if random.random() < 0.4 else {})
        case 2 | 3:
            turtle = random.choice((SHAPES, *(_turtle(random) for _ in range(3))))
            members = {"turtle": turtle, "graph_slug": random.choice(SLUGS)}
            return b"POST", f"{holon}/{random.choice(LAYERS)}", members
        case 4:
            members = {"iri": iri, "source": random.choice(IRIS), "target": other}
            return b"POST", "portals", members | {"construct_query": random.choice(QUERIES)}
        case 5:
            return b"POST", f"{portal}/run", random.choice((None, {"store": True}, {"store": False}))
    path = random.choice(("health", "holons", "depth", "portals", holon, f"{holon}/{random.choice(LAYERS)}"))
    return random.choice((b"GET", b"GET", b"GET", b"HEAD", b"DELETE")), path, None


def _turtle(random: Random) -> str:
    document = random.choice(body_seeds("text/turtle"))
    if random.random() < 0.3:
        document = mutated(random, document, body_seeds("application/trig"))
    return document.decode(errors="replace")
