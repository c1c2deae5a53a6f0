// RDF4J's own client, HTTPRepository, used as a program would use it. It prints one line for each thing that
// holds, and fails at the first that does not. Arguments: the address of the server, the id of the repository.

import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.eclipse.rdf4j.common.transaction.IsolationLevels;
import org.eclipse.rdf4j.model.BNode;
import org.eclipse.rdf4j.model.IRI;
import org.eclipse.rdf4j.model.Resource;
import org.eclipse.rdf4j.model.Statement;
import org.eclipse.rdf4j.model.ValueFactory;
import org.eclipse.rdf4j.model.impl.SimpleValueFactory;
import org.eclipse.rdf4j.query.BindingSet;
import org.eclipse.rdf4j.query.BooleanQuery;
import org.eclipse.rdf4j.query.MalformedQueryException;
import org.eclipse.rdf4j.query.QueryEvaluationException;
import org.eclipse.rdf4j.query.QueryResults;
import org.eclipse.rdf4j.query.TupleQuery;
import org.eclipse.rdf4j.query.TupleQueryResult;
import org.eclipse.rdf4j.repository.RepositoryConnection;
import org.eclipse.rdf4j.repository.RepositoryException;
import org.eclipse.rdf4j.repository.http.HTTPRepository;
import org.eclipse.rdf4j.rio.RDFFormat;

public class Rdf4jPeer {
    static final ValueFactory VALUES = SimpleValueFactory.getInstance();
    static final IRI ADA = iri("ada"), BOB = iri("bob"), KNOWS = iri("knows"), NAME = iri("name");
    static final IRI CONTEXT = iri("context");

    static IRI iri(String name) {
        return VALUES.createIRI("http://example.org/" + name);
    }

    static void holds(String what, boolean condition) {
        if (!condition) {
            throw new AssertionError(what);
        }
        System.out.println(what);
    }

    public static void main(String[] arguments) {
        HTTPRepository repository = new HTTPRepository(arguments[0], arguments[1]);
        try (RepositoryConnection connection = repository.getConnection()) {
            connection.clear();
            statements(connection);
            queries(connection);
            namespaces(connection);
            blankNodes(connection);
            transactions(repository, connection);
            connection.clear();
        } finally {
            repository.shutDown();
        }
    }

    static void statements(RepositoryConnection connection) {
        holds("an empty repository has the size 0", connection.size() == 0);
        connection.add(ADA, KNOWS, BOB);
        connection.add(ADA, NAME, VALUES.createLiteral("Ada", "en"), CONTEXT);
        connection.add(BOB, NAME, VALUES.createLiteral("Bob \"é\"\n"), CONTEXT);
        connection.add(BOB, iri("age"), VALUES.createLiteral(36));
        holds("statements are counted", connection.size() == 4);
        holds("statements of a context are counted", connection.size(CONTEXT) == 2);
        holds("statements without context are counted", connection.size((Resource) null) == 2);
        holds("a statement is there", connection.hasStatement(ADA, KNOWS, BOB, false));
        holds("one is not", !connection.hasStatement(BOB, KNOWS, ADA, false));
        List<Statement> found = QueryResults.asList(connection.getStatements(null, NAME, null));
        holds("statements have their contexts",
            found.size() == 2 && found.stream().allMatch(each -> CONTEXT.equals(each.getContext())));
        holds("literals arrive whole",
            connection.hasStatement(BOB, NAME, VALUES.createLiteral("Bob \"é\"\n"), false, CONTEXT));
        List<Resource> contexts = QueryResults.asList(connection.getContextIDs());
        holds("contexts are listed", contexts.equals(List.of(CONTEXT)));
        try {
            connection.add(new StringReader("<http://example.org/x> <http://example.org/y> 'z' ."),
                "http://example.org/", RDFFormat.TURTLE);
        } catch (Exception error) {
            throw new AssertionError(error);
        }
        holds("a document is stored", connection.hasStatement(iri("x"), iri("y"), null, false));
        connection.remove(iri("x"), null, null);
        holds("statements are removed by pattern", connection.size() == 4);
        connection.remove(ADA, NAME, null, CONTEXT);
        holds("and in a context", connection.size(CONTEXT) == 1);
        connection.add(ADA, NAME, VALUES.createLiteral("Ada", "en"), CONTEXT);
    }

    static void queries(RepositoryConnection connection) {
        TupleQuery names = connection.prepareTupleQuery(
            "SELECT ?s ?name ?nothing { ?s <http://example.org/name> ?name } ORDER BY ?name");
        try (TupleQueryResult result = names.evaluate()) {
            List<String> rows = result.stream()
                .map(row -> row.getValue("name").stringValue() + row.hasBinding("nothing"))
                .collect(Collectors.toList());
            holds("a SELECT sees all contexts", rows.equals(List.of("Adafalse", "Bob \"é\"\nfalse")));
        }
        names.setBinding("s", ADA);
        try (TupleQueryResult result = names.evaluate()) {
            holds("variables can be bound before", result.stream().count() == 1);
        }
        TupleQuery filtered = connection.prepareTupleQuery("SELECT ?s { ?s ?p ?o FILTER (?o = ?value) }");
        filtered.setBinding("value", VALUES.createLiteral(36));
        try (TupleQueryResult result = filtered.evaluate()) {
            List<BindingSet> rows = result.stream().collect(Collectors.toList());
            holds("and filters see them", rows.size() == 1 && BOB.equals(rows.get(0).getValue("s")));
        }
        BooleanQuery ask = connection.prepareBooleanQuery("ASK { ?s <http://example.org/knows> ?o }");
        holds("an ASK", ask.evaluate());
        List<Statement> built = QueryResults.asList(connection.prepareGraphQuery(
            "CONSTRUCT { ?o <http://example.org/knownBy> ?s } WHERE { ?s <http://example.org/knows> ?o }").evaluate());
        holds("a CONSTRUCT", built.size() == 1 && BOB.equals(built.get(0).getSubject()));
        try {
            connection.prepareTupleQuery("SELECT WHERE").evaluate();
            throw new AssertionError("a malformed query was answered");
        } catch (QueryEvaluationException error) {
            holds("a malformed query is known for one", error.getCause() instanceof MalformedQueryException);
        }
        connection.prepareUpdate("INSERT DATA { <http://example.org/u> <http://example.org/v> 1 }").execute();
        holds("an update", connection.hasStatement(iri("u"), iri("v"), null, false));
        connection.remove(iri("u"), null, null);
    }

    static void namespaces(RepositoryConnection connection) {
        connection.setNamespace("ex", "http://example.org/");
        holds("a namespace is kept", "http://example.org/".equals(connection.getNamespace("ex")));
        holds("namespaces are listed", QueryResults.asList(connection.getNamespaces()).size() == 1);
        connection.removeNamespace("ex");
        holds("a namespace is removed", connection.getNamespace("ex") == null);
        connection.setNamespace("ex", "http://example.org/");
        connection.clearNamespaces();
        holds("all are", QueryResults.asList(connection.getNamespaces()).isEmpty());
    }

    static void blankNodes(RepositoryConnection connection) {
        BNode node = VALUES.createBNode();
        connection.add(node, NAME, VALUES.createLiteral("one"));
        connection.add(node, NAME, VALUES.createLiteral("two"));
        holds("blank nodes keep their labels",
            QueryResults.asList(connection.getStatements(node, NAME, null)).size() == 2);
        connection.remove(node, null, null);
        holds("and are removed by them", !connection.hasStatement(node, null, null, false));
        connection.add(ADA, iri("says"), VALUES.createTriple(ADA, KNOWS, BOB));
        holds("triple terms are objects",
            connection.hasStatement(ADA, iri("says"), null, false));
        Statement said = QueryResults.asList(connection.getStatements(ADA, iri("says"), null)).get(0);
        holds("and come back", VALUES.createTriple(ADA, KNOWS, BOB).equals(said.getObject()));
        connection.remove(ADA, iri("says"), null);
    }

    static void transactions(HTTPRepository repository, RepositoryConnection connection) {
        long before = connection.size();
        try (RepositoryConnection other = repository.getConnection()) {
            connection.begin(IsolationLevels.SNAPSHOT);
            List<Statement> many = new ArrayList<>();
            for (int number = 0; number < 5000; number++) {
                many.add(VALUES.createStatement(iri("s" + number), iri("n"), VALUES.createLiteral(number)));
            }
            connection.add(many);
            connection.remove(ADA, NAME, null);
            holds("a transaction sees its changes", connection.size() == before + 4999);
            holds("others do not", other.size() == before);
            TupleQuery count = connection.prepareTupleQuery("SELECT (COUNT(*) AS ?n) { ?s <http://example.org/n> ?o }");
            try (TupleQueryResult result = count.evaluate()) {
                holds("queries see them", "5000".equals(result.next().getValue("n").stringValue()));
            }
            connection.prepareUpdate(
                "DELETE { ?s <http://example.org/n> ?o } WHERE { ?s <http://example.org/n> ?o FILTER (?o >= 10) }").execute();
            holds("and updates", connection.size() == before + 9);
            connection.commit();
            holds("a commit stores them", other.size() == before + 9);

            connection.begin();
            connection.clear();
            holds("a transaction can be cleared", connection.size() == 0);
            connection.rollback();
            holds("a rollback stores nothing", connection.size() == before + 9);

            connection.begin(IsolationLevels.SERIALIZABLE);
            holds("a read", connection.hasStatement(BOB, iri("age"), null, false));
            connection.add(ADA, iri("age"), VALUES.createLiteral(1));
            other.remove(BOB, iri("age"), null);
            try {
                connection.commit();
                throw new AssertionError("a conflict was committed");
            } catch (RepositoryException error) {
                holds("a conflict refuses the commit", !other.hasStatement(ADA, iri("age"), null, false));
            }
            connection.rollback();
        }
    }
}
