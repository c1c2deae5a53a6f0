// graphdb.js, GraphDB's client for JavaScript, used as a program would use it. It prints one line for each
// thing that holds. Arguments: the address of the server, the id of the repository.

const { server, http, repository, query } = require("graphdb");

const [address, id] = process.argv.slice(2);
const { RDFMimeType, QueryContentType } = http;

function holds(what, condition) {
  if (!condition) throw new Error(what);
  console.log(what);
}

async function text(stream) {
  if (typeof stream === "string") return stream;
  let found = "";
  for await (const piece of stream) found += piece;
  return found;
}

async function main() {
  const config = new server.ServerClientConfig(address);
  const client = new server.GraphDBServerClient(config);
  holds("the repository is listed", (await client.getRepositoryIDs()).includes(id));
  holds("there is no other", !(await client.hasRepository("other")));
  const repositoryConfig = new repository.RepositoryClientConfig(address)
    .setEndpoints([`${address}/repositories/${id}`])
    .setHeaders({})
    .setDefaultRDFMimeType(RDFMimeType.TURTLE)
    .setReadTimeout(30000)
    .setWriteTimeout(30000);
  const rdf = await client.getRepository(id, repositoryConfig);
  const before = Number(await rdf.getSize());

  await rdf.add(
    new repository.AddStatementPayload()
      .setSubject("http://example.org/js")
      .setPredicate("http://example.org/p")
      .setObject("http://example.org/o")
      .setContext("http://example.org/js-context"),
  );
  holds("a statement is added", Number(await rdf.getSize("<http://example.org/js-context>")) === 1);

  const selected = await rdf.query(
    new query.GetQueryPayload()
      .setQuery("SELECT ?o { <http://example.org/js> ?p ?o }")
      .setQueryType(query.QueryType.SELECT)
      .setContentType(QueryContentType.SPARQL_QUERY)
      .setResponseType(RDFMimeType.SPARQL_RESULTS_JSON),
  );
  holds("a query is answered", (await text(selected)).includes("http://example.org/o"));

  await rdf.update(
    new query.UpdateQueryPayload()
      .setQuery("INSERT DATA { <http://example.org/js> <http://example.org/n> 1 }")
      .setContentType(QueryContentType.X_WWW_FORM_URLENCODED),
  );
  holds("an update is applied", Number(await rdf.getSize()) === before + 2);

  await rdf.saveNamespace("js", "http://example.org/");
  const namespaces = await rdf.getNamespaces();
  holds("a namespace is kept", namespaces.some((one) => one.getPrefix() === "js"));
  await rdf.deleteNamespace("js");

  const transaction = await rdf.beginTransaction();
  await transaction.add(
    new repository.AddStatementPayload()
      .setSubject("http://example.org/js2")
      .setPredicate("http://example.org/p")
      .setObject("http://example.org/o"),
  );
  holds("a transaction sees its changes", Number(await transaction.getSize()) === before + 3);
  await transaction.commit();
  holds("a commit stores them", Number(await rdf.getSize()) === before + 3);

  const undone = await rdf.beginTransaction();
  await undone.deleteData("<http://example.org/js2> <http://example.org/p> <http://example.org/o> .");
  await undone.rollback();
  holds("a rollback stores nothing", Number(await rdf.getSize()) === before + 3);

  await rdf.deleteStatements("<http://example.org/js>");
  await rdf.deleteStatements("<http://example.org/js2>");
  holds("statements are deleted", Number(await rdf.getSize()) === before);
}

main().catch(async (error) => {
  const answer = error.response && (await text(error.response.data));
  console.error(error.message, answer);
  process.exit(1);
});
