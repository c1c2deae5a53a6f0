/** One answer as it arrives: rows line by line, up to a maximum, or a graph, a boolean, a text. */
import { graph } from "../../api/service";
import { indexOf, queryBody } from "../../api/sparql";
import { statementOf } from "../../api/statements";
import type { Row, Term } from "../../api/terms";
import { formOf, tokens } from "../../ui/sparql-language";

export const ROWS_MAX = 100_000;
const GRAPH_BYTES_MAX = 24 << 20;

export interface Triple { subject: Term; predicate: Term; object: Term }
export interface Answer {
  form: "SELECT" | "ASK" | "CONSTRUCT" | "DESCRIBE" | "UPDATE";
  vars: string[];
  rows: Row[];
  /** Whether there are more rows than are shown. */
  cut: boolean;
  /** Whether it has arrived whole, or up to ROWS_MAX. */
  done: boolean;
  boolean: boolean | null;
  seconds: number;
  index: number | null;
  /** Where it was made, as the service says: "at once", "cache", "reader 2 (process 7)"; null of an update. */
  where: string | null;
  /** Of an update. */
  affected: number | null;
  bytes: number;
}

/** The variables that SELECT names, in order; null for `SELECT *`. */
export function projection(text: string): string[] | null {
  const all = tokens(text).filter((token) => token.kind !== "comment");
  const start = all.findIndex((token) => /^SELECT$/i.test(token.text));
  if (start < 0) return null;
  const found: string[] = [];
  let depth = 0;
  for (let position = start + 1; position < all.length; position++) {
    const token = all[position]!;
    if (token.text === "*" && depth === 0) return null;
    if (token.text === "(") depth++;
    else if (token.text === ")") depth--;
    else if (depth === 0 && (token.text === "{" || /^(WHERE|FROM)$/i.test(token.text))) break;
    else if (token.kind === "variable" && (depth === 0 || (depth === 1 && /^AS$/i.test(all[position - 1]!.text)))) found.push(token.text.slice(1));
  }
  return found;
}

/** Evaluates a query, of the present or of a past state. `progress` is called as rows arrive. Raises ServiceError; an AbortError where it was cancelled. */
export async function evaluate(text: string, asOf: string | null, id: string, signal: AbortSignal, progress: (answer: Answer) => void): Promise<Answer> {
  const form = formOf(text) ?? "SELECT";
  const began = performance.now();
  const accept = form === "SELECT" ? "application/x-ndjson" : form === "ASK" ? "application/sparql-results+json" : "application/n-triples";
  const answer = await graph("/sparql", {
    method: "POST", signal, headers: { Accept: accept }, body: queryBody(text, asOf, { query_id: id }),
  });
  const made: Answer = {
    form: form === "UPDATE" ? "SELECT" : form, vars: [], rows: [], cut: false, done: false, boolean: null, seconds: 0, index: indexOf(answer), where: answer.headers.get("X-Evaluated"), affected: null, bytes: 0,
  };
  const told = projection(text);
  const order = new Set(form === "SELECT" ? told ?? [] : ["subject", "predicate", "object"]);
  const finish = () => {
    made.vars = [...order];
    made.seconds = (performance.now() - began) / 1000;
    return made;
  };
  if (form === "ASK") {
    made.boolean = (await answer.json() as { boolean: boolean }).boolean;
    made.done = true;
    return finish();
  }
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let shownAt = 0;
  reading: for (;;) {
    const { done, value } = await reader.read();
    if (value !== undefined) { rest += value; made.bytes += value.length; }
    const lines = rest.split("\n");
    rest = done ? "" : lines.pop()!;
    for (const line of lines) {
      if (line === "") continue;
      if (made.rows.length >= ROWS_MAX || (form !== "SELECT" && made.bytes > GRAPH_BYTES_MAX)) { made.cut = true; await reader.cancel(); break reading; }
      const row = form === "SELECT" ? JSON.parse(line) as Row : rowOf(line);
      if (row === null) continue;
      if (told === null && form === "SELECT") for (const name in row) order.add(name);
      made.rows.push(row);
    }
    if (done) break;
    if (performance.now() - shownAt > 250 && made.rows.length) { shownAt = performance.now(); progress({ ...finish() }); }
  }
  made.done = true;
  return finish();
}

/** One line of N-Triples as a row. */
function rowOf(line: string): Row | null {
  const found = statementOf(line);
  return found && { subject: found.subject, predicate: found.predicate, object: found.object };
}

/** Rows as triples, where three terms of each row can be read as one. */
export function triplesOf(answer: Answer): Triple[] | null {
  const [s, p, o] = answer.vars;
  if (answer.vars.length !== 3 || !s || !p || !o) return null;
  const found: Triple[] = [];
  for (const row of answer.rows) {
    const [subject, predicate, object] = [row[s], row[p], row[o]];
    if (subject && object && predicate?.type === "uri" && subject.type !== "literal") found.push({ subject, predicate, object });
  }
  return found.length ? found : null;
}
