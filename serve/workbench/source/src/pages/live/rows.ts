/** The rows of a live query: those that a first read found, and what the log has changed since. */
import type { Action, Change, LiveRecord } from "../../api/live";
import { XSD, isNumeric, type Row, type Term } from "../../api/terms";

export interface LiveRow {
  key: string; values: Record<string, unknown>; action: Action | "READ"; index: number;
  /** When it has left, in milliseconds; it is still shown for a while. */
  leftAt: number | null;
}
export const SHOWN_AFTER_MS = 4000;
export const ROWS_MAX = 2000;

/** A term as notifications write it. */
function valueOf(term: Term): unknown {
  if (term.type === "triple") return "triple";
  if (term.type !== "literal") return term.type === "bnode" ? `_:${term.value}` : term.value;
  if (term.datatype === `${XSD}boolean`) return term.value === "true" || term.value === "1";
  if (isNumeric(term) && Number.isFinite(Number(term.value))) return Number(term.value);
  return term.value;
}
export function valuesOf(row: Row): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, term] of Object.entries(row)) if (term) found[name === "id" ? "?id" : name] = valueOf(term);
  return found;
}
const textOf = (values: Record<string, unknown>) => JSON.stringify(Object.entries(values).sort(([one], [other]) => one < other ? -1 : 1));
function shown({ id: _id, ...values }: LiveRecord, keepsId: boolean): Record<string, unknown> { return keepsId ? { id: _id, ...values } : values; }

/** The rows at the beginning. Their ids are not known: see `reconcile`. */
export function begin(rows: Row[], index: number): LiveRow[] {
  return rows.slice(0, ROWS_MAX).map((row, at) => ({ key: `read-${at}`, values: valuesOf(row), action: "READ", index, leftAt: null }));
}

/** keepsId: the id is a resource, which is shown. Applying a change again has no effect. */
export function apply(rows: LiveRow[], change: Change, keepsId: boolean, now: number): { rows: LiveRow[]; isKnown: boolean } {
  const key = change.result.id;
  const at = rows.findIndex((row) => row.key === key && row.leftAt === null);
  if (change.action === "DELETE") {
    if (at < 0) {
      const isGone = rows.some((row) => row.key === key);
      if (!keepsId || isGone) return { rows, isKnown: isGone };
      return { rows: [{ key, values: { id: key }, action: "DELETE", index: change.index, leftAt: now }, ...rows], isKnown: true };
    }
    return { rows: rows.map((row, number) => number === at ? { ...row, action: "DELETE", index: change.index, leftAt: now } : row), isKnown: true };
  }
  const row: LiveRow = { key, values: shown(change.result, keepsId), action: change.action, index: change.index, leftAt: null };
  if (at >= 0) return { rows: rows.map((one, number) => number === at ? row : one), isKnown: true };
  return { rows: [row, ...rows].slice(0, ROWS_MAX), isKnown: true };
}

/** Rows of the first read whose values are not in a newer read have left. */
export function reconcile(rows: LiveRow[], read: Row[], index: number, now: number): LiveRow[] {
  const left = new Map<string, number>();
  for (const row of read) { const text = textOf(valuesOf(row)); left.set(text, (left.get(text) ?? 0) + 1); }
  const take = (row: LiveRow) => { const text = textOf(row.values), count = left.get(text) ?? 0; left.set(text, count - 1); return count > 0; };
  for (const row of rows) if (!row.key.startsWith("read-") && row.leftAt === null) take(row);
  return rows.map((row) => !row.key.startsWith("read-") || row.leftAt !== null || take(row) ? row : { ...row, action: "DELETE", index, leftAt: now });
}
