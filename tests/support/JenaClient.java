import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.math.BigInteger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import org.apache.jena.graph.Node;
import org.apache.jena.query.Dataset;
import org.apache.jena.query.DatasetFactory;
import org.apache.jena.query.ResultSetFormatter;
import org.apache.jena.rdf.model.Model;
import org.apache.jena.rdf.model.ModelFactory;
import org.apache.jena.rdf.model.ResourceFactory;
import org.apache.jena.rdfconnection.RDFConnection;
import org.apache.jena.rdfconnection.RDFConnectionRemote;
import org.apache.jena.rdfpatch.RDFPatch;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFDataMgr;
import org.apache.jena.sparql.exec.http.QueryExecutionHTTP;
import org.apache.jena.rdfpatch.RDFPatchOps;
import org.apache.jena.rdfpatch.changes.RDFChangesCollector;
import org.apache.jena.sparql.core.DatasetGraph;
import org.apache.jena.sparql.core.DatasetGraphFactory;
import org.apache.jena.sparql.core.Quad;
import org.apache.jena.sparql.util.IsoMatcher;

/** What a client of Jena does with a service: one step a line, each with what it came to. */
public class JenaClient {
    static final String P = "http://x/p";
    static HttpClient http = HttpClient.newHttpClient();
    static String base;
    static String since;

    public static void main(String[] args) throws Exception {
        base = args[0];
        String endpoints = args[1];
        since = index();
        var builder = RDFConnectionRemote.newBuilder().destination(base + "/ds");
        if (endpoints.equals("named")) {
            builder.queryEndpoint("query").updateEndpoint("update").gspEndpoint("data");
        }
        try (RDFConnection connection = builder.build()) {
            sparql(connection);
            thrift();
            graphs(connection);
            datasets(connection);
            patches(connection);
        }
    }

    static void sparql(RDFConnection connection) {
        connection.update("INSERT DATA { <http://x/s> <" + P + "> 'a'@en , 1 . GRAPH <http://g/0> { _:b <" + P + "> 2 } }");
        connection.querySelect("SELECT ?o { <http://x/s> ?p ?o } ORDER BY ?o",
            row -> say("select", row.get("o").toString()));
        say("ask", connection.queryAsk("ASK { GRAPH ?g { ?s ?p 2 } }"));
        say("construct", connection.queryConstruct("CONSTRUCT WHERE { ?s ?p ?o }").size());
        say("describe", connection.queryDescribe("DESCRIBE <http://x/s>").size());
    }

    static void thrift() throws Exception {
        String query = "SELECT ?s ?o ?none { ?s <" + P + "> ?o } ORDER BY ?o";
        try (var asked = QueryExecutionHTTP.service(base + "/ds/query").query(query)
                .acceptHeader("application/sparql-results+thrift").build()) {
            asked.execSelect().forEachRemaining(row -> say("thrift row", row.get("o") + " " + row.contains("none")));
        }
        try (var asked = QueryExecutionHTTP.service(base + "/ds/query").query("CONSTRUCT WHERE { ?s ?p ?o }")
                .acceptHeader("application/rdf+thrift").build()) {
            say("thrift construct", asked.execConstruct().size());
        }
        Model model = ModelFactory.createDefaultModel();
        model.add(model.createResource(), model.createProperty(P), model.createTypedLiteral(BigInteger.valueOf(7)));
        model.add(model.createResource("http://x/t"), model.createProperty(P), model.createLiteral("t", "en"));
        var out = new ByteArrayOutputStream();
        RDFDataMgr.write(out, model, Lang.RDFTHRIFT);
        String target = base + "/ds/data?graph=http://g/thrift";
        var sent = HttpRequest.newBuilder(URI.create(target)).header("Content-Type", "application/rdf+thrift")
            .PUT(HttpRequest.BodyPublishers.ofByteArray(out.toByteArray())).build();
        say("thrift put", http.send(sent, HttpResponse.BodyHandlers.discarding()).statusCode());
        try (RDFConnection connection = RDFConnectionRemote.service(base + "/ds").build()) {
            say("thrift same", connection.fetch("http://g/thrift").isIsomorphicWith(model));
            connection.delete("http://g/thrift");
        }
    }

    static void graphs(RDFConnection connection) {
        Model model = ModelFactory.createDefaultModel();
        model.add(model.createResource("http://x/m"), model.createProperty(P), "in a graph");
        connection.put("http://g/1", model);
        model.add(model.createResource(), model.createProperty(P), "blank");
        connection.load("http://g/1", model);
        say("fetch graph", connection.fetch("http://g/1").isIsomorphicWith(model));
        say("size", connection.fetch("http://g/1").size());
        connection.delete("http://g/1");
        say("deleted", !connection.queryAsk("ASK { GRAPH <http://g/1> { ?s ?p ?o } }"));
        say("fetch default", connection.fetch().size());
    }

    static void datasets(RDFConnection connection) {
        Dataset before = connection.fetchDataset();
        Dataset more = DatasetFactory.create();
        more.asDatasetGraph().addAll(before.asDatasetGraph());
        Model model = ModelFactory.createDefaultModel();
        model.add(model.createResource("http://x/n"), model.createProperty(P), "more");
        more.addNamedModel("http://g/2", model);
        connection.loadDataset(DatasetFactory.create(model));
        say("loaded", connection.fetch().contains(model.createResource("http://x/n"), null));
        connection.putDataset(more);
        say("put", same(connection.fetchDataset(), more));
    }

    static void patches(RDFConnection connection) throws Exception {
        // What was changed since the start, replayed upon the state at the start, which is empty.
        DatasetGraph copy = DatasetGraphFactory.createTxnMem();
        HttpRequest asked = HttpRequest.newBuilder(URI.create(base + "/changes?follow=false&since=" + since))
            .header("Accept", "application/rdf-patch").build();
        try (InputStream stream = http.send(asked, HttpResponse.BodyHandlers.ofInputStream()).body()) {
            RDFPatch patch = RDFPatchOps.read(stream);
            say("header", patch.getHeader("index") != null && patch.getHeader("timestamp") != null);
            RDFPatchOps.applyChange(copy, patch);
        }
        say("replayed", same(DatasetFactory.wrap(copy), connection.fetchDataset()));
        // The same nodes back: blank ones are those of the service.
        RDFChangesCollector changes = new RDFChangesCollector();
        changes.start();
        changes.txnBegin();
        List<Quad> all = new ArrayList<>();
        copy.find().forEachRemaining(all::add);
        for (Quad quad : all) {
            Node graph = quad.isDefaultGraph() ? null : quad.getGraph();
            changes.delete(graph, quad.getSubject(), quad.getPredicate(), quad.getObject());
        }
        Node node = ResourceFactory.createResource("http://x/patched").asNode();
        changes.add(null, node, ResourceFactory.createProperty(P).asNode(), node);
        changes.txnCommit();
        changes.finish();
        ByteArrayOutputStream rows = new ByteArrayOutputStream();
        RDFPatchOps.write(rows, changes.getRDFPatch());
        HttpRequest posted = HttpRequest.newBuilder(URI.create(base + "/ds"))
            .header("Content-Type", "application/rdf-patch")
            .POST(HttpRequest.BodyPublishers.ofByteArray(rows.toByteArray())).build();
        HttpResponse<String> answer = http.send(posted, HttpResponse.BodyHandlers.ofString());
        say("posted", answer.statusCode() == 200 ? 200 : answer.body() + rows);
        Dataset after = connection.fetchDataset();
        say("left", after.getDefaultModel().size());
        say("graphs left", after.getUnionModel().size());
    }

    static boolean same(Dataset one, Dataset other) {
        return IsoMatcher.isomorphic(one.asDatasetGraph(), other.asDatasetGraph());
    }

    static String index() throws Exception {
        HttpRequest asked = HttpRequest.newBuilder(URI.create(base + "/ds?query=ASK%7B%7D")).build();
        return http.send(asked, HttpResponse.BodyHandlers.ofString()).headers().firstValue("X-Snapshot-Index").get();
    }

    static void say(String step, Object value) {
        System.out.println(step + ": " + value);
    }
}
