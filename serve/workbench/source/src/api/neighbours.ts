/** What a resource is connected with, in the default graph and in every named one. Counts stop at a bound, so a hub costs no more. */
import { loadLabels, loadVocabulary, predicates, quickRows } from "./vocabulary";
import { RDF_TYPE, written, type Term } from "./terms";

export type Direction = "out" | "in";
export interface Counted { predicate: string; direction: Direction; count: number; /** whether there may be more */ isPart: boolean }

const COUNTED_MAX = 5000;
const EACH_MAX = 1000; // of each predicate of a hub
const PREDICATES_MAX = 90; // patterns that one query may have
const iri = (value: string) => written({ type: "uri", value });

/** A pattern in the default graph or in any other. */
export function anywhere(pattern: string, graph = "?g"): string { return `{ ${pattern} } UNION { GRAPH ${graph} { ${pattern} } }`; }
function patternOf(node: string, predicate: string, direction: Direction, other: string): string {
  return direction === "out" ? `${iri(node)} ${predicate} ${other}` : `${other} ${predicate} ${iri(node)}`;
}

/** By predicate, how many resources a resource leads to ("out") or is led to from ("in"). Types and literals are not counted. */
export async function countNeighbours(node: string, direction: Direction, signal?: AbortSignal): Promise<Counted[]> {
  const filter = direction === "out" ? `FILTER(!isLiteral(?x) && ?p != <${RDF_TYPE}>)` : "";
  const found = await quickRows(`SELECT ?p (COUNT(*) AS ?n) WHERE { SELECT DISTINCT ?p ?x WHERE { ${anywhere(patternOf(node, "?p", direction, "?x"))} ${filter} } LIMIT ${COUNTED_MAX + 1} } GROUP BY ?p ORDER BY DESC(?n)`, signal);
  const counts = new Map(found.map(({ p, n }) => [textOf(p), Number(textOf(n))]));
  const isPart = [...counts.values()].reduce((one, other) => one + other, 0) > COUNTED_MAX;
  // The bound may have been reached before every predicate was seen: each one of the data is asked for by itself.
  if (isPart) {
    const each = predicates.value.slice(0, PREDICATES_MAX).filter((one) => direction === "in" || one.iri !== RDF_TYPE)
      .map((one) => `{ SELECT (${iri(one.iri)} AS ?p) WHERE { ${patternOf(node, iri(one.iri), direction, "?x")} } LIMIT ${EACH_MAX + 1} }`);
    if (each.length) {
      const more = await quickRows(`SELECT ?p (COUNT(*) AS ?n) WHERE { ${each.join(" UNION ")} } GROUP BY ?p`, signal).catch(() => []);
      for (const { p, n } of more) if (textOf(p)) counts.set(textOf(p), Math.max(counts.get(textOf(p)) ?? 0, Number(textOf(n))));
    }
  }
  return [...counts].filter(([predicate]) => predicate).sort((one, other) => other[1] - one[1])
    .map(([predicate, count]) => ({ predicate, direction, count, isPart: isPart && count > EACH_MAX }));
}

/** A page of the resources at the other end of one predicate. */
export async function neighbours(node: string, predicate: string, direction: Direction, limit: number, offset = 0, signal?: AbortSignal): Promise<Term[]> {
  const filter = direction === "out" ? "FILTER(!isLiteral(?x))" : "";
  const found = await quickRows(`SELECT DISTINCT ?x WHERE { ${anywhere(patternOf(node, iri(predicate), direction, "?x"))} ${filter} } LIMIT ${limit} OFFSET ${offset}`, signal);
  return found.flatMap(({ x }) => x ? [x] : []);
}

/** The classes of many resources. */
export async function typesOf(nodes: readonly string[], signal?: AbortSignal): Promise<[node: string, type: string][]> {
  const found: [string, string][] = [];
  for (let from = 0; from < nodes.length; from += 200) {
    const values = nodes.slice(from, from + 200).map(iri).join(" ");
    const rows = await quickRows(`SELECT DISTINCT ?x ?c WHERE { VALUES ?x { ${values} } ${anywhere("?x a ?c")} } LIMIT 2000`, signal);
    for (const { x, c } of rows) if (x?.type === "uri" && c?.type === "uri") found.push([x.value, c.value]);
  }
  return found;
}

/** Labels, once the predicates are known that hold them in these data. */
export async function readLabels(iris: readonly string[]): Promise<void> { await loadVocabulary(); await loadLabels(iris); }

function textOf(term: Term | undefined): string { return term && term.type !== "triple" ? term.value : ""; }

/** "1,234", or "5,000+" where counting stopped. */
export function counted(count: number, isPart: boolean): string { return isPart ? `${(Math.floor(count / 1000) * 1000).toLocaleString("en")}+` : count.toLocaleString("en"); }
