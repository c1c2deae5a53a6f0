/** What the service says of a text that it does not evaluate: POST /sparql/check. */
import { formOf } from "../ui/sparql-language";
import type { Mark } from "../ui/editor";
import { graphJson } from "./service";

export interface Plan { evaluated: string; reasons: string[]; warnings: string[]; repeatable: boolean; cacheable: boolean }
interface Checked { valid: boolean; error: string | null; line: number | null; column: number | null; plan: Plan | null }

const CHARACTERS_MAX = 200_000; // longer texts are not checked while they are written

function check(text: string, parameters: Record<string, string>, signal?: AbortSignal): Promise<Checked> {
  const type = formOf(text) === "UPDATE" ? "application/sparql-update" : "application/sparql-query";
  return graphJson<Checked>(`/sparql/check?${new URLSearchParams(parameters)}`, { method: "POST", body: text, headers: { "Content-Type": type }, signal: signal ?? null });
}

/** Where a text is wrong, and why; null where it is right, empty, or nobody can say. */
export async function faultIn(text: string): Promise<Mark | null> {
  if (!text.trim() || text.length > CHARACTERS_MAX) return null;
  const found = await check(text, {}).catch(() => null);
  return !found || found.valid ? null : { line: found.line ?? 1, column: found.column ?? 1, message: found.error ?? "" };
}

/** How a query is answered, and why so. asOf: the past state that it is asked of; null: the present. */
export async function planOf(query: string, asOf: string | null, signal?: AbortSignal): Promise<Plan | null> {
  return (await check(query, { plan: "true", ...(asOf === null ? {} : { as_of: asOf }) }, signal)).plan;
}
