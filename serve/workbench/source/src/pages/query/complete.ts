/** What may come at a place of a query: keywords, prefixes, then classes, predicates and entities of the data,
 * narrowed by what is already there.
 */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { RDF_TYPE, written } from "../../api/terms";
import { WELL_KNOWN, classes, labelPredicates, labels, loadLabels, loadVocabulary, predicates, prefixes, quickRows, shorten } from "../../api/vocabulary";
import { FUNCTIONS, KEYWORD_LIST, declared, tokens, type Token } from "../../ui/sparql-language";

type Position = "subject" | "predicate" | "object";
interface Place { position: Position; subject: string | null; predicate: string | null; inPattern: boolean; inExpression: boolean }

const isTerm = (token: Token) => ["iri", "prefixed", "bnode", "variable", "string", "number", "boolean", "a"].includes(token.kind);

/** Where in its triple a place is, by the tokens before it. */
export function placeIn(before: readonly Token[]): Place {
  const place: Place = { position: "subject", subject: null, predicate: null, inPattern: false, inExpression: false };
  const open: string[] = [];
  let expects: Position = "subject";
  for (const token of before) {
    if (token.kind === "comment" || token.kind === "lang") continue;
    const { text } = token;
    if (text === "{" || text === "(" || text === "[") {
      open.push(text);
      if (text === "{") { expects = "subject"; place.subject = place.predicate = null; }
    } else if (text === "}" || text === ")" || text === "]") {
      open.pop();
      if (text === "}") { expects = "subject"; place.subject = place.predicate = null; }
    } else if (open.includes("(")) continue;
    else if (text === ".") { expects = "subject"; place.subject = place.predicate = null; }
    else if (text === ";") { expects = "predicate"; place.predicate = null; }
    else if (text === ",") expects = "object";
    else if (token.kind === "keyword") { if (!/^(AS|NOT|EXISTS|IN)$/i.test(text)) { expects = "subject"; place.subject = place.predicate = null; } }
    else if (isTerm(token)) {
      if (expects === "subject") { place.subject = text; expects = "predicate"; }
      else if (expects === "predicate") { place.predicate = text; expects = "object"; }
    }
  }
  place.position = expects;
  place.inPattern = open.includes("{");
  place.inExpression = open.includes("(");
  return place;
}

function expanded(text: string, known: ReadonlyMap<string, string>): string | null {
  if (text === "a") return RDF_TYPE;
  if (text.startsWith("<")) return text.slice(1, -1);
  const [name, local] = text.split(/:(.*)/s);
  const namespace = known.get(name ?? "");
  return namespace === undefined ? null : namespace + (local ?? "");
}

/** What the query says of a subject: its classes, and its other predicates. */
function facts(all: readonly Token[], subject: string, known: ReadonlyMap<string, string>): { classes: string[]; predicates: string[] } {
  const found = { classes: [] as string[], predicates: [] as string[] };
  all.forEach((token, position) => {
    const place = placeIn(all.slice(0, position));
    if (place.subject !== subject || !isTerm(token)) return;
    if (place.position === "object" && place.predicate !== null) {
      const predicate = expanded(place.predicate, known);
      const value = expanded(token.text, known);
      if (predicate === RDF_TYPE && value !== null && (token.kind === "iri" || token.kind === "prefixed")) found.classes.push(value);
      else if (predicate !== null && predicate !== RDF_TYPE) found.predicates.push(predicate);
    }
  });
  return found;
}

const kept = new Map<string, Promise<Map<string, number>>>();
function counted(query: string): Promise<Map<string, number>> {
  let known = kept.get(query);
  if (!known) {
    known = quickRows(query).then((rows) => new Map(rows.flatMap((row) => row.x?.type === "uri" ? [[row.x.value, row.n?.type === "literal" ? Number(row.n.value) : 1] as const] : [])))
      .catch(() => new Map());
    kept.set(query, known);
  }
  return known;
}
const iri = (value: string) => written({ type: "uri", value });

export async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const text = context.state.doc.toString();
  const word = context.matchBefore(/[?$]?[\p{L}\p{N}_:.\-]*|<[^<>\s]*/u);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  if (word.text.startsWith("?") || word.text.startsWith("$")) return variables(text, word.from);
  const all = tokens(text);
  const inside = all.find((token) => token.from < context.pos && token.to >= context.pos);
  if (inside && ["comment", "string"].includes(inside.kind)) return null;
  const before = all.filter((token) => token.to <= word.from);
  await loadVocabulary();
  if (context.aborted) return null;
  const own = declared(text);
  const last = before.at(-1);
  if (last && /^PREFIX$/i.test(last.text)) return { from: word.from, options: declarations(own), validFor: /^[\w.-]*$/ };
  const known = new Map([...Object.entries(WELL_KNOWN), ...prefixes.value, ...own]);
  const place = placeIn(before);
  const options: Completion[] = [];
  const add = (value: string, detail: string | undefined, boost: number) => options.push(resource(value, detail, boost, own, word.text));
  if (place.inPattern && place.position === "predicate" && !place.inExpression) {
    const said = place.subject === null ? { classes: [], predicates: [] } : facts(all.filter((token) => token.from < word.from || token.from > context.pos), place.subject, known);
    const narrowed = await narrow(place.subject, said, known);
    if (context.aborted) return null;
    await loadLabels([...narrowed.keys()]);
    if (!said.classes.length) options.push({ label: "a", detail: "is of the class", boost: 60, type: "keyword" });
    for (const [value, count] of narrowed) add(value, times(count), 50);
    for (const one of predicates.value) if (!narrowed.has(one.iri)) add(one.iri, times(one.count), narrowed.size ? -40 : 0);
  } else if (place.inPattern && place.position === "object" && place.predicate !== null && expanded(place.predicate, known) === RDF_TYPE) {
    for (const one of classes.value) add(one.iri, times(one.count), 20);
  } else {
    if (place.inPattern) for (const found of await entities(word.text, place, known)) add(found.iri, found.detail, 10);
    for (const one of classes.value.slice(0, 300)) if (place.inPattern) add(one.iri, times(one.count), -20);
    for (const name of FUNCTIONS) options.push({ label: name, apply: `${name}(`, type: "function", boost: place.inExpression ? 20 : -50 });
    for (const name of KEYWORD_LIST) options.push({ label: name, type: "keyword", boost: place.inExpression ? -50 : -10 });
  }
  if (!place.inPattern) for (const option of options) if (option.type === "keyword") option.boost = 30;
  return options.length ? { from: word.from, options, validFor: word.text.includes(":") ? /^[\p{L}\p{N}_:.\-]*$/u : /^[\p{L}\p{N}_.\-]*$/u } : null;
}

const times = (count: number) => `${count.toLocaleString("en")}×`;

/** The predicates that subjects like this one have, with their counts. */
async function narrow(subject: string | null, said: { classes: string[]; predicates: string[] }, known: ReadonlyMap<string, string>): Promise<Map<string, number>> {
  const patterns = [...said.classes.map((one) => `a ${iri(one)}`), ...said.predicates.slice(0, 3).map((one) => `${iri(one)} []`)];
  const constant = subject && !subject.startsWith("?") && !subject.startsWith("$") ? expanded(subject, known) : null;
  if (constant !== null) return counted(`SELECT ?x (COUNT(*) AS ?n) WHERE { { ${iri(constant)} ?x ?o } UNION { GRAPH ?g { ${iri(constant)} ?x ?o } } } GROUP BY ?x ORDER BY DESC(?n)`);
  if (!patterns.length) return new Map();
  const own = `?s ${patterns.join(" ; ")} ; ?x ?o`;
  const found = await counted(`SELECT ?x (COUNT(*) AS ?n) WHERE { ${own} } GROUP BY ?x ORDER BY DESC(?n) LIMIT 200`);
  return found.size ? found : counted(`SELECT ?x (COUNT(*) AS ?n) WHERE { GRAPH ?g { ${own} } } GROUP BY ?x ORDER BY DESC(?n) LIMIT 200`);
}

interface Entity { iri: string; detail: string }
/** Resources whose label has the word, first those that are values of this predicate. */
async function entities(word: string, place: Place, known: ReadonlyMap<string, string>): Promise<Entity[]> {
  const sought = word.replace(/^[^:]*:/, "").toLowerCase();
  if (sought.length < 2) return [];
  const predicate = place.position === "object" && place.predicate !== null ? expanded(place.predicate, known) : null;
  const link = predicate === null ? "" : `[] ${iri(predicate)} ?x . `;
  const by = labelPredicates().slice(0, 10).map(iri).join(" ");
  const filter = `FILTER(CONTAINS(LCASE(STR(?l)), ${JSON.stringify(sought)}))`;
  const rows = await quickRows(`SELECT DISTINCT ?x ?l WHERE { VALUES ?p { ${by} } ${link}?x ?p ?l ${filter} } LIMIT 40`).catch(() => []);
  return rows.flatMap((row) => row.x?.type === "uri" && row.l?.type === "literal" ? [{ iri: row.x.value, detail: row.l.value.slice(0, 60) }] : []);
}

/** A resource as it is written, found by its label too. Its prefix is declared with it where it is not yet. */
function resource(value: string, detail: string | undefined, boost: number, own: ReadonlyMap<string, string>, word: string): Completion {
  const short = shorten(value, own);
  const name = labels.value.get(value);
  const missing = short === null ? null : own.has(short.split(":", 1)[0]!) ? null : short.split(":", 1)[0]!;
  const spelled = short ?? `<${value}>`;
  const byLabel = name !== undefined && !spelled.toLowerCase().includes(word.toLowerCase()) && name.toLowerCase().includes(word.toLowerCase());
  return {
    label: byLabel || (!spelled.toLowerCase().includes(word.toLowerCase()) && detail?.toLowerCase().includes(word.toLowerCase())) ? `${byLabel ? name : detail} ${spelled}` : spelled,
    displayLabel: spelled,
    detail: [name === short?.split(":")[1] ? undefined : name, detail].filter(Boolean).join(" · "),
    boost,
    type: "class",
    apply: (view, _completion, from, to) => {
      const head = missing === null ? "" : `PREFIX ${missing}: <${prefixes.value.get(missing) ?? WELL_KNOWN[missing]}>\n`;
      view.dispatch({
        changes: [...(head ? [{ from: 0, insert: head }] : []), { from, to, insert: spelled }],
        selection: { anchor: from + head.length + spelled.length },
        userEvent: "input.complete",
      });
    },
  };
}

function variables(text: string, from: number): CompletionResult {
  const counts = new Map<string, number>();
  for (const token of tokens(text)) if (token.kind === "variable" && token.from !== from) counts.set(token.text, (counts.get(token.text) ?? 0) + 1);
  return { from, options: [...counts].map(([label, count]) => ({ label, boost: count, type: "variable" })), validFor: /^[?$][\p{L}\p{N}_]*$/u };
}

function declarations(own: ReadonlyMap<string, string>): Completion[] {
  const all = new Map([...Object.entries(WELL_KNOWN), ...prefixes.value]);
  return [...all].filter(([name]) => !own.has(name)).map(([name, namespace]) => ({
    label: name, detail: namespace, apply: `${name}: <${namespace}>`, boost: prefixes.value.has(name) ? 20 : 0, type: "namespace",
  }));
}
