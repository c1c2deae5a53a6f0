/** Queries and updates on port 7001. */
import { idempotencyKey } from "./keys";
import { graph } from "./service";
import type { Row, Term } from "./terms";

export interface Selected { vars: string[]; rows: Row[]; index: number | null }

/** The body of a request to /sparql. asOf: a log index or a time, whose state is asked; null: the present. */
export function queryBody(query: string, asOf: string | null, further: Record<string, string> = {}): URLSearchParams {
  return new URLSearchParams({ query, ...(asOf === null ? {} : { as_of: asOf }), ...further });
}

/** The rows of a SELECT, whole. For the page's own questions; the query page reads its answers piece by piece. */
export async function select(query: string, signal?: AbortSignal): Promise<Selected> {
  const answer = await graph("/sparql", {
    method: "POST", body: new URLSearchParams({ query }), signal: signal ?? null, headers: { Accept: "application/sparql-results+json" },
  });
  const found = await answer.json() as { head: { vars: string[] }; results: { bindings: Row[] } };
  return { vars: found.head.vars, rows: found.results.bindings, index: indexOf(answer) };
}

export async function ask(query: string, signal?: AbortSignal): Promise<boolean> {
  const answer = await graph("/sparql", {
    method: "POST", body: new URLSearchParams({ query }), signal: signal ?? null, headers: { Accept: "application/sparql-results+json" },
  });
  return (await answer.json() as { boolean: boolean }).boolean;
}

/** The text of an answer in one format, such as text/turtle. */
export async function textOf(query: string, accept: string, signal?: AbortSignal): Promise<string> {
  return (await graph("/sparql", { method: "POST", body: new URLSearchParams({ query }), signal: signal ?? null, headers: { Accept: accept } })).text();
}

export interface Confirmation { success: boolean; message: string; snapshot_index: number; affected_triples: number }

/** Each call has a key of its own, so a browser that sends it again changes nothing twice. */
export async function update(text: string, signal?: AbortSignal): Promise<Confirmation> {
  const answer = await graph("/update", {
    method: "POST", body: text, signal: signal ?? null,
    headers: { "Content-Type": "application/sparql-update", "Idempotency-Key": idempotencyKey() },
  });
  return await answer.json() as Confirmation;
}

export function indexOf(answer: Response): number | null {
  const text = answer.headers.get("X-Snapshot-Index");
  return text === null ? null : Number(text);
}

export function valueOf(term: Term | undefined): string {
  return term === undefined ? "" : term.type === "triple" ? "triple" : term.value;
}
