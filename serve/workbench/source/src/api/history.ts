/** The past: what changed, by whom and when (`/history`), and the difference of two states (`/diff`). See docs/history.md. */
import { graphJson } from "./service";

/** Which statements: those of a resource, of a graph, of the default graph (""), or all. */
export type About = Readonly<Partial<Record<"resource" | "graph" | "default", string>>>;
/** Statements are lines of N-Quads; graphs are IRIs, or `_:` with a label. */
export interface Changed { removed: string[]; added: string[]; dropped_graphs: string[]; created_graphs: string[] }
export interface Entry extends Changed { index: number; timestamp: string; author: string | null; interface: string | null; /** whether the next page has more of it */ more?: boolean }
export interface HistoryPage { entries: Entry[]; oldest_index: number; snapshot_index: number; cursor: string | null }
export interface Difference extends Changed { from_index: number; to_index: number }
export interface State { /** of the last change that it has */ index: number; timestamp: string; author: string | null }

export interface NamedState { name: string; index: number; named_at: string; named_by: string | null; kept: boolean; /** that the history takes from there on */ history_bytes: number }

const PAGE = 25; // entries

/** A page of the changes, the newest first. cursor: of the page before; null: the first page. */
export function readHistory(about: About, cursor: string | null, signal?: AbortSignal): Promise<HistoryPage> {
  const parameters = new URLSearchParams({ ...about, limit: String(PAGE), ...(cursor === null ? {} : { cursor }) });
  return graphJson(`/history?${parameters}`, { signal: signal ?? null });
}

/** The oldest and the newest state that there is, and when the newest was made. */
export async function readSpan(signal: AbortSignal): Promise<{ oldest: number; newest: number }> {
  const page: HistoryPage = await graphJson("/history?limit=1", { signal });
  return { oldest: page.oldest_index, newest: page.snapshot_index };
}

/** What is known of a state that an index or a time names; null where its last change is not found at once. */
export async function readState(asOf: string, signal: AbortSignal): Promise<State | null> {
  const page: HistoryPage = await graphJson(`/history?${new URLSearchParams({ to: asOf, limit: "1" })}`, { signal });
  const [last] = page.entries;
  return last ? { index: last.index, timestamp: last.timestamp, author: last.author } : null;
}

/** The states that have a name, by name. */
export async function readNamedStates(signal: AbortSignal): Promise<NamedState[]> {
  return (await graphJson<{ snapshots: NamedState[] }>("/snapshots", { signal })).snapshots;
}

export function differencePath(about: About, from: string, to: string | null): string {
  return `/diff?${new URLSearchParams({ ...about, from, ...(to === null ? {} : { to }) })}`;
}

/** What as_of, from and to take: a log index, a name, or a time of RFC 3339. A local time such as 2026-11-27 or 2026-11-27 08:00
 * becomes one; the service says what is wrong with anything else. */
export function momentOf(text: string): string {
  const own = text.trim();
  if (/^[\d,]+$/.test(own)) return own.replaceAll(",", "");
  const found = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?$/.exec(own);
  const time = found ? new Date(`${found[1]}T${found[2] ?? "00:00"}`) : null;
  return time && !Number.isNaN(time.getTime()) ? time.toISOString() : own;
}
