// Elasticsearch's own client for Java, which refuses an answer that lacks a member. It prints one line for each
// operation whose answer it could read, and fails at the first that it could not. Argument: the server's address.

import co.elastic.clients.elasticsearch.ElasticsearchClient;
import co.elastic.clients.elasticsearch._types.Conflicts;
import co.elastic.clients.elasticsearch._types.Level;
import co.elastic.clients.elasticsearch._types.Refresh;
import co.elastic.clients.elasticsearch._types.Time;
import co.elastic.clients.elasticsearch.indices.shard_stores.ShardStoreStatus;
import co.elastic.clients.json.JsonData;
import co.elastic.clients.json.jackson.JacksonJsonpMapper;
import co.elastic.clients.transport.rest_client.RestClientTransport;
import java.io.StringReader;
import java.util.List;
import java.util.Map;
import org.apache.http.HttpHost;
import org.elasticsearch.client.RestClient;

public class ElasticsearchPeer {
    static final String INDEX = "peer";
    static final String MAPPINGS = """
        {"settings": {"number_of_replicas": 0},
         "mappings": {"properties": {
            "title": {"type": "text"}, "kind": {"type": "keyword"}, "size": {"type": "integer"},
            "day": {"type": "date"}, "place": {"type": "geo_point"}, "word": {"type": "completion"},
            "vector": {"type": "dense_vector", "dims": 3},
            "parts": {"type": "nested", "properties": {"size": {"type": "integer"}}}}}}""";
    static final String[] AGGREGATIONS = {
        "'terms': {'field': 'kind'}", "'terms': {'field': 'size'}", "'rare_terms': {'field': 'kind'}",
        "'significant_terms': {'field': 'kind'}", "'significant_text': {'field': 'title'}",
        "'multi_terms': {'terms': [{'field': 'kind'}, {'field': 'size'}]}", "'avg': {'field': 'size'}",
        "'sum': {'field': 'size'}", "'min': {'field': 'size'}", "'max': {'field': 'size'}",
        "'stats': {'field': 'size'}", "'extended_stats': {'field': 'size'}", "'value_count': {'field': 'size'}",
        "'cardinality': {'field': 'size'}", "'percentiles': {'field': 'size'}",
        "'percentile_ranks': {'field': 'size', 'values': [1, 2]}",
        "'median_absolute_deviation': {'field': 'size'}", "'boxplot': {'field': 'size'}",
        "'weighted_avg': {'value': {'field': 'size'}, 'weight': {'field': 'size'}}",
        "'string_stats': {'field': 'kind'}", "'matrix_stats': {'fields': ['size']}",
        "'top_metrics': {'metrics': {'field': 'size'}, 'sort': {'size': 'asc'}}", "'top_hits': {'size': 1}",
        "'geo_bounds': {'field': 'place'}", "'geo_centroid': {'field': 'place'}",
        "'geohash_grid': {'field': 'place', 'precision': 3}",
        "'geo_distance': {'field': 'place', 'origin': '0,0', 'ranges': [{'to': 100}]}",
        "'range': {'field': 'size', 'ranges': [{'to': 2}, {'from': 2}]}",
        "'date_range': {'field': 'day', 'ranges': [{'to': 'now'}]}",
        "'histogram': {'field': 'size', 'interval': 2}", "'auto_date_histogram': {'field': 'day', 'buckets': 2}",
        "'variable_width_histogram': {'field': 'size', 'buckets': 2}",
        "'filters': {'filters': {'a': {'term': {'kind': 'k1'}}}}",
        "'filters': {'filters': [{'term': {'kind': 'k1'}}]}", "'missing': {'field': 'kind'}", "'global': {}",
        "'adjacency_matrix': {'filters': {'a': {'term': {'kind': 'k1'}}}}", "'sampler': {}, 'aggs': {'m': {'avg': {'field': 'size'}}}",
        "'nested': {'path': 'parts'}, 'aggs': {'up': {'reverse_nested': {}}}",
        "'composite': {'sources': [{'a': {'terms': {'field': 'kind'}}}]}",
        "'date_histogram': {'field': 'day', 'calendar_interval': 'day'}, 'aggs': {"
            + "'s': {'sum': {'field': 'size'}}, 'c': {'cumulative_sum': {'buckets_path': 's'}},"
            + "'d': {'derivative': {'buckets_path': 's'}}, 'none': {'max': {'field': 'nothing'}},"
            + "'b': {'bucket_script': {'buckets_path': {'s': 's'}, 'script': 'params.s'}}}",
    };

    interface Operation {
        Object answer() throws Exception;
    }

    static void reads(String what, Operation operation) throws Exception {
        try {
            operation.answer();
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            throw new AssertionError(what + ": " + cause.getMessage(), error);
        }
        System.out.println(what);
    }

    static StringReader json(String text) {
        return new StringReader(text.replace('\'', '"'));
    }

    public static void main(String[] arguments) throws Exception {
        try (RestClient rest = RestClient.builder(HttpHost.create(arguments[0])).build()) {
            ElasticsearchClient client = new ElasticsearchClient(new RestClientTransport(rest, new JacksonJsonpMapper()));
            documents(client);
            searches(client);
            indexes(client);
            cluster(client);
            listings(client);
            reads("delete", () -> client.indices().delete(one -> one.index(INDEX)));
        }
        System.out.println("every answer could be read");
    }

    static void documents(ElasticsearchClient client) throws Exception {
        reads("create an index", () -> client.indices().create(one -> one.index(INDEX).withJson(json(MAPPINGS))));
        for (int number = 0; number < 5; number++) {
            String id = Integer.toString(number);
            String source = "{'title': 'the quick fox " + id + "', 'kind': 'k" + number % 2 + "', 'size': " + id
                + ", 'day': '2024-01-0" + (number + 1) + "', 'place': {'lat': " + id + ", 'lon': 1}, 'word': 'fox " + id
                + "', 'vector': [1, " + id + ", 0], 'parts': [{'size': 1}, {'size': " + id + "}]}";
            reads("index", () -> client.index(
                one -> one.index(INDEX).id(id).refresh(Refresh.True).withJson(json(source))));
        }
        reads("get", () -> client.get(one -> one.index(INDEX).id("1"), Map.class));
        reads("mget", () -> client.mget(one -> one.index(INDEX).ids("1", "none"), Map.class));
        reads("update", () -> client.update(
            one -> one.index(INDEX).id("1").doc(Map.of("more", 1)).source(source -> source.fetch(true)), Map.class));
        reads("delete a document", () -> client.delete(one -> one.index(INDEX).id("none")));
        reads("bulk", () -> client.bulk(one -> one
            .operations(each -> each.index(to -> to.index(INDEX).id("6").document(Map.of("size", 6))))
            .operations(each -> each.create(to -> to.index(INDEX).id("6").document(Map.of("size", 6))))
            .operations(each -> each.update(to -> to.index(INDEX).id("6").action(by -> by.doc(Map.of("size", 7)))))
            .operations(each -> each.delete(to -> to.index(INDEX).id("6")))));
        reads("update by query", () -> client.updateByQuery(one -> one.index(INDEX).conflicts(Conflicts.Proceed)));
        reads("reindex", () -> client.reindex(
            one -> one.source(from -> from.index(INDEX)).dest(to -> to.index(INDEX + "-copy"))));
        reads("delete by query", () -> client.deleteByQuery(
            one -> one.index(INDEX + "-copy").query(query -> query.matchAll(all -> all))));
        reads("delete the copy", () -> client.indices().delete(one -> one.index(INDEX + "-copy")));
        reads("term vectors", () -> client.termvectors(one -> one.index(INDEX).id("1").fields("title")));
    }

    static void searches(ElasticsearchClient client) throws Exception {
        reads("search with everything", () -> client.search(one -> one.index(INDEX).withJson(json("""
            {'profile': true, 'explain': true, 'version': true, 'seq_no_primary_term': true, 'fields': ['day'],
             'query': {'bool': {'must': [{'match': {'title': 'fox'}}],
                'should': [{'nested': {'path': 'parts', 'query': {'term': {'parts.size': 1}}, 'inner_hits': {}}}]}},
             'highlight': {'fields': {'title': {}}}, 'docvalue_fields': ['size'], 'sort': [{'size': 'asc'}],
             'suggest': {'a': {'text': 'foc', 'term': {'field': 'title'}},
                'b': {'text': 'quik fox', 'phrase': {'field': 'title'}},
                'c': {'prefix': 'fo', 'completion': {'field': 'word'}}}}""")), Map.class));
        for (String aggregation : AGGREGATIONS) {
            reads(aggregation, () -> client.search(
                one -> one.index(INDEX).size(0).withJson(json("{'aggs': {'x': {" + aggregation + "}}}")), Map.class));
            reads(aggregation + " of nothing", () -> client.search(one -> one.index(INDEX).size(0).withJson(
                json("{'query': {'match_none': {}}, 'aggs': {'x': {" + aggregation + "}}}")), Map.class));
        }
        reads("knn", () -> client.search(
            one -> one.index(INDEX).knn(by -> by.field("vector").queryVector(1f, 1f, 0f).k(2).numCandidates(5)), Map.class));
        reads("msearch", () -> client.msearch(one -> one
            .searches(each -> each.header(header -> header.index(INDEX)).body(body -> body.size(1)))
            .searches(each -> each.header(header -> header.index("none")).body(body -> body.size(1))), Map.class));
        reads("scroll", () -> {
            var first = client.search(
                one -> one.index(INDEX).size(2).scroll(Time.of(time -> time.time("1m"))), Map.class);
            var next = client.scroll(one -> one.scrollId(first.scrollId()), Map.class);
            return client.clearScroll(one -> one.scrollId(next.scrollId()));
        });
        reads("point in time", () -> {
            var opened = client.openPointInTime(one -> one.index(INDEX).keepAlive(time -> time.time("1m")));
            client.search(one -> one.pit(pit -> pit.id(opened.id())).size(1), Map.class);
            return client.closePointInTime(one -> one.id(opened.id()));
        });
        reads("explain", () -> client.explain(
            one -> one.index(INDEX).id("1").query(by -> by.match(match -> match.field("title").query("fox"))), Map.class));
        reads("count", () -> client.count(one -> one.index(INDEX)));
        reads("field capabilities", () -> client.fieldCaps(one -> one.index(INDEX).fields("*")));
        reads("search shards", () -> client.searchShards(one -> one.index(INDEX)));
    }

    static void indexes(ElasticsearchClient client) throws Exception {
        var indices = client.indices();
        reads("index template", () -> indices.putIndexTemplate(
            one -> one.name("streams").indexPatterns("stream-*").dataStream(stream -> stream)));
        reads("data stream", () -> indices.createDataStream(one -> one.name("stream-a")));
        reads("get data streams", () -> indices.getDataStream());
        reads("statistics of data streams", () -> indices.dataStreamsStats());
        reads("rollover", () -> indices.rollover(one -> one.alias("stream-a")));
        reads("delete a data stream", () -> indices.deleteDataStream(one -> one.name("stream-a")));
        reads("get index templates", () -> indices.getIndexTemplate());
        reads("delete an index template", () -> indices.deleteIndexTemplate(one -> one.name("streams")));
        reads("get an index", () -> indices.get(one -> one.index(INDEX)));
        reads("mapping", () -> indices.getMapping());
        reads("mapping of fields", () -> indices.getFieldMapping(one -> one.index(INDEX).fields("title", "size")));
        reads("settings", () -> indices.getSettings(one -> one.includeDefaults(true)));
        reads("aliases", () -> indices.getAlias());
        reads("statistics", () -> indices.stats(one -> one.level(Level.Shards)));
        reads("segments", () -> indices.segments());
        reads("recovery", () -> indices.recovery());
        reads("stores of shards", () -> indices.shardStores(one -> one.status(ShardStoreStatus.All)));
        reads("analysis", () -> indices.analyze(one -> one.index(INDEX).field("title").text("The fox")));
        reads("refresh", () -> indices.refresh());
        reads("flush", () -> indices.flush());
        reads("merge", () -> indices.forcemerge(one -> one.index(INDEX)));
        reads("validate", () -> indices.validateQuery(one -> one.index(INDEX).query(by -> by.matchAll(all -> all))));
    }

    static void cluster(ElasticsearchClient client) throws Exception {
        reads("info", () -> client.info());
        reads("health", () -> client.cluster().health(one -> one.level(Level.Shards)));
        reads("statistics of the cluster", () -> client.cluster().stats());
        reads("state", () -> client.cluster().state());
        reads("settings of the cluster", () -> client.cluster().getSettings(one -> one.includeDefaults(true)));
        reads("pending tasks", () -> client.cluster().pendingTasks());
        reads("allocation", () -> client.cluster().allocationExplain(one -> one.index(INDEX).shard(0).primary(true)));
        reads("nodes", () -> client.nodes().info());
        reads("statistics of nodes", () -> client.nodes().stats());
        reads("tasks", () -> client.tasks().list());
        reads("health report", () -> client.healthReport());
        reads("licence", () -> client.license().get());
        reads("features", () -> client.xpack().info());
        reads("pipeline", () -> client.ingest().putPipeline(one -> one.id("peer").processors(
            each -> each.set(set -> set.field("more").value(JsonData.of("1"))))));
        reads("get pipelines", () -> client.ingest().getPipeline());
        reads("simulate", () -> client.ingest().simulate(
            one -> one.id("peer").docs(List.of()).docs(each -> each.source(JsonData.of(Map.of("a", 1))))));
        reads("delete a pipeline", () -> client.ingest().deletePipeline(one -> one.id("peer")));
        reads("lifecycles", () -> client.ilm().getLifecycle());
        reads("repositories", () -> client.snapshot().getRepository());
    }

    static void listings(ElasticsearchClient client) throws Exception {
        var cat = client.cat();
        reads("cat indices", () -> cat.indices());
        reads("cat aliases", () -> cat.aliases());
        reads("cat allocation", () -> cat.allocation());
        reads("cat count", () -> cat.count());
        reads("cat health", () -> cat.health());
        reads("cat master", () -> cat.master());
        reads("cat nodes", () -> cat.nodes());
        reads("cat shards", () -> cat.shards());
        reads("cat segments", () -> cat.segments());
        reads("cat templates", () -> cat.templates());
        reads("cat recovery", () -> cat.recovery());
        reads("cat thread pools", () -> cat.threadPool());
        reads("cat tasks", () -> cat.tasks());
        reads("cat fielddata", () -> cat.fielddata());
    }
}
