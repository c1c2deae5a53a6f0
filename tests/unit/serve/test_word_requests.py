"""Requests for searches that differ in their words alone are answered as if each were read in full."""

from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.config import Settings
from graphdb.config.limits import GateLimits
from graphdb.node import Evaluated
from graphdb.sparql.parser import parse_query
from graphdb.sparql.syntax import Query
from graphdb.store.query_plans import plan_of
from graphdb.store.small_joins import SmallJoin
from graphdb.store.word_searches import WordSearch, star_of_any
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.indexed_graph import IndexedGraph
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

JSON, TSV = "application/sparql-results+json", "text/tab-separated-values"
TEXT = """PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:>
SELECT * { (?s ?score) text:query (:label "WORDS" 9) . ?s :p ?x }"""
WORDS = ("red", "blue", "red blue", "Green  red", "none", "blue")
OTHERS = ("red AND blue", "re*", "red-blue", "ré", "", "x" * 300)


class SearchingBackend(MemoryBackend):
    """Searches the literals of a graph of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = IndexedGraph()
        self.sought: list[str] = []  # those of searches for words that were answered

    def search(self, join: SmallJoin, query: Callable[[], Query]) -> Evaluated | None:
        table = None if join.star is None else self.graph.joined(join.star)
        return None if table is None else Evaluated(table, self.snapshot_index())

    def search_words(self, search: WordSearch, words: str) -> tuple[bytes, int] | None:
        found = self.graph.answer(search, words)
        if found is not None:
            self.sought.append(words)
        return None if found is None else (found, self.snapshot_index())


@pytest.fixture
def backend() -> SearchingBackend:
    backend = SearchingBackend()
    for number, words in enumerate(("red", "blue", "green red", "red blue blue", "ré red-blue")):
        subject = NamedNode(f"urn:{number}")
        label = Quad(subject, NamedNode("urn:label"), Literal(words), DefaultGraph())
        price = Quad(subject, NamedNode("urn:p"), Literal(f'"{number}"'), DefaultGraph())
        backend.graph.apply([label, price], 0)
    backend.graph.take_in()
    return backend


@pytest.fixture
def client(backend: SearchingBackend) -> Iterator[httpx.Client]:
    with (
        serving(build_app(backend, Settings())) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http,
    ):
        star = star_of_any(lambda words: plan_of(parse_query(TEXT.replace("WORDS", words)), GateLimits()))
        assert star is not None
        assert backend.graph.joined(star) is None  # nothing is held yet
        backend.graph.take_in()
        yield http


def ask_text(http: httpx.Client, text: str, accept: str = JSON, path: str = "/sparql") -> httpx.Response:
    headers = {"Content-Type": "application/sparql-query", "Accept": accept}
    return http.post(path, content=text.encode(), headers=headers)


def ask_form(http: httpx.Client, text: str, accept: str = JSON) -> httpx.Response:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": accept}
    return http.post("/sparql", content=f"query={quote_plus(text)}", headers=headers)


def ask_address(http: httpx.Client, text: str, accept: str = JSON) -> httpx.Response:
    return http.get(f"/sparql?query={quote(text)}", headers={"Accept": accept})


def shown(answer: httpx.Response) -> object:
    names = ("content-type", "x-snapshot-index", "x-evaluated", "etag", "vary", "content-length")
    return answer.status_code, answer.content, [answer.headers.get(name) for name in names]


@pytest.mark.parametrize("accept", [JSON, TSV])
@pytest.mark.parametrize("ask", [ask_text, ask_form, ask_address])
def test_each_is_answered_as_if_it_were_read_in_full(
    client: httpx.Client,
    backend: SearchingBackend,
    ask: Callable[[httpx.Client, str, str], httpx.Response],
    accept: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [TEXT.replace("WORDS", words) for words in (*WORDS, *OTHERS, *WORDS)]
    with monkeypatch.context() as patched:
        patched.setattr(SearchingBackend, "search_words", lambda *_: None)
        wanted = [shown(ask(client, text, accept)) for text in texts]
    backend.sought.clear()
    assert [shown(ask(client, text, accept)) for text in texts] == wanted
    assert backend.sought == [*WORDS, *WORDS]


PRICED = TEXT.replace('"WORDS" 9)', '"red" 9)').replace("?x }", '"WORDS" }')


@pytest.mark.parametrize("form", [f"query={quote_plus(PRICED)}", f"x=%22WORDS%22&query={quote_plus(TEXT)}"])
def test_words_that_are_not_what_is_sought_are_no_others(
    client: httpx.Client, backend: SearchingBackend, form: str
) -> None:
    for words in ("red", "blue", "green", "red", "blue"):
        ask = form.replace("WORDS", words) if form.startswith("query") else form.replace("WORDS", words, 1)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": JSON}
        answer = client.post("/sparql", content=ask.replace("WORDS", "red"), headers=headers)
        assert answer.status_code == 200
        assert answer.headers["x-evaluated"] == "at once"
    assert backend.sought == []


def test_other_heads_and_parameters_are_searches_of_their_own(
    client: httpx.Client, backend: SearchingBackend
) -> None:
    for words in WORDS:
        ask_text(client, TEXT.replace("WORDS", words))
    sought = list(backend.sought)
    assert sought
    tsv = ask_text(client, TEXT.replace("WORDS", "blue"), TSV)
    assert tsv.headers["content-type"].startswith(TSV)
    other = ask_text(client, TEXT.replace("WORDS", "blue"), JSON, "/sparql?format=tsv")
    assert other.content == tsv.content
    past = ask_text(client, TEXT.replace("WORDS", "blue"), JSON, "/sparql?min_index=9999999&timeout=10ms")
    assert past.status_code == 503
    assert backend.sought == sought
