/** What the page of one resource asks for. Long literals are cut by the service, so a value of 10 MB is never sent. */
import { anywhere } from "../../api/neighbours";
import { GEOMETRIES, written, type Row, type Term } from "../../api/terms";
import { quickRows } from "../../api/vocabulary";
import { search, searchAddress } from "../../api/service";

export interface Value { term: Term; graph: string | null; /** characters of the whole value */ length: number; isCut: boolean }
export interface Group { predicate: string; values: Value[]; count: number; isPart: boolean }
export interface Resource { groups: Group[]; graphs: (string | null)[]; types: string[] }
export interface Arrow { subject: Term; predicate: string; graph: string | null }

export const VALUES_MAX = 500;
export const PAGE = 25;
const CUT = 4000; // characters of one value that are sent
const COUNTED_MAX = 5000;
const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
export const iri = (value: string) => written({ type: "uri", value });
const SHORTENED = `(COALESCE(IF(isLiteral(?o) && STRLEN(STR(?o)) > ${CUT}, SUBSTR(STR(?o), 1, ${CUT}), ?o), ?o) AS ?v) (STRLEN(STR(?o)) AS ?length)`;
const textOf = (term: Term | undefined) => term && term.type !== "triple" ? term.value : "";

function valueOf({ v, length, g }: Row): Value | null {
  if (!v) return null;
  const whole = Number(textOf(length)) || 0;
  return { term: v, graph: g?.type === "uri" ? g.value : null, length: whole, isCut: v.type === "literal" && whole > CUT };
}

export async function readResource(node: string, signal: AbortSignal): Promise<Resource> {
  const rows = await quickRows(`SELECT ?p ${SHORTENED} ?g WHERE { ${anywhere(`${iri(node)} ?p ?o`)} } LIMIT ${VALUES_MAX + 1}`, signal);
  const isPart = rows.length > VALUES_MAX;
  const groups = new Map<string, Group>();
  const graphs = new Set<string | null>();
  for (const row of rows) {
    const value = valueOf(row);
    if (!value || row.p?.type !== "uri") continue;
    graphs.add(value.graph);
    let group = groups.get(row.p.value);
    if (!group) groups.set(row.p.value, group = { predicate: row.p.value, values: [], count: 0, isPart: false });
    group.values.push(value);
    group.count++;
  }
  if (isPart) {
    const counts = await quickRows(`SELECT ?p (COUNT(*) AS ?n) WHERE { SELECT ?p WHERE { ${anywhere(`${iri(node)} ?p ?o`)} } LIMIT ${COUNTED_MAX + 1} } GROUP BY ?p`, signal);
    const total = counts.reduce((sum, { n }) => sum + Number(textOf(n)), 0);
    for (const { p, n } of counts) {
      const group = groups.get(textOf(p)) ?? { predicate: textOf(p), values: [], count: 0, isPart: false };
      groups.set(group.predicate, { ...group, count: Number(textOf(n)), isPart: total > COUNTED_MAX });
    }
  }
  const types = groups.get(RDF_TYPE)?.values.flatMap(({ term }) => term.type === "uri" ? [term.value] : []) ?? [];
  return { groups: [...groups.values()], graphs: [...graphs], types: [...new Set(types)] };
}

export async function readValues(node: string, predicate: string, offset: number, limit: number, signal?: AbortSignal): Promise<Value[]> {
  const rows = await quickRows(`SELECT ${SHORTENED} ?g WHERE { ${anywhere(`${iri(node)} ${iri(predicate)} ?o`)} } LIMIT ${limit} OFFSET ${offset}`, signal);
  return rows.flatMap((row) => valueOf(row) ?? []);
}

/** A page of what points to a resource, by one predicate or by any. */
export async function readIncoming(node: string, predicate: string | null, offset: number, signal: AbortSignal): Promise<Arrow[]> {
  const pattern = anywhere(`?s ${predicate === null ? "?p" : iri(predicate)} ${iri(node)}`);
  const rows = await quickRows(`SELECT ?s ?p ?g WHERE { ${pattern} } LIMIT ${PAGE} OFFSET ${offset}`, signal);
  return rows.flatMap(({ s, p, g }) => s ? [{ subject: s, predicate: predicate ?? textOf(p), graph: g?.type === "uri" ? g.value : null }] : []);
}

const GEO = "http://www.opengis.net/ont/geosparql#";
const WGS84 = "http://www.w3.org/2003/01/geo/wgs84_pos#";
/** Where a resource is: its own geometries, those of its geo:hasGeometry, or its latitude and longitude. */
export async function readPlaces(node: string, signal: AbortSignal): Promise<Term[]> {
  const own = iri(node);
  const rows = await quickRows(`SELECT DISTINCT ?w ?lat ?long WHERE {
    { ${own} <${GEO}asWKT>|<${GEO}asGeoJSON> ?w }
    UNION { ${own} <${GEO}hasDefaultGeometry>|<${GEO}hasGeometry> ?geometry . ?geometry <${GEO}asWKT>|<${GEO}asGeoJSON> ?w }
    UNION { ${own} <${WGS84}lat> ?lat ; <${WGS84}long> ?long }
    FILTER(!BOUND(?w) || STRLEN(STR(?w)) < 200000) } LIMIT 50`, signal);
  return rows.flatMap(({ w, lat, long }): Term[] => {
    if (w?.type === "literal" && GEOMETRIES.has(w.datatype ?? "")) return [w];
    const [north, east] = [Number(textOf(lat)), Number(textOf(long))];
    return lat && long && Number.isFinite(north) && Number.isFinite(east) ? [{ type: "literal", value: `POINT(${east} ${north})`, datatype: `${GEO}wktLiteral` }] : [];
  });
}

/** The search indexes that hold a document about a resource. */
export async function readDocuments(node: string, signal: AbortSignal): Promise<string[]> {
  if (searchAddress() === null || node.length > 512) return [];
  const found = await search<{ hits: { hits: { _index: string }[] } }>("/_search?ignore_unavailable=true", { json: { query: { ids: { values: [node] } }, size: 10, _source: false }, signal });
  return [...new Set(found.hits.hits.map((hit) => hit._index))];
}

const PICTURES = new Set(["http://xmlns.com/foaf/0.1/depiction", "http://xmlns.com/foaf/0.1/img", "http://schema.org/image", "https://schema.org/image",
  "http://dbpedia.org/ontology/thumbnail", "http://xmlns.com/foaf/0.1/thumbnail", "http://www.wikidata.org/prop/direct/P18"]);
/** The addresses of pictures of a resource: those of the known predicates, and of those called image or picture. */
export function picturesOf(groups: readonly Group[]): string[] {
  return groups.filter(({ predicate }) => PICTURES.has(predicate) || /[#/](image|picture|depiction|thumbnail|photo)$/i.test(predicate))
    .flatMap(({ values }) => values.flatMap(({ term }) => term.type === "uri" || term.type === "literal" ? [term.value] : []));
}
