/** One query that is followed: its rows appear, change and leave, in the order of the log. */
import { useEffect, useRef, useState } from "preact/hooks";
import { LiveQuery, type Change, type LiveState } from "../../api/live";
import { select } from "../../api/sparql";
import { faultIn } from "../../api/check";
import { go, linkTo, place } from "../../app/router";
import { Button, Field, Menu, MenuItem } from "../../ui/controls";
import { FieldEditor } from "../../ui/lazy-editor";
import { complete } from "../query/complete";
import { Icon } from "../../ui/icons";
import { Empty, Fault, Notice } from "../../ui/states";
import { SHOWN_AFTER_MS, apply, begin, reconcile, type LiveRow } from "./rows";

const EXAMPLES = [
  ["Every triple", "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"],
  ["Count by class", "SELECT ?class (COUNT(?one) AS ?count)\nWHERE { ?one a ?class }\nGROUP BY ?class"],
  ["Records of a class", "SELECT * FROM Work WHERE year > 1900"],
] as const;
const LOG_MAX = 200;
const TEXT_MAX = 400;
const RECONCILE_MS = 150;
const WORDS = { CREATE: "appeared", UPDATE: "changed", DELETE: "left" } as const;

/** The text without LIVE, and whether it is a query of SPARQL, which has braces. */
function read(text: string): { plain: string; live: string; isSparql: boolean } {
  const plain = text.replace(/\bLIVE\s+(?=SELECT\b)/i, "");
  return { plain, live: plain.replace(/\bSELECT\b/i, "LIVE SELECT"), isSparql: plain.includes("{") };
}

/** What is wrong in a query of SPARQL. LIVE is left out in such a way that the places stay. */
const faultInLive = async (text: string) => text.includes("{") ? faultIn(text.replace(/\bLIVE(?=\s+SELECT\b)/i, "    ")) : null;

export function FollowedQuery() {
  const given = place.value.parameters.get("query");
  const [text, setText] = useState(given ?? EXAMPLES[0][1]);
  const [state, setState] = useState<LiveState | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [rows, setRows] = useState<LiveRow[]>([]);
  const [log, setLog] = useState<Change[]>([]);
  const [index, setIndex] = useState(0);
  const running = useRef<{ stop: () => void } | null>(null);
  const isOn = state !== null && state.kind !== "ended";

  useEffect(() => () => running.current?.stop(), []);
  useEffect(() => {
    if (!rows.some((row) => row.leftAt !== null)) return;
    const timer = setTimeout(() => setRows((all) => all.filter((row) => row.leftAt === null || Date.now() - row.leftAt < SHOWN_AFTER_MS)), 1000);
    return () => clearTimeout(timer);
  }, [rows]);

  const start = async () => {
    running.current?.stop();
    const abort = new AbortController();
    let query: LiveQuery | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    running.current = { stop: () => { abort.abort(); clearTimeout(timer); query?.stop(); } };
    const { plain, live, isSparql } = read(text);
    setError(null); setRows([]); setLog([]); setIndex(0); setState({ kind: "connecting" });
    go("live", { query: text }, true);
    try {
      const first = isSparql ? await select(plain, abort.signal) : null;
      if (first) { setRows(begin(first.rows, first.index ?? 0)); setIndex(first.index ?? 0); }
      // Rows of the first read have no ids: when one of them may have left, read again.
      const again = () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          select(plain, abort.signal).then((found) => setRows((all) => reconcile(all, found.rows, found.index ?? 0, Date.now())), (failure) => {
            if (!abort.signal.aborted) setError(failure);
          });
        }, RECONCILE_MS);
      };
      query = new LiveQuery(live, first?.index ?? null, (now) => {
        setState(now);
        if (now.kind === "following") setIndex((before) => Math.max(before, now.index));
      }, (change) => {
        setIndex((before) => Math.max(before, change.index));
        setLog((all) => all.some((one) => one.index === change.index && one.action === change.action && one.result.id === change.result.id)
          ? all : [change, ...all].slice(0, LOG_MAX));
        setRows((all) => {
          const { rows: next, isKnown } = apply(all, change, !isSparql, Date.now());
          if (!isKnown) again();
          return next;
        });
      });
    } catch (failure) {
      if (abort.signal.aborted) return;
      setState(null);
      setError(failure);
    }
  };
  const stop = () => { running.current?.stop(); running.current = null; setState(null); };
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const present = rows.filter((row) => row.leftAt === null).length;

  return (
    <>
      <section class="card">
        <div class="body stack">
          <Field label="Query" hint="A SELECT of SPARQL, or SELECT members FROM class WHERE condition. Ctrl-Enter follows it.">
            {() => (
              <FieldEditor label="Query" rows={4} value={text} onChange={setText} onRun={() => void start()} complete={complete} check={faultInLive}
                onEscape={() => { if (isOn) stop(); return isOn; }} />
            )}
          </Field>
          <div class="row">
            {isOn ? <Button icon="stop" onClick={stop}>Stop</Button> : <Button kind="primary" icon="play" disabled={!text.trim()} onClick={start}>Follow</Button>}
            <Menu title="Examples" text="Examples" side="left">
              {(close) => EXAMPLES.map(([title, query]) => <MenuItem key={title} onPick={() => { setText(query); close(); }}>{title}</MenuItem>)}
            </Menu>
            <span class="grow" />
            <State state={state} index={index} />
          </div>
        </div>
      </section>
      {error !== null && <Fault error={error} again={start} />}
      {state?.kind === "ended" && <Notice kind="bad"><Ended state={state} again={start} /></Notice>}
      {state?.kind === "waiting" && <Notice kind="warn">Disconnected: {state.reason}. Connecting again in {state.seconds} s; no change is missed.</Notice>}
      {state === null && rows.length === 0 && error === null ? (
        <section class="card"><Empty icon="live" title="No query is followed">Write a query, or take an example, and follow it. Its rows then change here when the data do.</Empty></section>
      ) : (
        <div class="live-parts">
          <section class="card">
            <header><h2>Rows</h2><span class="badge">{present.toLocaleString("en")}</span></header>
            {rows.length === 0 ? <Empty icon="table" title="No rows yet">{isOn ? "Rows appear here when the data change." : "Follow the query to see its rows."}</Empty> : (
              <div class="table-wrap live-rows" tabIndex={0} role="region" aria-label="Rows of the live query">
                <table class="table">
                  <thead><tr><th><span class="visually-hidden">What became of it</span></th>{names.map((name) => <th key={name}>{name}</th>)}<th class="num">Index</th></tr></thead>
                  <tbody>{rows.map((row) => <RowOf key={`${row.key}-${row.leftAt === null ? "" : row.index}`} row={row} names={names} />)}</tbody>
                </table>
              </div>
            )}
          </section>
          <section class="card">
            <header><h2>Changes</h2></header>
            {log.length === 0 ? <Empty icon="history" title="Nothing has changed">Changes are listed here, the newest first.</Empty> : (
              <ol class="live-log" aria-live="polite" tabIndex={0} aria-label="Changes, the newest first">
                {log.map((change) => (
                  <li key={`${change.index}-${change.action}-${change.result.id}`}>
                    <Badge action={change.action} /><span class="truncate grow">{summary(change)}</span><span class="mono small muted">{change.index}</span>
                  </li>
                ))}
              </ol>
            )}
          </section>
        </div>
      )}
    </>
  );
}

function summary({ action, result: { id, ...values } }: Change): string {
  const shown = Object.values(values).map((one) => Array.isArray(one) ? one.join(", ") : String(one)).join(" · ").slice(0, 200);
  return action === "DELETE" || !shown ? (/^[0-9a-f]{16,}$/.test(id) ? "a row" : id) : shown;
}

function Badge({ action }: { action: Change["action"] }) {
  const look = { CREATE: "good", UPDATE: "accent", DELETE: "bad" }[action];
  return <span class={`badge ${look}`}>{WORDS[action]}</span>;
}

function RowOf({ row, names }: { row: LiveRow; names: string[] }) {
  return (
    <tr class={`live-row ${row.action.toLowerCase()}`} data-action={row.action}>
      <td>{row.action !== "READ" && <Badge action={row.action} />}</td>
      {names.map((name) => <td key={name}><Value value={row.values[name]} /></td>)}
      <td class="num mono small muted">{row.index}</td>
    </tr>
  );
}

function Value({ value }: { value: unknown }) {
  if (Array.isArray(value)) return <>{value.map((one, at) => <div key={at}><Value value={one} /></div>)}</>;
  const text = value === undefined ? "" : String(value);
  const short = (all: string) => all.length > TEXT_MAX ? `${all.slice(0, TEXT_MAX)} …` : all;
  // Notifications do not tell IRIs from strings.
  const isIri = typeof value === "string" && /^(https?|urn):\S+$/.test(text) && text.length < 2000;
  return isIri ? <a href={linkTo.resource(text)} title={text}>{short(/^urn:/.test(text) ? text : text.split(/[/#]/).findLast(Boolean) ?? text)}</a> : <>{short(text)}</>;
}

function State({ state, index }: { state: LiveState | null; index: number }) {
  if (state === null) return null;
  if (state.kind === "following") return <span class="badge good" role="status"><span class="live-dot" />Following, at index {index.toLocaleString("en")}</span>;
  if (state.kind === "ended") return <span class="badge bad" role="status">Ended</span>;
  return <span class="badge warn" role="status"><span class="spinner" />{state.kind === "connecting" ? "Connecting" : "Disconnected"}</span>;
}

function Ended({ state, again }: { state: Extract<LiveState, { kind: "ended" }>; again: () => void }) {
  const advice = { resnapshot: "The log does not have the changes in between any more. Follow the query anew: it reads all rows again.", limit: "Narrow the query, or raise the limit that is named here.", syntax: "Correct the query, and follow it again." }[state.code];
  return (
    <div class="stack tight"><span class="what">{state.reason}</span>{advice && <span class="small">{advice}</span>}
      <span><Button size="small" onClick={again}><Icon name="refresh" size={14} />Follow it anew</Button></span></div>
  );
}
