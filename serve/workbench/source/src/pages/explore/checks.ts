/** SHACL for one resource: the shapes of the data that aim at it, and what they say. */
import { graphJson, graph } from "../../api/service";
import { quickRows } from "../../api/vocabulary";
import { iri } from "./resource-data";

export interface Finding { path: string | null; message: string; severity: "violation" | "warning" | "info" }
interface Report { results: { focusNode: string; resultPath: string | null; severity: string; message: string }[] }
const SH = "http://www.w3.org/ns/shacl#";
const SHAPES_MAX = 2_000_000; // characters of one graph of shapes
// What aims shapes at other nodes: left out, so that one resource is checked and not the whole data.
const AIMS = /^\S+ (<http:\/\/www\.w3\.org\/ns\/shacl#target\w*>|<http:\/\/www\.w3\.org\/1999\/02\/22-rdf-syntax-ns#type> <http:\/\/www\.w3\.org\/(2000\/01\/rdf-schema|2002\/07\/owl)#Class>) /;

const kept = new Map<string, Promise<string>>(); // the shapes of each graph, as N-Triples

export function findingsOf(report: unknown, node: string): Finding[] {
  const results = (report as Report | undefined)?.results ?? [];
  return results.filter((one) => one.focusNode === node).map(({ resultPath, message, severity }) => ({
    path: resultPath, message, severity: severity === `${SH}Warning` ? "warning" : severity === `${SH}Info` ? "info" : "violation",
  }));
}

/** Null where no shapes of the named graphs aim at the resource. */
export async function checkResource(node: string, signal: AbortSignal): Promise<Finding[] | null> {
  const graphs = await quickRows(`SELECT DISTINCT ?g WHERE { GRAPH ?g { ?shape a <${SH}NodeShape> } } LIMIT 10`, signal);
  if (!graphs.length) return null;
  const aiming = await quickRows(`SELECT DISTINCT ?g ?shape WHERE {
    { SELECT DISTINCT ?c WHERE { { ${iri(node)} a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>* ?c } UNION { GRAPH ?any { ${iri(node)} a ?c } } } LIMIT 200 }
    { GRAPH ?g { ?shape <${SH}targetClass> ?c } } UNION { GRAPH ?g { ?shape a <${SH}NodeShape> FILTER(?shape = ?c) } } } LIMIT 100`, signal);
  const named = await quickRows(`SELECT DISTINCT ?g ?shape WHERE {
    { GRAPH ?g { ?shape <${SH}targetNode> ${iri(node)} } } UNION
    { { SELECT DISTINCT ?p WHERE { ${iri(node)} ?p ?o } LIMIT 500 } GRAPH ?g { ?shape <${SH}targetSubjectsOf> ?p } } } LIMIT 100`, signal);
  const shapes = new Map<string, string[]>();
  for (const { g, shape } of [...aiming, ...named]) if (g?.type === "uri" && shape?.type === "uri") shapes.set(g.value, [...(shapes.get(g.value) ?? []), shape.value]);
  if (!shapes.size) return null;
  const found: Finding[] = [];
  for (const [name, aimed] of shapes) {
    let text = kept.get(name);
    if (!text) kept.set(name, text = graph(`/data?${new URLSearchParams({ graph: name })}`, { headers: { Accept: "application/n-triples" } }).then((answer) => answer.text()));
    const lines = await text.catch((error: unknown) => { kept.delete(name); throw error; });
    if (lines.length > SHAPES_MAX) continue;
    const own = lines.split("\n").filter((line) => !AIMS.test(line)).join("\n");
    const aims = [...new Set(aimed)].map((shape) => `${iri(shape)} <${SH}targetNode> ${iri(node)} .`).join("\n");
    const report = await graphJson<Report>("/shacl/validate", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ shapes: `${own}\n${aims}\n`, graph: "union" }), signal });
    found.push(...findingsOf(report, node));
  }
  return found;
}
/** The shapes are read anew: somebody may have changed them. */
export function forgetShapes(): void { kept.clear(); }
