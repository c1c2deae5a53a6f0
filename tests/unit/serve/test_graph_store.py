"""/data: naming graphs, reading and writing them in every syntax."""

import gzip
from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest
from backports import zstd
from pyoxigraph import Quad, RdfFormat, parse

from tests.unit.serve.conftest import SETTINGS, dump, error_of, update

NT, NQ = "application/n-triples", "application/n-quads"
ONE = '<http://x/s> <http://x/p> "one" .\n'
TWO = '<http://x/s> <http://x/p> "two" .\n'
G = "http://g/1"


def put(client: httpx.Client, address: str, body: str, media_type: str = NT) -> httpx.Response:
    answer = client.put(address, content=body, headers={"Content-Type": media_type})
    assert answer.status_code == 200, answer.text
    return answer


def in_graph(line: str, graph: str = G) -> str:
    return f"{line.rstrip().removesuffix('.')}<{graph}> ."


# Naming


@pytest.mark.parametrize(
    ("address", "stored"),
    [
        pytest.param("/data", ONE.rstrip(), id="nothing named: the default graph"),
        pytest.param("/data?default", ONE.rstrip(), id="default"),
        pytest.param("/data?default=", ONE.rstrip(), id="default with an empty value"),
        pytest.param(f"/data?graph={quote(G, safe='')}", in_graph(ONE), id="encoded"),
        pytest.param(f"/data?graph={G}", in_graph(ONE), id="not encoded"),
        pytest.param("/data?graph=http://g/%2531", in_graph(ONE, "http://g/%31"), id="decoded once"),
        pytest.param("/data?graph=urn:x:y", in_graph(ONE, "urn:x:y"), id="urn"),
    ],
)
def test_indirect_naming(client: httpx.Client, address: str, stored: str) -> None:
    put(client, address, ONE)
    assert dump(client) == [stored]
    assert client.get(address).text == ONE
    assert client.delete(address).json()["affected_triples"] == 1
    assert dump(client) == []


def test_direct_naming(client: httpx.Client) -> None:
    put(client, "/data/people/a%20b", ONE)
    assert dump(client) == [in_graph(ONE, f"{client.base_url}/data/people/a%20b")]
    assert client.get("/data/people/a%20b").text == ONE
    assert client.get("/data", params={"graph": f"{client.base_url}/data/people/a%20b"}).text == ONE


@pytest.mark.parametrize(
    "address",
    [
        "/data?graph=relative",
        "/data?graph=",
        "/data?graph=http://a%20b/",
        "/data?graph=http://g/1&graph=http://g/2",
        "/data?graph=http://g/1&default",
        "/data/direct?graph=http://g/1",
        "/data/direct?default",
        "/data?dataset=some",
        "/data?dataset",
        "/data?graph=%FF",
        "/data?graph=%",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
def test_no_such_name(client: httpx.Client, method: str, address: str) -> None:
    answer = client.request(method, address, content=ONE, headers={"Content-Type": NT})
    assert answer.status_code == 400
    error_of(answer)
    assert dump(client) == []


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_the_whole_dataset_can_only_be_read(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/data?dataset=all", content=ONE, headers={"Content-Type": NT})
    assert answer.status_code == 400
    assert "dataset" in error_of(answer)


# Reading

READABLE = {
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/n-triples-star": RdfFormat.N_TRIPLES,
    "text/turtle": RdfFormat.TURTLE,
    "application/trig": RdfFormat.TRIG,
    "application/n-quads": RdfFormat.N_QUADS,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
}


@pytest.mark.parametrize("media_type", READABLE)
@pytest.mark.parametrize("graph", [None, G])
def test_get_in_every_syntax(client: httpx.Client, media_type: str, graph: str | None) -> None:
    address = f"/data?graph={graph}" if graph else "/data"
    put(client, address, ONE + TWO)
    answer = client.get(address, headers={"Accept": media_type})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{media_type}; version=1.2"
    named = graph and media_type in ("application/trig", "application/n-quads")
    expected = [in_graph(ONE), in_graph(TWO)] if named else [ONE.rstrip(), TWO.rstrip()]
    found = [f"{quad} ." for quad in parse(answer.content, READABLE[media_type])]
    assert sorted(found) == sorted(expected)


def test_trig_says_graph(client: httpx.Client) -> None:
    put(client, f"/data?graph={G}", ONE)
    assert client.get(f"/data?graph={G}", headers={"Accept": "application/trig"}).text.startswith(
        f"GRAPH <{G}> {{"
    )


def test_the_default_syntax_is_n_triples(client: httpx.Client) -> None:
    with httpx.Client(base_url=client.base_url, trust_env=False) as plain:
        del plain.headers["accept"]
        assert plain.get("/data").headers["content-type"] == "application/n-triples; version=1.2"
    assert client.get("/data").headers["content-type"] == "application/n-triples; version=1.2"


@pytest.mark.parametrize(
    ("media_type", "syntax"),
    [
        ("application/n-quads", RdfFormat.N_QUADS),
        ("application/trig", RdfFormat.TRIG),
        ("application/ld+json", RdfFormat.JSON_LD),
    ],
)
def test_the_whole_dataset(client: httpx.Client, media_type: str, syntax: RdfFormat) -> None:
    put(client, "/data", ONE)
    put(client, f"/data?graph={G}", TWO)
    answer = client.get("/data?dataset=all", headers={"Accept": media_type})
    assert answer.headers["content-type"] == f"{media_type}; version=1.2"
    assert (
        sorted(f"{quad} ." for quad in parse(answer.content, syntax)) == [in_graph(TWO), ONE.rstrip()][::-1]
    )


def test_a_dataset_is_not_acceptable_as_triples(client: httpx.Client) -> None:
    answer = client.get("/data?dataset=all", headers={"Accept": "text/turtle"})
    assert answer.status_code == 406
    assert "application/n-quads" in error_of(answer)


@pytest.mark.parametrize(("name", "media_type"), [("ttl", "text/turtle"), ("jsonld", "application/ld+json")])
def test_format_wins_over_accept(client: httpx.Client, name: str, media_type: str) -> None:
    answer = client.get("/data", params={"format": name}, headers={"Accept": "application/rdf+xml"})
    assert answer.headers["content-type"] == f"{media_type}; version=1.2"


def test_head(client: httpx.Client) -> None:
    put(client, f"/data?graph={G}", ONE)
    answer = client.head(f"/data?graph={G}", headers={"Accept": "text/turtle"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "text/turtle; version=1.2"
    assert client.head("/data").status_code == 200
    assert client.head("/data?graph=http://g/none").status_code == 404
    assert client.head("/data", headers={"Accept": "text/html"}).status_code == 406


def test_graphs_that_do_not_exist(client: httpx.Client) -> None:
    for method in ("GET", "DELETE"):
        answer = client.request(method, "/data?graph=http://g/none")
        assert answer.status_code == 404
        assert "http://g/none" in error_of(answer)
    assert client.get("/data").status_code == 200
    assert client.delete("/data").json()["affected_triples"] == 0


def test_a_graph_that_was_put_empty_exists(client: httpx.Client) -> None:
    put(client, f"/data?graph={G}", "")
    assert (client.get(f"/data?graph={G}").status_code, client.get(f"/data?graph={G}").text) == (200, "")
    assert client.delete(f"/data?graph={G}").status_code == 200
    assert client.get(f"/data?graph={G}").status_code == 404


# Writing


def test_put_replaces_and_counts_the_difference(client: httpx.Client) -> None:
    numbers = [f"<http://x/s> <http://x/p> {number!r} .\n".replace("'", '"') for number in "1234"]
    assert put(client, f"/data?graph={G}", "".join(numbers[:3])).json()["affected_triples"] == 3
    answer = put(client, f"/data?graph={G}", "".join(numbers[1:])).json()
    assert (answer["success"], answer["affected_triples"]) == (True, 2)
    assert sorted(client.get(f"/data?graph={G}").text.splitlines(True)) == numbers[1:]


def test_post_merges(client: httpx.Client) -> None:
    put(client, "/data", ONE)
    answer = client.post("/data", content=ONE + TWO, headers={"Content-Type": NT})
    assert (answer.status_code, answer.json()["affected_triples"]) == (200, 1)
    assert dump(client) == [ONE.rstrip(), TWO.rstrip()]


WRITABLE = {
    "text/turtle": ONE,
    "text/turtle; charset=utf-8": ONE,
    "application/n-triples": ONE,
    "application/n-quads": ONE,
    "application/trig": f"{{ {ONE} }}",
    "application/rdf+xml": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
    '<r:Description r:about="http://x/s"><x:p>one</x:p></r:Description></r:RDF>',
    "application/ld+json": '{"@id": "http://x/s", "http://x/p": "one"}',
}


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("media_type", WRITABLE)
@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_every_syntax_is_read(client: httpx.Client, media_type: str, encoding: str) -> None:
    headers = {"Content-Type": media_type, "Content-Encoding": encoding}
    answer = client.put(
        f"/data?graph={G}", content=COMPRESS[encoding](WRITABLE[media_type].encode()), headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert dump(client) == [in_graph(ONE)]


QUADS = in_graph(ONE, "http://g/a") + "\n" + TWO
OLD = [in_graph(TWO, "http://g/a"), in_graph(TWO, "http://g/b"), '<http://x/s> <http://x/p> "old" .']


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("media_type", ["application/n-quads", "application/trig"])
def test_graphs_of_the_body(client: httpx.Client, method: str, media_type: str) -> None:
    put(client, "/data", "\n".join(OLD), "application/n-quads")
    body = QUADS if media_type == "application/n-quads" else f"GRAPH <http://g/a> {{ {ONE} }} {TWO}"
    answer = client.request(method, "/data", content=body, headers={"Content-Type": media_type})
    assert answer.status_code == 200
    new = [in_graph(ONE, "http://g/a"), TWO.rstrip()]
    kept = [OLD[1]] if method == "PUT" else OLD
    assert dump(client) == sorted([*new, *kept])


@pytest.mark.parametrize("address", ["/data?default", f"/data?graph={G}", "/data/direct"])
def test_a_named_graph_in_the_body_of_a_named_graph(client: httpx.Client, address: str) -> None:
    answer = client.put(address, content=QUADS, headers={"Content-Type": "application/n-quads"})
    assert answer.status_code == 400
    assert "graph" in error_of(answer)
    assert dump(client) == []


def test_relative_iris_resolve_against_the_graph(client: httpx.Client) -> None:
    put(client, "/data?graph=http://g/dir/file", "<> <#p> <other> .", "text/turtle")
    expected = "<http://g/dir/file> <http://g/dir/file#p> <http://g/dir/other> <http://g/dir/file> ."
    assert dump(client) == [expected]


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RELATIVE = {
    "text/turtle": "<> <#p> <other> .",
    "application/trig": "<> <#p> <other> .",
    "application/rdf+xml": f'<rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about=""><p xmlns="BASE#" '
    'rdf:resource="other"/></rdf:Description></rdf:RDF>',
    "application/ld+json": '{"@context": {"p": {"@id": "BASE#p", "@type": "@id"}}, "@id": "", "p": "other"}',
}


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("address", ["/data", "/data?default", "/data?"])
@pytest.mark.parametrize("media_type", RELATIVE)
def test_relative_iris_resolve_against_the_address(
    client: httpx.Client, media_type: str, address: str, method: str
) -> None:
    base = f"{client.base_url}/data"
    body = RELATIVE[media_type].replace("BASE", base)
    answer = client.request(method, address, content=body, headers={"Content-Type": media_type})
    assert answer.status_code == 200, answer.text
    assert dump(client) == [f"<{base}> <{base}#p> <{client.base_url}/other> ."]


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("graph.example", "http://graph.example/data"),  # as a proxy passes it on
        ("graph.example:8443", "http://graph.example:8443/data"),
        ("[2001:db8::1]:7001", "http://[2001:db8::1]:7001/data"),
        ("[::1]", "http://[::1]/data"),
    ],
)
def test_the_address_is_that_of_the_host_header(client: httpx.Client, host: str, base: str) -> None:
    headers = {"Content-Type": "text/turtle", "Host": host}
    assert client.put("/data", content="<#s> <#p> <#o> .", headers=headers).status_code == 200
    assert dump(client) == [f"<{base}#s> <{base}#p> <{base}#o> ."]


@pytest.mark.parametrize("media_type", ["application/trig", "application/ld+json"])
def test_relative_graph_names_resolve_against_the_address(client: httpx.Client, media_type: str) -> None:
    body = {
        "application/trig": f"<#g> {{ {ONE} }}",
        "application/ld+json": '{"@id": "#g", "@graph": [{"@id": "http://x/s", "http://x/p": "one"}]}',
    }
    put(client, "/data", body[media_type], media_type)
    assert dump(client) == [in_graph(ONE, f"{client.base_url}/data#g")]


def test_a_base_in_the_body_wins(client: httpx.Client) -> None:
    put(client, "/data", "@base <http://x/> . <s> <p> 'one' .", "text/turtle")
    assert dump(client) == [ONE.rstrip()]


@pytest.mark.parametrize("media_type", [NT, "application/n-quads"])
def test_lines_have_no_relative_iris(client: httpx.Client, media_type: str) -> None:
    answer = client.put("/data", content="<s> <p> <o> .", headers={"Content-Type": media_type})
    assert answer.status_code == 400
    answer = client.put("/data", content=ONE, headers={"Content-Type": media_type})
    assert answer.status_code == 200
    assert dump(client) == [ONE.rstrip()]


def test_blank_nodes_of_two_bodies_differ(client: httpx.Client) -> None:
    for _ in range(2):
        client.post("/data", content='_:a <http://x/p> "one" .', headers={"Content-Type": NT})
    quads: set[Quad] = set(parse(client.get("/data").content, RdfFormat.N_TRIPLES))
    assert len({quad.subject for quad in quads}) == 2


def test_a_failed_put_leaves_the_old_graph(client: httpx.Client) -> None:
    put(client, f"/data?graph={G}", ONE)
    answer = client.put(f"/data?graph={G}", content=TWO + "<http://x/s> <", headers={"Content-Type": NT})
    assert answer.status_code == 400
    assert "line 2" in error_of(answer)
    assert dump(client) == [in_graph(ONE)]


def test_union_of_writes_is_seen_by_queries(client: httpx.Client) -> None:
    put(client, f"/data?graph={G}", ONE)
    update(client, f"COPY <{G}> TO DEFAULT")
    assert client.get("/data").text == ONE


# Bulk loads


def load(
    client: httpx.Client, lines: str, address: str = "/data?bulk=true", type: str = NQ
) -> httpx.Response:
    return client.post(address, content=lines, headers={"Content-Type": type})


def test_a_bulk_load_is_larger_than_other_bodies_and_keeps_labels(client: httpx.Client) -> None:
    lines = (
        "_:mine <http://x/p> <http://x/o> .\n" + in_graph(ONE) + "\n" + "#" * SETTINGS.server.max_body_bytes
    )
    assert put_refused(client, lines) == 413
    assert load(client, lines).json()["affected_triples"] == 2
    assert load(client, "_:mine <http://x/p> <http://x/other> .").json()["affected_triples"] == 1
    assert sorted(dump(client)) == [
        in_graph(ONE),
        "_:mine <http://x/p> <http://x/o> .",
        "_:mine <http://x/p> <http://x/other> .",
    ]


def put_refused(client: httpx.Client, lines: str) -> int:
    return client.put("/data", content=lines, headers={"Content-Type": NQ}).status_code


def test_a_malformed_bulk_load_changes_nothing(client: httpx.Client) -> None:
    answer = load(client, ONE + "<http://x/s> .")
    assert (answer.status_code, dump(client)) == (400, [])


@pytest.mark.parametrize(
    ("address", "media_type", "status"),
    [
        ("/data?bulk=true&default", NQ, 400),
        (f"/data?bulk=true&graph={G}", NQ, 400),
        ("/data?bulk=perhaps", NQ, 400),
        ("/data?bulk=true", NT, 415),
    ],
)
def test_what_is_no_bulk_load(client: httpx.Client, address: str, media_type: str, status: int) -> None:
    assert load(client, ONE, address, media_type).status_code == status
    assert dump(client) == []
