/** The history of a resource: the changes of every statement that has it. */
import { written } from "../../api/terms";
import { href } from "../../app/router";
import { ChangeHistory } from "../changes/entries";

export function ResourceHistory({ node }: { node: string }) {
  const name = written({ type: "uri", value: node });
  const query = `SELECT ?property ?value ?graph WHERE {\n  { ${name} ?property ?value } UNION { GRAPH ?graph { ${name} ?property ?value } }\n}\nLIMIT 100`;
  return (
    <section class="card">
      <header><h2>Changes</h2></header>
      <ChangeHistory about={{ resource: node }} links={({ index }) => <>
        <a href={href("query", { query, as_of: String(index), run: "1" })} title={`Query it as it was at log index ${index}`}>As of then</a>
        <a href={href("changes", { resource: node, from: String(index) })} title={`What has changed since log index ${index}`}>Changes since</a>
      </>} />
    </section>
  );
}
