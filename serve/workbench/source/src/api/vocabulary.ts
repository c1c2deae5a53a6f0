/** What the data are about: classes, predicates, prefixes, labels. Asked for once, kept until the page is loaded again. */
import { signal } from "@preact/signals";
import { graph } from "./service";
import { RDFS_LABEL, RDF_TYPE, written, type Row, type Term } from "./terms";

export interface Named { iri: string; count: number; label: string | null }

export const WELL_KNOWN: Readonly<Record<string, string>> = {
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#", rdfs: "http://www.w3.org/2000/01/rdf-schema#", owl: "http://www.w3.org/2002/07/owl#",
  xsd: "http://www.w3.org/2001/XMLSchema#", skos: "http://www.w3.org/2004/02/skos/core#", foaf: "http://xmlns.com/foaf/0.1/",
  dc: "http://purl.org/dc/elements/1.1/", dcterms: "http://purl.org/dc/terms/", schema: "http://schema.org/", sdo: "https://schema.org/",
  geo: "http://www.opengis.net/ont/geosparql#", geof: "http://www.opengis.net/def/function/geosparql/", sf: "http://www.opengis.net/ont/sf#",
  wgs84: "http://www.w3.org/2003/01/geo/wgs84_pos#", prov: "http://www.w3.org/ns/prov#", sh: "http://www.w3.org/ns/shacl#",
  void: "http://rdfs.org/ns/void#", dcat: "http://www.w3.org/ns/dcat#", org: "http://www.w3.org/ns/org#", time: "http://www.w3.org/2006/time#",
  dbo: "http://dbpedia.org/ontology/", dbr: "http://dbpedia.org/resource/", wd: "http://www.wikidata.org/entity/", wdt: "http://www.wikidata.org/prop/direct/",
};

/** Prefixes of the data by their names; well-known names where the namespace has one. */
export const prefixes = signal<ReadonlyMap<string, string>>(new Map());
export const classes = signal<readonly Named[]>([]);
export const predicates = signal<readonly Named[]>([]);
export const labels = signal<ReadonlyMap<string, string>>(new Map());

const LABELS = [RDFS_LABEL, "http://www.w3.org/2004/02/skos/core#prefLabel", "http://xmlns.com/foaf/0.1/name", "http://schema.org/name",
  "https://schema.org/name", "http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title"];
/** Predicates whose values name a resource: the well-known ones, then those of the data called so. */
export function labelPredicates(): string[] {
  const own = predicates.value.map((one) => one.iri).filter((iri) => /[#/](name|title|label|prefLabel)$/.test(iri));
  return [...new Set([...LABELS, ...own])];
}

export function namespaceOf(iri: string): string { return /^.*[#/:]/.exec(iri)?.[0] ?? iri; }
export function localName(iri: string): string { return iri.slice(namespaceOf(iri).length) || iri; }

/** `prefix:name` where a prefix fits, otherwise null. Further prefixes take precedence: those that a query declares. */
export function shorten(iri: string, further?: ReadonlyMap<string, string>): string | null {
  for (const known of [further, prefixes.value]) {
    let best: string | null = null;
    let length = 0;
    known?.forEach((namespace, name) => {
      if (namespace.length > length && iri.startsWith(namespace)) {
        const local = iri.slice(namespace.length);
        if (/^[\p{L}\p{N}_]?[\p{L}\p{N}_.\-]*$/u.test(local) && !local.endsWith(".")) { best = `${name}:${local}`; length = namespace.length; }
      }
    });
    if (best !== null) return best;
  }
  return null;
}

/** The prefixes that the query at hand declares: its answer is shown with them. */
export const declaredPrefixes = signal<ReadonlyMap<string, string>>(new Map());

/** How a list shows an IRI: short, or its end. */
export function shown(iri: string): string { return shorten(iri, declaredPrefixes.value) ?? (iri.length > 60 ? `…${iri.slice(-56)}` : iri); }

async function rows(query: string, timeout: string, signal?: AbortSignal): Promise<Row[]> {
  const answer = await graph("/sparql", {
    method: "POST", body: new URLSearchParams({ query, timeout }), signal: signal ?? null, headers: { Accept: "application/sparql-results+json" },
  });
  return (await answer.json() as { results: { bindings: Row[] } }).results.bindings;
}
export const quickRows = (query: string, signal?: AbortSignal) => rows(query, "5s", signal);

const textOf = (term: Term | undefined) => term && term.type !== "triple" ? term.value : "";
const named = (found: Row[]): Named[] => found.filter((row) => row.x?.type === "uri")
  .map((row) => ({ iri: textOf(row.x), count: Number(textOf(row.n)), label: null }));

let loading: Promise<void> | null = null;
/** Loads classes and predicates once. What takes too long is left out: completion is then poorer, and nothing fails. */
export function loadVocabulary(again = false): Promise<void> {
  if (again) loading = null;
  loading ??= (async () => {
    const [ofClasses, ofPredicates] = await Promise.all([
      rows(`SELECT ?x (COUNT(*) AS ?n) WHERE { { ?s a ?x } UNION { GRAPH ?g { ?s a ?x } } } GROUP BY ?x ORDER BY DESC(?n) LIMIT 2000`, "10s").catch(() => []),
      rows(`SELECT ?x (COUNT(*) AS ?n) WHERE { { ?s ?x ?o } UNION { GRAPH ?g { ?s ?x ?o } } } GROUP BY ?x ORDER BY DESC(?n) LIMIT 2000`, "10s").catch(() => []),
    ]);
    classes.value = named(ofClasses);
    predicates.value = named(ofPredicates);
    prefixes.value = findPrefixes();
    await loadLabels([...classes.value, ...predicates.value].slice(0, 600).map((one) => one.iri));
  })();
  return loading;
}

function findPrefixes(): Map<string, string> {
  const known = new Map(Object.entries(WELL_KNOWN).map(([name, iri]) => [iri, name]));
  const counted = new Map<string, number>();
  for (const { iri, count } of [...classes.value, ...predicates.value]) {
    const namespace = namespaceOf(iri);
    counted.set(namespace, (counted.get(namespace) ?? 0) + count);
  }
  const found = new Map<string, string>();
  for (const [namespace] of [...counted].sort((one, other) => other[1] - one[1]).slice(0, 60)) {
    addPrefix(found, namespace, known.get(namespace));
  }
  for (const [name, iri] of Object.entries(WELL_KNOWN)) if (["rdf", "rdfs", "xsd", "owl"].includes(name) && !found.has(name)) found.set(name, iri);
  return found;
}

function addPrefix(found: Map<string, string>, namespace: string, known?: string): void {
  let name = known ?? nameFor(namespace);
  if (found.has(name)) name += /([A-Za-z]+)[^A-Za-z]*$/.exec(namespace)?.[1]?.toLowerCase() ?? "";
  while (found.has(name)) name += "2";
  found.set(name, namespace);
}

/** Namespaces of resources that are shown get a prefix too, where several of them are. */
function learnPrefixes(iris: readonly string[]): void {
  const taken = new Set(prefixes.value.values());
  const counted = new Map<string, number>();
  for (const iri of iris) { const namespace = namespaceOf(iri); if (!taken.has(namespace)) counted.set(namespace, (counted.get(namespace) ?? 0) + 1); }
  const fresh = [...counted].filter(([namespace, count]) => count >= 3 && namespace.length > 8);
  if (!fresh.length || prefixes.value.size > 80) return;
  const found = new Map(prefixes.value);
  for (const [namespace] of fresh.slice(0, 5)) addPrefix(found, namespace);
  prefixes.value = found;
}

/** A name for a namespace that has none: its last word. */
function nameFor(namespace: string): string {
  const words = namespace.replace(/^\w+:\/*/, "").split(/[^A-Za-z0-9]+/).filter((word) => /^[A-Za-z]/.test(word) && !/^(www|com|org|net|example|ontology|vocab|ns|schema|def|id|resource)$/i.test(word));
  return (words.at(-1) ?? "ns").toLowerCase().slice(0, 12);
}

const asked = new Set<string>();
/** Labels of resources in the reader's language, English, or any; in batches, each IRI once. */
export async function loadLabels(iris: readonly string[]): Promise<void> {
  const wanted = [...new Set(iris)].filter((iri) => !asked.has(iri) && iri !== RDF_TYPE).slice(0, 1000);
  if (!wanted.length) return;
  learnPrefixes(wanted);
  wanted.forEach((iri) => asked.add(iri));
  const found = new Map<string, string>();
  const language = navigator.language.slice(0, 2);
  for (let from = 0; from < wanted.length; from += 200) {
    const values = wanted.slice(from, from + 200).map((value) => written({ type: "uri", value })).join(" ");
    const by = labelPredicates().slice(0, 12).map((value) => `(${written({ type: "uri", value })})`).join(" ");
    const answer = await rows(`SELECT ?s ?l WHERE { VALUES ?s { ${values} } VALUES (?p) { ${by} } { ?s ?p ?l } UNION { GRAPH ?g { ?s ?p ?l } } } LIMIT 2000`, "5s").catch(() => { wanted.slice(from, from + 200).forEach((iri) => asked.delete(iri)); return []; }); // asked for again next time
    const ranks = new Map<string, number>();
    for (const { s, l } of answer) {
      if (l?.type !== "literal" || s?.type !== "uri" || l.value.length > 200) continue;
      const own = l["xml:lang"]?.slice(0, 2).toLowerCase();
      const rank = own === language ? 3 : own === "en" ? 2 : own === undefined ? 2 : 1;
      if (rank > (ranks.get(s.value) ?? 0)) { ranks.set(s.value, rank); found.set(s.value, l.value); }
    }
  }
  labels.value = new Map([...labels.value, ...found]); // others may have come meanwhile
}
