// Comunica asks a SPARQL endpoint: `node comunica_client.mjs URL`. One line of JSON for each step.
import { QueryEngine } from "@comunica/query-sparql";

const url = process.argv[2];
const engine = new QueryEngine();
const source = { type: "sparql", value: url };
const context = { sources: [source], destination: source };

function say(step, value) {
  console.log(JSON.stringify([step, value]));
}

await engine.queryVoid(
  "INSERT DATA { <urn:m:a> <urn:m:name> 'Ann'@en ; <urn:m:knows> <urn:m:b> . <urn:m:b> <urn:m:name> 'Bob' }",
  context,
);
const rows = await engine.queryBindings(
  "SELECT ?n { <urn:m:a> <urn:m:knows>/<urn:m:name>|<urn:m:name> ?n } ORDER BY ?n",
  context,
);
say("select", (await rows.toArray()).map((row) => row.get("n").value));
say("ask", await engine.queryBoolean("ASK { ?s <urn:m:knows> <urn:m:b> }", context));
const quads = await engine.queryQuads("CONSTRUCT WHERE { ?s <urn:m:name> ?o }", context);
say("construct", (await quads.toArray()).length);
await engine.queryVoid("DELETE WHERE { ?s <urn:m:name> ?o } ; DELETE WHERE { ?s <urn:m:knows> ?o }", context);
say("left", await engine.queryBoolean("ASK { ?s <urn:m:name> ?o }", context));
