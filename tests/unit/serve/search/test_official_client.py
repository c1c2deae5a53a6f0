"""The official client over all that this port has for indexes, the cluster and documents in bulk."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, BadRequestError, Elasticsearch, NotFoundError, helpers

from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard

pytestmark = [one_shard, pytest.mark.filterwarnings("ignore:This API is in technical preview")]

MAPPINGS = {
    "properties": {"title": {"type": "text"}, "year": {"type": "integer"}, "kind": {"type": "keyword"}}
}
ALONE = {"number_of_replicas": 0}


@pytest.fixture
def client(url: str) -> Iterator[Elasticsearch]:
    with Elasticsearch(url) as client:
        yield client


@pytest.fixture
def books(client: Elasticsearch) -> Elasticsearch:
    """With three books."""
    client.indices.create(index="books", mappings=MAPPINGS, settings=ALONE)
    titles = [("Dune", 1965), ("Emma", 1815), ("Ulysses", 1922)]
    for number, (title, year) in enumerate(titles):
        client.index(index="books", id=str(number), document={"title": title, "year": year})
    client.indices.refresh(index="books")
    return client


def test_an_index_from_its_making_to_its_end(client: Elasticsearch) -> None:
    indices = client.indices
    made = indices.create(index="books", mappings=MAPPINGS, settings=ALONE, aliases={"all": {}})
    assert made.body == {"acknowledged": True, "shards_acknowledged": True, "index": "books"}
    assert indices.exists(index="books").body is True
    assert indices.exists(index="films").body is False
    shown = indices.get(index="books")["books"]
    assert (shown["mappings"], shown["aliases"]) == (MAPPINGS, {"all": {}})
    assert shown["settings"]["index"]["number_of_replicas"] == "0"
    assert indices.get(index="b*", features="aliases").body == {"books": {"aliases": {"all": {}}}}
    assert indices.delete(index="books").body == {"acknowledged": True}
    with pytest.raises(NotFoundError, match="index_not_found_exception"):
        indices.get(index="books")
    with pytest.raises(NotFoundError, match="index_not_found_exception"):
        indices.delete(index="books")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("books", "resource_already_exists_exception"),
        ("Books", "invalid_index_name_exception"),
        ("_books", "invalid_index_name_exception"),
    ],
)
def test_an_index_that_cannot_be_made(books: Elasticsearch, name: str, error: str) -> None:
    with pytest.raises(BadRequestError, match=error):
        books.indices.create(index=name)


@pytest.mark.parametrize("name", ["*", "_all", "boo*", "books,*", "library"])
def test_nobody_deletes_what_is_not_named(books: Elasticsearch, name: str) -> None:
    books.indices.put_alias(index="books", name="library")
    with pytest.raises(BadRequestError, match="illegal_argument_exception"):
        books.indices.delete(index=name)
    assert books.indices.exists(index="books")


def test_mappings(books: Elasticsearch) -> None:
    author = {"author": {"type": "keyword"}}
    assert books.indices.put_mapping(index="books", properties=author).body == {"acknowledged": True}
    shown = books.indices.get_mapping(index="books").body
    assert shown == {"books": {"mappings": {"properties": {**MAPPINGS["properties"], **author}}}}
    fields = books.indices.get_field_mapping(fields="a*,year", index="books")["books"]["mappings"]
    assert fields["author"] == {"full_name": "author", "mapping": author}
    assert fields.keys() == {"author", "year"}
    with pytest.raises(BadRequestError, match="cannot be changed from type"):
        books.indices.put_mapping(index="books", properties={"year": {"type": "keyword"}})
    for nothing in ("films", "film*"):
        with pytest.raises(NotFoundError, match="index_not_found_exception"):
            books.indices.put_mapping(index=nothing, properties=author)


def test_settings(books: Elasticsearch) -> None:
    books.indices.put_settings(index="books", settings={"index": {"refresh_interval": "5s"}})
    books.indices.put_settings(
        index="books", settings={"refresh_interval": "9s", "priority": 4}, preserve_existing=True
    )
    shown = books.indices.get_settings(
        index="books", name="index.[rp]*,index.priority,index.refresh*", flat_settings=True
    )
    assert shown["books"]["settings"]["index.refresh_interval"] == "5s"
    assert shown["books"]["settings"]["index.priority"] == "4"
    with pytest.raises(BadRequestError, match="illegal_argument_exception"):
        books.indices.put_settings(index="books", settings={"index": {"number_of_shards": 2}})
    with pytest.raises(BadRequestError, match="unknown setting"):
        books.indices.put_settings(index="books", settings={"index": {"colour": "red"}})
    books.indices.put_settings(index="books", settings={"index": {"refresh_interval": None}})
    assert "refresh_interval" not in books.indices.get_settings(index="books")["books"]["settings"]["index"]


def test_aliases(books: Elasticsearch) -> None:
    indices = books.indices
    old = {"range": {"year": {"lt": 1900}}}
    assert indices.put_alias(index="books", name="old", filter=old).body["acknowledged"] is True
    assert books.count(index="old")["count"] == 1
    indices.update_aliases(actions=[{"add": {"index": "boo*", "aliases": ["a", "b"], "routing": "r"}}])
    assert indices.get_alias(index="books").body == {
        "books": {
            "aliases": {
                "old": {"filter": old},
                "a": {"index_routing": "r", "search_routing": "r"},
                "b": {"index_routing": "r", "search_routing": "r"},
            }
        }
    }
    assert indices.get_alias(name="o*,-b").body == {"books": {"aliases": {"old": {"filter": old}}}}
    assert indices.exists_alias(name="a").body is True
    assert indices.exists_alias(index="books", name="z").body is False
    moved: list[dict[str, Any]] = [
        {"remove": {"index": "books", "alias": "a"}},
        {"remove": {"index": "books", "alias": "none*", "must_exist": False}},
    ]
    indices.update_aliases(actions=moved)
    indices.delete_alias(index="_all", name="b")
    assert indices.get_alias().body == {"books": {"aliases": {"old": {"filter": old}}}}
    with pytest.raises(NotFoundError, match=r"alias \[a\] missing"):
        indices.get_alias(name="a")
    with pytest.raises(NotFoundError, match="aliases_not_found_exception"):
        indices.delete_alias(index="books", name="a")
    with pytest.raises(BadRequestError, match="invalid_alias_name_exception"):
        indices.put_alias(index="books", name="a b")
    resolved = indices.resolve_index(name="*").body
    assert resolved["indices"] == [{"name": "books", "aliases": ["old"], "attributes": ["open"]}]
    assert resolved["aliases"] == [{"name": "old", "indices": ["books"]}]
    indices.update_aliases(actions=[{"remove_index": {"index": "books"}}])
    assert indices.exists(index="books").body is False


def test_aliases_change_together_or_not_at_all(books: Elasticsearch) -> None:
    actions = [{"add": {"index": "books", "alias": "fine"}}, {"add": {"index": "books", "alias": "books"}}]
    with pytest.raises(BadRequestError, match="invalid_alias_name_exception"):
        books.indices.update_aliases(actions=actions)
    assert books.indices.exists_alias(name="fine").body is False


def test_templates(client: Elasticsearch) -> None:
    indices, cluster = client.indices, client.cluster
    kind = {"mappings": {"properties": {"kind": {"type": "keyword"}}}}
    cluster.put_component_template(name="kinds", template=kind)
    indices.put_index_template(
        name="logs", index_patterns=["log-*"], composed_of=["kinds"], template={"settings": ALONE}, priority=7
    )
    assert indices.exists_index_template(name="logs").body is True
    assert indices.exists_index_template(name="none").body is False
    (shown,) = indices.get_index_template(name="l*")["index_templates"]
    assert (shown["name"], shown["index_template"]["priority"]) == ("logs", 7)
    assert cluster.get_component_template(name="kinds")["component_templates"][0]["name"] == "kinds"
    assert cluster.exists_component_template(name="none").body is False
    client.index(index="log-1", document={"size": 1})
    made = indices.get(index="log-1")["log-1"]
    assert made["mappings"]["properties"] == {"kind": {"type": "keyword"}, "size": {"type": "long"}}
    assert made["settings"]["index"]["number_of_replicas"] == "0"
    assert client.cat.templates(h="name,order,composed_of").body == "logs 7 [kinds]\n"
    with pytest.raises(BadRequestError, match="still in use"):
        cluster.delete_component_template(name="kinds")
    indices.delete_index_template(name="lo*")
    cluster.delete_component_template(name="kinds")
    with pytest.raises(NotFoundError, match="resource_not_found_exception"):
        indices.get_index_template(name="logs")
    with pytest.raises(NotFoundError, match="index_template_missing_exception"):
        indices.delete_index_template(name="logs")
    assert indices.exists_template(name="logs").body is False


def test_upkeep(books: Elasticsearch) -> None:
    done = {"_shards": {"total": 1, "successful": 1, "failed": 0}}
    indices = books.indices
    assert indices.refresh().body == indices.flush(index="books").body == done
    books.index(index="books", id="9", document={"title": "It"}, refresh=True)
    assert indices.stats(index="books")["_all"]["total"]["segments"]["count"] > 1
    assert indices.forcemerge(index="books", max_num_segments=1).body == done
    stats = indices.stats(index="books", metric="docs,segments").body["indices"]["books"]
    assert stats["primaries"]["segments"]["count"] == 1
    assert stats["primaries"]["docs"]["count"] == 4
    assert stats["primaries"].keys() == {"docs", "segments"}
    (segment,) = indices.segments(index="books")["indices"]["books"]["shards"]["0"][0]["segments"].values()
    assert (segment["num_docs"], segment["deleted_docs"], segment["search"]) == (4, 0, True)
    assert indices.clear_cache(index="books").body == done
    with pytest.raises(NotFoundError, match="index_not_found_exception"):
        indices.refresh(index="films")
    blocked = indices.add_block(index="books", block="write").body
    assert blocked["indices"] == [{"name": "books", "blocked": True}]
    assert indices.get_settings(index="books")["books"]["settings"]["index"]["blocks"] == {"write": "true"}


def test_analysis(books: Elasticsearch) -> None:
    tokens = books.indices.analyze(analyzer="english", text="The running foxes")["tokens"]
    assert [token["token"] for token in tokens] == ["run", "fox"]
    tokens = books.indices.analyze(index="books", field="kind", text="As It Is")["tokens"]
    assert [token["token"] for token in tokens] == ["As It Is"]
    with pytest.raises(BadRequestError, match="failed to find global analyzer"):
        books.indices.analyze(analyzer="nobody's", text="x")


def test_cat(books: Elasticsearch) -> None:
    cat = books.cat
    books.indices.put_alias(index="books", name="library")
    assert cat.indices(h="health,status,index,pri,rep,docs.count").body == "green open books 1 0 3\n"
    assert cat.indices(index="b*", format="json", h="i,dc").body == [{"i": "books", "dc": "3"}]
    assert str(cat.indices(v=True).body).split("\n")[0].split() == [
        *("health", "status", "index", "uuid", "pri", "rep"),
        *("docs.count", "docs.deleted", "store.size", "pri.store.size", "dataset.size"),
    ]
    assert cat.aliases(h="alias,index").body == "library books\n"
    assert str(cat.count(index="books").body).split()[2] == "3"
    assert cat.shards(h="index,shard,prirep,state,docs").body == "books 0 p STARTED 3\n"
    assert str(cat.health(h="cluster,status").body).split() == ["graphdb", "green"]
    assert str(cat.health(ts=False, v=True).body).split()[:2] == ["cluster", "status"]
    assert str(cat.nodes(h="node.role,master").body) == "dim *\n"
    assert cat.master(h="node").body == f"{books.info()['name']}\n"
    assert cat.segments(h="index,docs.count").body == "books 3\n"
    assert cat.allocation(h="shards").body == "1\n"
    assert cat.plugins().body == cat.templates().body == ""
    assert str(cat.tasks(h="action,type").body).split() == ["cluster:monitor/tasks/lists", "transport"]
    assert str(cat.help().body).startswith("=^.^=\n/_cat/")
    assert str(cat.aliases(help=True).body).startswith("alias ")
    with pytest.raises(NotFoundError, match="index_not_found_exception"):
        cat.indices(index="films")


def test_cluster(books: Elasticsearch) -> None:
    assert books.ping() is True
    assert books.info()["tagline"] == "You Know, for Search"
    assert books.cluster.health(wait_for_status="green", timeout="1s")["status"] == "green"
    assert books.cluster.state(metric="metadata")["metadata"]["indices"].keys() == {"books"}
    assert books.cluster.stats()["indices"]["docs"]["count"] == 3
    assert books.cluster.get_settings().body == {"persistent": {}, "transient": {}}
    assert books.cluster.pending_tasks().body == {"tasks": []}
    assert books.nodes.info()["_nodes"]["total"] == books.nodes.stats()["_nodes"]["total"] == 1
    assert books.license.get()["license"]["status"] == "active"
    assert books.xpack.info()["tagline"] == "You know, for X"
    (listing,) = books.tasks.list().body["nodes"].values()
    assert [task["action"] for task in listing["tasks"].values()] == ["cluster:monitor/tasks/lists"]
    assert books.ingest.get_pipeline().body == {}


def test_helpers(client: Elasticsearch) -> None:
    actions = [{"_index": "numbers", "_id": str(n), "n": n} for n in range(1234)]
    assert helpers.bulk(client, actions[:600], refresh=True) == (600, [])
    streamed = list(helpers.streaming_bulk(client, actions[600:1000], chunk_size=150))
    assert [ok for ok, _ in streamed] == [True] * 400
    parallel = list(helpers.parallel_bulk(client, actions[1000:], thread_count=2, chunk_size=50))
    assert [ok for ok, _ in parallel] == [True] * 234
    client.indices.refresh(index="numbers")
    found = list(
        helpers.scan(client, index="numbers", query={"query": {"range": {"n": {"gte": 5}}}}, size=100)
    )
    assert sorted(hit["_source"]["n"] for hit in found) == list(range(5, 1234))
    assert helpers.reindex(client, "numbers", "copies", chunk_size=500) == (1234, 0)
    client.indices.refresh(index="copies")
    assert client.count(index="copies")["count"] == 1234
    created: list[dict[str, Any]] = [{"_op_type": "create", "_index": "numbers", "_id": "1", "n": 0}]
    with pytest.raises(helpers.BulkIndexError) as raised:
        helpers.bulk(client, created)
    assert raised.value.errors[0]["create"]["error"]["type"] == "version_conflict_engine_exception"


def test_compressed_requests(url: str) -> None:
    with Elasticsearch(url, http_compress=True) as client:
        actions = ({"_index": "texts", "_id": str(n), "text": "word " * 200} for n in range(100))
        assert helpers.bulk(client, actions, refresh=True) == (100, [])
        assert client.search(index="texts", size=100)["hits"]["total"]["value"] == 100


def test_sniffing(url: str) -> None:
    with Elasticsearch(
        url, sniff_on_start=True, sniff_before_requests=True, min_delay_between_sniffing=0
    ) as client:
        assert client.ping()
        (node,) = client.transport.node_pool.all()
        assert node.base_url == url


def test_the_asynchronous_client(url: str) -> None:
    pytest.importorskip("aiohttp")

    async def use() -> tuple[Any, ...]:
        async with AsyncElasticsearch(url) as client:
            actions = [{"_index": "numbers", "_id": str(n), "n": n} for n in range(50)]
            bulk = await helpers.async_bulk(client, actions, refresh=True)
            count = (await client.count(index="numbers"))["count"]
            scanned = [hit["_id"] async for hit in helpers.async_scan(client, index="numbers", size=7)]
            return bulk, count, len(scanned)

    assert asyncio.run(use()) == ((50, []), 50, 50)


def test_documents_as_classes(client: Elasticsearch, node: MemorySearch) -> None:
    """`elasticsearch.dsl`, which was a package of its own before 8.18."""
    dsl = pytest.importorskip("elasticsearch.dsl")

    class Article(dsl.Document):  # type: ignore[misc, name-defined]
        title = dsl.Text(analyzer="english")
        tags = dsl.Keyword(multi=True)
        published = dsl.Date()

        class Index:
            name = "articles"
            settings = ALONE

    Article.init(using=client)
    assert node.catalog.find("articles") is not None
    for number, title in enumerate(["Running foxes", "Sleeping dogs"]):
        article = Article(meta={"id": str(number)}, title=title, tags=["animals", title.split()[1]])
        assert article.save(using=client, refresh=True) == "created"
    found = Article.search(using=client).query("match", title="fox").execute()
    assert [(hit.meta.id, hit.title, list(hit.tags)) for hit in found] == [
        ("0", "Running foxes", ["animals", "foxes"])
    ]
    search = Article.search(using=client).filter("term", tags="animals")
    search.aggs.bucket("tags", "terms", field="tags")
    buckets = search.execute().aggregations.tags.buckets
    assert [(bucket.key, bucket.doc_count) for bucket in buckets] == [
        ("animals", 2),
        ("dogs", 1),
        ("foxes", 1),
    ]
    kept = Article.get("1", using=client)
    kept.update(using=client, title="Dogs awake", refresh=True)
    assert Article.get("1", using=client).title == "Dogs awake"
    kept.delete(using=client)
    assert Article.exists("1", using=client) is False


def test_what_is_not_offered_says_what_helps(client: Elasticsearch) -> None:
    with pytest.raises(BadRequestError, match=r"ES\|QL is not supported: search with the Query DSL"):
        client.esql.query(query="FROM books")
    with pytest.raises(BadRequestError, match="SQL is not supported: search with the Query DSL"):
        client.sql.query(query="SELECT 1", format="json")
    with pytest.raises(
        NotFoundError, match=r"No known trained model with model_id \[mine\]: models do not run"
    ):
        client.ml.infer_trained_model(model_id="mine", docs=[{"text_field": "a"}], timeout="10s")
