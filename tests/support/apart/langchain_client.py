"""What LangChain and LlamaIndex do with a service, in an environment that has them.

    python langchain_client.py GRAPH_URL SEARCH_URL

One line of JSON for each step: its name, and what it came to.
"""

import json
import sys
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from langchain_community.graphs import OntotextGraphDBGraph, RdfGraph
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_elasticsearch import BM25Strategy, DenseVectorStrategy, ElasticsearchStore
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.elasticsearch import ElasticsearchStore as LlamaStore

INSERT = """PREFIX owl: <http://www.w3.org/2002/07/owl#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
INSERT DATA { :Person a owl:Class ; rdfs:comment "a person" . :ann a :Person ; :name "Ann" }"""
PREFIX = "PREFIX : <http://lc.example/> "
TEXTS = ["red apples and pears", "green apples", "a blue bicycle"]


class Letters(Embeddings):
    """Counts letters: a model of three dimensions."""

    def embed_query(self, text: str) -> list[float]:
        return [1.0 + text.count(letter) for letter in "ael"]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def say(step: str, value: Any) -> None:
    print(json.dumps([step, value]), flush=True)


def change(url: str, text: str) -> None:
    urlopen(url, urlencode({"update": PREFIX + text}).encode()).close()


def graphs(url: str) -> None:
    query, update = f"{url}/sparql", f"{url}/update"
    change(update, INSERT)  # RdfGraph takes no empty graph, and cannot update an endpoint
    graph = RdfGraph(query_endpoint=query, update_endpoint=update, standard="owl")
    say("schema", "a person" in graph.get_schema)
    say("rows", [str(row.name) for row in graph.query(PREFIX + "SELECT ?name { ?s :name ?name }")])
    ontology = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?s a <http://www.w3.org/2002/07/owl#Class> }"
    ontotext = OntotextGraphDBGraph(query_endpoint=query, query_ontology=ontology)
    say("ontology", "a person" in ontotext.get_schema)
    say("named rows", [str(row.name) for row in ontotext.query(PREFIX + "SELECT ?name { ?s :name ?name }")])
    change(update, "DELETE WHERE { :Person ?p ?o } ; DELETE WHERE { :ann ?p ?o }")


def langchain(url: str) -> None:
    for name, strategy in (
        ("knn", DenseVectorStrategy()),
        ("hybrid", DenseVectorStrategy(hybrid=True)),
    ):
        store = ElasticsearchStore(f"lc-{name}", es_url=url, embedding=Letters(), strategy=strategy)
        documents = [Document(text, metadata={"number": number}) for number, text in enumerate(TEXTS)]
        ids = store.add_documents(documents)
        found = store.similarity_search("green apples", k=2)
        say(name, [found[0].page_content, found[0].metadata])
        filtered = store.similarity_search("apples", k=3, filter=[{"term": {"metadata.number": 0}}])
        say(f"{name} filtered", [one.page_content for one in filtered])
        store.delete(ids[:1])
        say(f"{name} left", store.client.count(index=f"lc-{name}")["count"])
        store.client.indices.delete(index=f"lc-{name}")


def words(url: str) -> None:
    """Without vectors: by BM25 with other parameters than the usual ones."""
    store = ElasticsearchStore("lc-bm25", es_url=url, strategy=BM25Strategy(k1=2.0, b=0.1))
    store.add_documents([Document(text) for text in TEXTS])
    found = store.similarity_search_with_score("green apples", k=2)
    say("bm25", [(document.page_content, round(score, 4)) for document, score in found])
    mapped = store.client.indices.get_mapping(index="lc-bm25")["lc-bm25"]["mappings"]
    say("similarity", mapped["properties"]["text"]["similarity"])
    store.client.indices.delete(index="lc-bm25")


def llama_index(url: str) -> None:
    store = LlamaStore("llama", es_url=url)
    embed = Letters()
    nodes = [
        TextNode(id_=f"n{number}", text=text, embedding=embed.embed_query(text), metadata=kind)
        for number, text in enumerate(TEXTS)
        for kind in [{"kind": text.split()[-1]}]
    ]
    say("llama ids", store.add(nodes))
    query = VectorStoreQuery(query_embedding=embed.embed_query("green apples"), similarity_top_k=1)
    say("llama", [node.get_content() for node in store.query(query).nodes or []])
    query.filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="bicycle")])
    say("llama filtered", [node.get_content() for node in store.query(query).nodes or []])
    store.delete_nodes(["n0"])
    store.close()


graphs(sys.argv[1])
langchain(sys.argv[2])
words(sys.argv[2])
llama_index(sys.argv[2])
