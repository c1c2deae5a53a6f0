/** The state of the query page: tabs, which survive a reload; the history; the answer of each tab. */
import { computed, effect, signal } from "@preact/signals";
import { ServiceError } from "../../api/errors";
import { graph } from "../../api/service";
import { update } from "../../api/sparql";
import { formOf } from "../../ui/sparql-language";
import { evaluate, type Answer } from "./results";

export interface Tab { id: string; name: string; text: string; view: string; saved: string | null; /** The state that is queried: a log index or a time; none: the present. */ asOf?: string | null }
export interface Past { text: string; at: number; seconds: number | null; rows: number | null; failed: boolean }
export interface Run { state: "running" | "done" | "failed" | "cancelled"; began: number; answer: Answer | null; error: unknown; text: string; asOf: string | null; queryId: string; stop: AbortController }

const TABS = "graphdb.query.tabs";
const HISTORY = "graphdb.query.history";
export const FIRST = "SELECT ?class (COUNT(*) AS ?instances)\nWHERE {\n  ?resource a ?class .\n}\nGROUP BY ?class\nORDER BY DESC(?instances)\n";

function read<T>(key: string, otherwise: T): T {
  try { return JSON.parse(localStorage.getItem(key) ?? "") as T; } catch { return otherwise; }
}
const made = (text: string, name = "Query", view = "table"): Tab => ({ id: crypto.randomUUID(), name, text, view, saved: null });

const kept = read<{ tabs: Tab[]; open: string }>(TABS, { tabs: [], open: "" });
export const tabs = signal<Tab[]>(kept.tabs.length ? kept.tabs : [made(FIRST, "Classes")]);
export const open = signal<string>(tabs.value.some((one) => one.id === kept.open) ? kept.open : tabs.value[0]!.id);
export const tab = computed(() => tabs.value.find((one) => one.id === open.value) ?? tabs.value[0]!);
export const past = signal<Past[]>(read<Past[]>(HISTORY, []));
export const runs = signal<ReadonlyMap<string, Run>>(new Map());
export const run = computed(() => runs.value.get(tab.value.id) ?? null);

let writing = 0;
effect(() => {
  const text = JSON.stringify({ tabs: tabs.value, open: open.value });
  clearTimeout(writing);
  writing = setTimeout(() => { try { localStorage.setItem(TABS, text); } catch { /* full: the tabs are not kept */ } }, 200);
});
addEventListener("pagehide", () => { try { localStorage.setItem(TABS, JSON.stringify({ tabs: tabs.value, open: open.value })); } catch { /* as above */ } });

export function change(id: string, changed: Partial<Tab>): void {
  tabs.value = tabs.value.map((one) => one.id === id ? { ...one, ...changed } : one);
}
export function openTab(text: string, name?: string, view?: string, saved: string | null = null): void {
  const same = saved === null ? undefined : tabs.value.find((one) => one.saved === saved);
  if (same) { open.value = same.id; return; }
  const taken = new Set(tabs.value.map((one) => one.name));
  let own = name ?? "Query";
  for (let number = 2; name === undefined && taken.has(own); number++) own = `Query ${number}`;
  const added = { ...made(text, own, view ?? "table"), saved };
  tabs.value = [...tabs.value, added];
  open.value = added.id;
}
export function closeTab(id: string): void {
  cancel(id);
  const at = tabs.value.findIndex((one) => one.id === id);
  const rest = tabs.value.filter((one) => one.id !== id);
  tabs.value = rest.length ? rest : [made("")];
  if (!tabs.value.some((one) => one.id === open.value)) open.value = tabs.value[Math.min(at, tabs.value.length - 1)]!.id;
  const left = new Map(runs.value);
  left.delete(id);
  runs.value = left;
}

function put(id: string, changed: Partial<Run>): void {
  const known = runs.value.get(id);
  if (known) runs.value = new Map(runs.value).set(id, { ...known, ...changed });
}
function remember(entry: Past): void {
  past.value = [entry, ...past.value.filter((one) => one.text !== entry.text)].slice(0, 200);
  try { localStorage.setItem(HISTORY, JSON.stringify(past.value)); } catch { /* full: it is not kept */ }
}

/** Runs the text of a tab: a query in the state that the tab says. An update is applied; asking before is up to the caller. */
export async function start(id: string, text: string): Promise<void> {
  cancel(id);
  const stop = new AbortController();
  const asOf = formOf(text) === "UPDATE" ? null : tabs.peek().find((one) => one.id === id)?.asOf ?? null;
  const own: Run = { state: "running", began: performance.now(), answer: null, error: null, text, asOf, queryId: crypto.randomUUID(), stop };
  runs.value = new Map(runs.value).set(id, own);
  const isMine = () => runs.value.get(id)?.queryId === own.queryId;
  try {
    const answer = formOf(text) === "UPDATE" ? await applied(text, stop.signal) : await evaluate(text, asOf, own.queryId, stop.signal, (part) => { if (isMine()) put(id, { answer: part }); });
    if (isMine()) put(id, { state: "done", answer });
    remember({ text, at: Date.now(), seconds: answer.seconds, rows: answer.form === "UPDATE" ? answer.affected : answer.rows.length, failed: false });
  } catch (error) {
    if (!isMine()) return;
    const cancelled = stop.signal.aborted || (error instanceof ServiceError && /cancelled/.test(error.message));
    put(id, cancelled ? { state: "cancelled" } : { state: "failed", error });
    if (!cancelled) remember({ text, at: Date.now(), seconds: null, rows: null, failed: true });
  }
}

async function applied(text: string, signal: AbortSignal): Promise<Answer> {
  const began = performance.now();
  const { snapshot_index: index, affected_triples: affected } = await update(text, signal);
  return { form: "UPDATE", vars: [], rows: [], cut: false, done: true, boolean: null, seconds: (performance.now() - began) / 1000, index, where: null, affected, bytes: 0 };
}

/** Stops a running query: the service stops working on it, and the page stops reading. */
export function cancel(id: string): boolean {
  const own = runs.value.get(id);
  if (own?.state !== "running") return false;
  void graph(`/queries/${own.queryId}`, { method: "DELETE" }).catch(() => undefined); // it may have ended by itself
  put(id, { state: "cancelled" });
  setTimeout(() => own.stop.abort(), 50);
  return true;
}
