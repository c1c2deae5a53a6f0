/** The body of a search: built from what is asked on the page, and shown there as it is sent. */

export type Mode = "text" | "vector" | "hybrid";
export interface FieldOf { name: string; type: string }
export interface Fields { facets: string[]; ranges: FieldOf[]; vectors: string[] }
export type Filters = Readonly<Record<string, readonly string[]>>;
export type Ranges = Readonly<Record<string, { from?: string; to?: string }>>;
export interface Wanted {
  text: string; mode: Mode; every: boolean; filters: Filters; ranges: Ranges; page: number; id: string | null;
  vector: { field: string; values: number[] } | null;
}
export interface Hit { _index: string; _id: string; _score: number | null; _source?: Record<string, unknown>; highlight?: Record<string, string[]>; _explanation?: Explanation }
export interface Explanation { value: number; description: string; details?: Explanation[] }
export interface Answer {
  took: number; timed_out: boolean; _shards: { failed: number; failures?: { reason?: { reason?: string } }[] };
  hits: { total?: { value: number; relation: string }; max_score: number | null; hits: Hit[] };
  aggregations?: Record<string, { found?: { buckets: { key: string | number; key_as_string?: string; doc_count: number }[]; sum_other_doc_count?: number }; min?: number; max?: number }>;
}

export const PAGE = 20;
const FACET_MAX = 12;
const BUCKETS = 8;
const WINDOW = 100; // hits of each list that a hybrid search merges
export const BEGIN = "\u0001", END = "\u0002"; // around what matched: characters that texts do not have
const NUMBERS = new Set(["long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long", "date", "date_nanos"]);

type Caps = { fields: Record<string, Record<string, { type: string; aggregatable: boolean; metadata_field?: boolean }>> };
/** What the fields of the indexes can be used for. */
export function fieldsOf(caps: Caps): Fields {
  const found: Fields = { facets: [], ranges: [], vectors: [] };
  for (const [name, types] of Object.entries(caps.fields)) {
    const [first, ...others] = Object.values(types);
    if (!first || others.length || first.metadata_field || name.startsWith("_") || /^(id|title|name|label|prefLabel)(\.keyword)?$/.test(name)) continue;
    if (first.type === "dense_vector") found.vectors.push(name);
    else if (first.aggregatable && (first.type === "keyword" || first.type === "boolean" || first.type === "ip")) found.facets.push(name);
    else if (first.aggregatable && NUMBERS.has(first.type)) found.ranges.push({ name, type: first.type });
  }
  // A text is kept once more for each of its languages: the facet of the field itself is enough.
  const own = found.facets.filter((name) => !/@[\w-]+(\.keyword)?$/.test(name));
  found.facets = own.slice(0, FACET_MAX);
  found.ranges = found.ranges.slice(0, 4);
  return found;
}

function filtersOf({ filters, ranges, id }: Wanted, without?: string): object[] {
  const made: object[] = Object.entries(filters).filter(([name, values]) => values.length && name !== without).map(([name, values]) => ({ terms: { [name]: values } }));
  for (const [name, { from, to }] of Object.entries(ranges)) if ((from || to) && name !== without) made.push({ range: { [name]: { ...(from ? { gte: from } : {}), ...(to ? { lte: to } : {}) } } });
  if (id !== null) made.push({ ids: { values: [id] } });
  return made;
}

export function queryOf(wanted: Wanted): object {
  const text = wanted.text.trim();
  return text ? { simple_query_string: { query: text, fields: ["*"], lenient: true, default_operator: wanted.every ? "and" : "or" } } : { match_all: {} };
}

export function bodyOf(wanted: Wanted, fields: Fields): Record<string, unknown> {
  const filter = filtersOf(wanted);
  const knn = wanted.vector && { field: wanted.vector.field, query_vector: wanted.vector.values, k: WINDOW, num_candidates: 5 * WINDOW };
  const query = queryOf(wanted);
  const body: Record<string, unknown> = { size: PAGE, ...(wanted.page ? { from: wanted.page * PAGE } : {}) };
  if (knn && wanted.mode === "hybrid") body.retriever = { rrf: { retrievers: [{ standard: { query } }, { knn }], rank_window_size: WINDOW, ...(filter.length ? { filter } : {}) } };
  else if (knn && wanted.mode === "vector") body.knn = { ...knn, ...(filter.length ? { filter } : {}) };
  else body.query = filter.length ? { bool: { must: [query], filter } } : query;
  if (wanted.text.trim() && wanted.mode !== "vector") body.highlight = { pre_tags: [BEGIN], post_tags: [END], number_of_fragments: 2, fragment_size: 180, fields: { "*": {} } };
  const aggs: Record<string, object> = {};
  // Each facet counts without its own choice, so that further values can be added to it.
  const isFree = !body.query; // the lists of a vector search have been filtered already
  for (const name of fields.facets) aggs[name] = { filter: { bool: { filter: isFree ? [{ match_all: {} }] : filtersOf(wanted, name) } }, aggs: { found: { terms: { field: name, size: BUCKETS } } } };
  for (const { name } of fields.ranges) aggs[`${name} (range)`] = { stats: { field: name } };
  if (Object.keys(aggs).length) body.aggs = aggs;
  if (!isFree && filter.length) { body.query = query; body.post_filter = { bool: { filter } }; }
  if (fields.vectors.length) body._source = { excludes: fields.vectors };
  return body;
}

/** The request for a shell. Credentials are left to whoever runs it. */
export function curlOf(address: string, path: string, body: object, signedIn: boolean): string {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -s '${address}${path}'${signedIn ? " -u \"$USER\"" : ""} -H 'Content-Type: application/json' -d '${quoted}'`;
}
