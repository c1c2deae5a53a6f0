"""The service as clients of RDF4J and GraphDB see it: RDF4J's own in Java, rdflib's, and graphdb.js."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rdflib import BNode, Graph, URIRef
from rdflib.contrib.graphdb import GraphDBClient
from rdflib.contrib.rdf4j import RDF4JClient
from rdflib.contrib.rdf4j.client import Transaction
from rdflib.contrib.rdf4j.exceptions import TransactionCommitError
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from tests.support.java_programs import run_java, why_no_java
from tests.support.npm_packages import npm_directory, why_not_installed
from tests.support.service import Service

pytestmark = pytest.mark.ray

SUPPORT = Path(__file__).parents[1] / "support"
JAVA = SUPPORT / "Rdf4jPeer.java"
ARTIFACTS = ("org.eclipse.rdf4j:rdf4j-repository-http:5.1.3", "org.slf4j:slf4j-nop:1.7.36")
NPM, PACKAGES = "graphdb-js", ("graphdb@3.0.4",)
ID = "graphdb"
ADA, BOB, KNOWS, GRAPH = (URIRef(f"urn:r:{name}") for name in ("ada", "bob", "knows", "graph"))


@pytest.fixture(scope="module")
def empty(service: Service) -> Iterator[Service]:
    """The shared service, emptied before and after: these clients count everything."""
    service.update("DROP ALL")
    yield service
    service.update("DROP ALL")


@pytest.fixture
def rdf4j(empty: Service) -> Iterator[RDF4JClient]:
    with RDF4JClient(empty.url, trust_env=False) as client:
        yield client
    empty.update("DROP ALL")


def test_rdf4js_own_client(empty: Service) -> None:
    reason = why_no_java(JAVA, ARTIFACTS)
    if reason is not None:
        pytest.skip(reason)
    told = run_java(JAVA, empty.url, ID).splitlines()
    assert told[-1] == "a conflict refuses the commit"
    assert len(told) > 30


def test_graphdb_js(empty: Service) -> None:
    reason = why_not_installed(NPM, PACKAGES)
    if reason is not None:
        pytest.skip(reason)
    script = shutil.copy(SUPPORT / "graphdb_peer.js", npm_directory(NPM))  # beside what it imports
    done = subprocess.run(["node", script, empty.url, ID], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1] == "statements are deleted"


def test_rdflib_reads_and_writes_statements(rdf4j: RDF4JClient) -> None:
    repository = rdf4j.repositories.get(ID)
    assert [one.identifier for one in rdf4j.repositories.list()] == [ID]
    assert repository.health()
    repository.upload(f'<{ADA}> <{KNOWS}> <{BOB}> <{GRAPH}> .\n<{ADA}> <{KNOWS}> "é"@en .')
    assert repository.size() == 2
    assert repository.size(GRAPH) == repository.size(DATASET_DEFAULT_GRAPH_ID) == 1
    assert repository.graph_names() == [GRAPH]
    assert (ADA, KNOWS, BOB) in repository.get(graph_name=GRAPH, content_type="text/turtle")
    assert len(repository.query("SELECT * { ?s ?p ?o }")) == 2
    repository.update(f"INSERT DATA {{ <{BOB}> <{KNOWS}> <{ADA}> }}")
    repository.delete(subj=BOB)
    repository.overwrite(f"<{BOB}> <{KNOWS}> <{ADA}> .", graph_name=GRAPH, content_type="text/turtle")
    assert set(repository.get(graph_name=GRAPH, content_type="text/turtle")) == {(BOB, KNOWS, ADA)}
    repository.overwrite(f"<{ADA}> <{KNOWS}> <{ADA}> .")
    assert repository.size() == 1


def test_rdflib_keeps_namespaces_and_graphs(rdf4j: RDF4JClient) -> None:
    repository = rdf4j.repositories.get(ID)
    repository.namespaces.set("r", "urn:r:")
    assert repository.namespaces.get("r") == "urn:r:"
    assert [one.prefix for one in repository.namespaces.list()] == ["r"]
    repository.namespaces.remove("r")
    assert repository.namespaces.get("r") is None
    graph = Graph()
    graph.add((ADA, KNOWS, BNode()))
    repository.graphs.overwrite(GRAPH, graph)
    repository.graphs.add(DATASET_DEFAULT_GRAPH_ID, graph)
    assert len(repository.graphs.get(GRAPH)) == len(repository.graphs.get(DATASET_DEFAULT_GRAPH_ID)) == 1
    repository.graphs.clear(GRAPH)
    assert len(repository.graphs.get(GRAPH)) == 0


def test_rdflib_has_transactions(rdf4j: RDF4JClient) -> None:
    repository = rdf4j.repositories.get(ID)
    with repository.transaction() as transaction:
        transaction.ping()
        transaction.upload(f"<{ADA}> <{KNOWS}> <{BOB}> <{GRAPH}> .")
        transaction.update(f"INSERT DATA {{ <{BOB}> <{KNOWS}> <{ADA}> }}")
        assert transaction.size() == 2
        assert repository.size() == 0
        assert len(transaction.query("SELECT * { ?s ?p ?o }")) == 2
        transaction.delete(f"<{BOB}> <{KNOWS}> <{ADA}> .")
        assert len(transaction.get(content_type="application/n-triples")) == 1
    assert repository.size() == 1
    undone: Any = Transaction.create(repository)
    undone.upload(f"<{ADA}> <{ADA}> <{BOB}> .")
    undone.rollback()
    assert repository.size() == 1
    refused: Any = Transaction.create(repository)
    assert refused.size() == 1
    refused.upload(f"<{ADA}> <{ADA}> <{BOB}> .")
    repository.update(f"INSERT DATA {{ <{BOB}> <{KNOWS}> <{ADA}> }}")
    with pytest.raises(TransactionCommitError, match="409"):
        refused.commit()
    assert repository.size() == 2


def test_rdflibs_client_of_graphdb(rdf4j: RDF4JClient, empty: Service) -> None:
    with GraphDBClient(empty.url, trust_env=False) as client:
        [shown] = client.graphdb_repositories.list()
        assert (shown.id, shown.readable, shown.writable) == (ID, True, True)
        assert client.graphdb_repositories.get(ID).id == ID
        assert client.graphdb_repositories.size(ID).total == 0
        repository = client.repositories.get(ID)
        repository.upload(f"<{ADA}> <{KNOWS}> <{BOB}> .")
        assert client.graphdb_repositories.size(ID).explicit == 1
