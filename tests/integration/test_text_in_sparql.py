"""Searches within SPARQL over HTTP: Jena's `text:query` here and on Fuseki with jena-text, and the other two
spellings on indexes of the search port.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from benchmarks import fuseki
from benchmarks.service import BenchmarkError
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300)]

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
NAMES = {"label": LABEL, "comment": "http://www.w3.org/2000/01/rdf-schema#comment"}
PREFIXES = """PREFIX : <http://example/> PREFIX text: <http://jena.apache.org/text#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX search: <urn:graphdb:search#>
PREFIX con: <http://www.ontotext.com/connectors/elasticsearch#>
PREFIX inst: <http://www.ontotext.com/connectors/elasticsearch/instance#>
"""
DATA = """
:book1 rdfs:label "The printed page" ; rdfs:comment "A page, and another page" ; :year 1901 .
:book2 rdfs:label "Bus stop" ; :year 1902 . :book3 rdfs:label "Buses and a stop sign"@en ; :year 1903 .
:book4 rdfs:label "Stopp"@de, "Stop"@en ; :year 1904 . :book5 rdfs:label "ein Bus"@de ; :year 1905 .
:book6 rdfs:label "another X-word, it's quoted" ; rdfs:comment "Bus" ; :year 1906 .
:book7 rdfs:label "Grüße aus Köln"@de ; :year 1907 . :book8 :title "Bus" ; :year 1908 .
"""
# of Jena's documentation, on our words, and what its tests look for
TEXT_QUERIES = [
    "SELECT ?s { ?s text:query 'printed' }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus') }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus' 10) }",
    "SELECT ?s { ?s text:query (rdfs:comment 'page') }",
    "SELECT ?s ?year { ?s text:query (rdfs:label 'bus* stop') ; :year ?year }",
    "SELECT ?s ?l { ?s text:query (rdfs:label 'stop') ; rdfs:label ?l }",
    "SELECT ?s ?lit { (?s ?score ?lit) text:query (rdfs:label 'stop') }",
    "SELECT ?s ?lit { (?s ?score ?lit) text:query (rdfs:label 'stop' 'lang:en') }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus' 'lang:de') }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus'@de) }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus AND stop') }",
    "SELECT ?s { ?s text:query (rdfs:label '+stop -bus') }",
    "SELECT ?s { ?s text:query (rdfs:label '\"bus stop\"') }",
    "SELECT ?s { ?s text:query (rdfs:label '\"buses stop\"~2') }",
    "SELECT ?s { ?s text:query (rdfs:label 'stopp~1') }",
    "SELECT ?s { ?s text:query (rdfs:label 'p?ge') }",
    "SELECT ?s { ?s text:query (rdfs:label '(bus OR page) AND printed') }",
    "SELECT ?s { ?s text:query (rdfs:label 'grüße') }",
    'SELECT ?s { ?s text:query (rdfs:label "it\'s") }',
    "SELECT ?s { ?s text:query (rdfs:label 'nothing') }",
    "SELECT ?year { :book2 text:query (rdfs:label 'bus') ; :year ?year }",
    "SELECT ?year { :book1 text:query (rdfs:label 'bus') ; :year ?year }",
    "SELECT ?s { ?s text:query (rdfs:label 'bus') FILTER NOT EXISTS { ?s rdfs:comment ?c } }",
    "SELECT ?s { GRAPH :g { ?s text:query (rdfs:label 'bus') } }",
    "SELECT ?s ?g { GRAPH ?g { ?s text:query (rdfs:label 'bus') } }",
    "SELECT ?s { { ?s text:query (rdfs:label 'page') } UNION { ?s text:query (rdfs:label 'stop') } }",
    "SELECT (COUNT(*) AS ?n) { ?s text:query (rdfs:label 'bus stop') ; :year ?year }",
]


def insert() -> str:
    return f"{PREFIXES} INSERT DATA {{ {DATA} GRAPH :g {{ :there rdfs:label 'a bus in a graph' }} }}"


def rows(url: str, text: str, **parameters: str) -> Counter[Any]:
    answer = httpx.get(
        url,
        params={"query": PREFIXES + text, **parameters},
        headers={"Accept": "application/sparql-results+json"},
        timeout=HANG_S,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    bindings = answer.json()["results"]["bindings"]
    return Counter(tuple(sorted((name, term["value"]) for name, term in row.items())) for row in bindings)


def values(url: str, text: str) -> list[str]:
    """Those of the one column."""
    return sorted(row[0][1] for row in rows(url, text).elements())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With the literals, and an index of documents about some of the resources."""
    settings = {"GRAPHDB_TEXT__PREDICATES": str(list(NAMES.values())).replace("'", '"')}
    service = Service(tmp_path_factory.mktemp("text") / "data", search=True, environment=settings)
    try:
        service.start()
        service.wait_until(lambda: search(service, "GET", "_cat/indices").status_code == 200, 60)
        service.update(insert())
        vectors = {"type": "dense_vector", "dims": 2, "similarity": "cosine"}
        mappings = {"properties": {"title": {"type": "text"}, "place": vectors}}
        search(service, "PUT", "books", {"mappings": mappings})
        for number, (title, place) in enumerate(
            [("Red wine", [1, 0]), ("White wine, wine", [0.9, 0.2]), ("Beer", [0, 1])], start=1
        ):
            document = {"title": title, "place": place}
            search(service, "PUT", f"books/_doc/http:%2F%2Fexample%2Fbook{number}", document)
        yield service
    finally:
        service.close()


@pytest.fixture(scope="module")
def jena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The query endpoint of Fuseki with jena-text and the same literals."""
    if not fuseki.is_installed():
        pytest.skip("Fuseki cannot be run: Java and Maven are not there")
    directory = tmp_path_factory.mktemp("fuseki")
    try:
        with fuseki.running_fuseki(directory, indexed=NAMES) as running:
            httpx.post(
                f"{running.url}/update", data={"update": insert()}, timeout=HANG_S, trust_env=False
            ).raise_for_status()
            yield f"{running.url}/query"
    except BenchmarkError as error:
        pytest.skip(f"Fuseki cannot be run: {error}")


def search(service: Service, method: str, path: str, body: Any = None) -> httpx.Response:
    return httpx.request(method, f"{service.search_url}/{path}", json=body, timeout=HANG_S, trust_env=False)


def test_finds_what_jena_finds(service: Service, jena: str) -> None:
    different = {
        text: (found, expected)
        for text in TEXT_QUERIES
        if (found := rows(f"{service.url}/sparql", text)) != (expected := rows(jena, text))
    }
    assert different == {}


def test_ranks_as_jena_does(service: Service, jena: str) -> None:
    """The distances between scores are Jena's times k1 + 1: Jena's have the graph's name in them as well."""
    text = "SELECT ?s ?score { (?s ?score) text:query (rdfs:comment 'page bus') }"
    ours, theirs = (
        {dict(row)["s"]: float(dict(row)["score"]) for row in rows(url, text)}
        for url in (f"{service.url}/sparql", jena)
    )
    assert ours.keys() == theirs.keys()
    apart = [max(scores.values()) - min(scores.values()) for scores in (ours, theirs)]
    assert apart[0] == pytest.approx(2.2 * apart[1], rel=1e-3)


def test_what_an_update_writes_is_found(service: Service) -> None:
    for number in range(5):
        service.update(f"{PREFIXES} INSERT DATA {{ :new rdfs:label 'novel{number}' }}")
        assert values(f"{service.url}/sparql", f"SELECT ?s {{ ?s text:query 'novel{number}' }}") == [
            "http://example/new"
        ]


SPELLINGS = [
    """SERVICE <search:books> { [] search:query "wine" ;
        search:hit [ search:entity ?s ; search:score ?score ; search:highlight ?text ] } ?s :year ?year""",
    """?x a inst:books ; con:query "title:wine" ; con:entities ?s . ?s con:score ?score ; :year ?year ;
        con:snippets [ con:snippetText ?text ]""",
]


@pytest.mark.parametrize("pattern", SPELLINGS)
def test_an_index_joined_with_the_graph(service: Service, pattern: str) -> None:
    query = f"SELECT ?year ?text {{ {pattern} }} ORDER BY DESC(?score)"
    found = [dict(row) for row in rows(f"{service.url}/sparql", query)]
    assert found == [
        {"year": "1902", "text": "White <em>wine</em>, <em>wine</em>"},
        {"year": "1901", "text": "Red <em>wine</em>"},
    ]


@pytest.mark.parametrize(
    ("vector", "names"),
    [("(1 0)", ["book1", "book2"]), ("'[0, 1]'", ["book2", "book3"]), (":book1", ["book2", "book3"])],
)
def test_nearest_vectors(service: Service, vector: str, names: list[str]) -> None:
    query = f"""SELECT ?s {{ SERVICE <search:books> {{ [] search:knn {vector} ;
        search:field "place" ; search:k 2 ; search:hit [ search:entity ?s ] }} ?s :year ?year }}"""
    assert values(f"{service.url}/sparql", query) == [f"http://example/{name}" for name in names]


def test_an_index_that_follows_the_graph_is_as_new(service: Service) -> None:
    shape = {"query": f"SELECT ?id ?title {{ ?id <{LABEL}> ?title }}"}
    search(service, "PUT", "labels", {"settings": {"graph": {"shape": shape}}})
    for number in range(3):
        service.update(f"{PREFIXES} INSERT DATA {{ :other{number} rdfs:label 'fresh{number}' }}")
        query = f"""SELECT ?s {{ SERVICE <search:labels> {{ [] search:query "fresh{number}" ;
            search:hit [ search:entity ?s ] }} }}"""
        assert values(f"{service.url}/sparql", query) == [f"http://example/other{number}"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ('SERVICE <search:none> { [] search:query "a" ; search:hit [ search:entity ?s ] }', "no such index"),
        (
            'SERVICE <search:books> { [] search:query "a (" ; search:hit [ search:entity ?s ] }',
            "Failed to parse",
        ),
        ("?s text:query (:title 'bus')", "text.predicates"),
        ("?s text:query ?what", "a variable"),
    ],
)
def test_what_cannot_be_searched_is_said(service: Service, pattern: str, reason: str) -> None:
    answer = httpx.get(
        f"{service.url}/sparql",
        params={"query": f"{PREFIXES} SELECT * {{ {pattern} }}"},
        timeout=HANG_S,
        trust_env=False,
    )
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_explain_shows_the_searches(service: Service) -> None:
    answer = httpx.get(
        f"{service.url}/sparql",
        params={
            "query": f"{PREFIXES} SELECT * {{ {SPELLINGS[0]} . ?s text:query 'bus' }}",
            "explain": "true",
        },
        timeout=HANG_S,
        trust_env=False,
    )
    assert {report["index"] for report in answer.json()["lookups"]} == {"books", "literals of the graph"}


RESTRICTED = [
    # of all three books with vectors, the nearest to (1, 0) are 1 and 2; the pattern has 2 and 3
    (
        "search:knn (1 0) ; search:field 'place' ; search:k 1",
        "?s :year ?year FILTER (?year > 1901)",
        ["book2"],
    ),
    (
        "search:knn (1 0) ; search:field 'place' ; search:k 2",
        "?s :year ?y FILTER (?y > 1901)",
        ["book2", "book3"],
    ),
    ("search:knn :book1 ; search:field 'place' ; search:k 1", "?s :year 1903", ["book3"]),
    ("search:query 'wine' ; search:limit 1", "?s :year 1901", ["book1"]),
    ("search:query 'wine' ; search:limit 1", "{ ?s :year 1901 } UNION { ?s :year 1903 }", ["book1"]),
    ("search:query 'wine'", "VALUES ?s { :book2 :book9 } FILTER EXISTS { ?s :year ?y }", ["book2"]),
    ("search:query 'wine'", "?s :year 1999", []),
]


@pytest.mark.parametrize(("search", "pattern", "names"), RESTRICTED)
def test_a_pattern_in_the_braces_restricts_the_search(
    service: Service, search: str, pattern: str, names: list[str]
) -> None:
    query = f"""SELECT ?s {{ SERVICE <search:books> {{ [] {search} ; search:hit [ search:entity ?s ] .
        {pattern} }} }}"""
    assert values(f"{service.url}/sparql", query) == [f"http://example/{name}" for name in names]


def test_the_pattern_in_the_braces_is_a_part_of_the_query(service: Service) -> None:
    """Its variables are bound, and the patterns around are joined."""
    query = """SELECT ?label ?y ?total { ?s rdfs:label ?label .
        SERVICE <search:books> { [] search:query "wine" ; search:totalHits ?total ;
          search:hit [ search:entity ?s ] . ?s :year ?y FILTER (?y < 1902) } }"""
    assert list(rows(f"{service.url}/sparql", query)) == [
        (("label", "The printed page"), ("total", "1"), ("y", "1901"))
    ]


def test_a_large_pattern_is_looked_up_for_the_best_hits(service: Service) -> None:
    """It finds what the small one finds, and explain says which way."""
    many = " ".join(f":many{number} :kind :Thing ." for number in range(10_100))
    service.update(f"{PREFIXES} INSERT DATA {{ {many} :book2 :kind :Thing . :book3 :kind :Thing }}")
    for search, names in [
        ("search:knn (1 0) ; search:field 'place' ; search:k 1", ["book2"]),
        ("search:knn (1 0) ; search:field 'place'", ["book2", "book3"]),
        ("search:query 'wine' ; search:limit 1", ["book2"]),
        ("search:query 'wine OR beer'", ["book2", "book3"]),
        ("search:query 'wine OR beer' ; search:offset 1 ; search:limit 1", None),
    ]:
        found, plans = [], []
        for pattern in ("?s :kind :Thing", "?s :kind :Thing . ?s :year ?y"):
            query = f"""SELECT ?s {{ SERVICE <search:books> {{ [] {search} ;
                search:hit [ search:entity ?s ] . {pattern} }} }}"""
            found.append(values(f"{service.url}/sparql", query))
            explained = httpx.get(
                f"{service.url}/sparql",
                params={"query": PREFIXES + query, "explain": "true"},
                timeout=HANG_S,
                trust_env=False,
            )
            plans.append(explained.json()["lookups"][0]["plan"])
        assert found[0] == found[1]
        if names is not None:
            assert found[0] == [f"http://example/{name}" for name in names]
        assert ("looked up in the pattern" in plans[0], "filter the search" in plans[1]) == (True, True)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("FILTER (?score > 1)", "has to be about the variable of search:entity"),
        ("?s :year ?y FILTER (?score > 1)", "?score in the pattern"),
        ("?other :year ?y", "has to be about the variable of search:entity"),
        ("?s text:query 'bus'", "another search"),
        ("SERVICE <http://example/> { ?s ?p ?o }", "another search or SERVICE"),
    ],
)
def test_a_pattern_that_restricts_nothing_is_refused(service: Service, pattern: str, reason: str) -> None:
    query = f"""{PREFIXES} SELECT * {{ SERVICE <search:books> {{ [] search:query "wine" ;
        search:hit [ search:entity ?s ; search:score ?score ] . {pattern} }} }}"""
    answer = httpx.get(f"{service.url}/sparql", params={"query": query}, timeout=HANG_S, trust_env=False)
    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["error"]
