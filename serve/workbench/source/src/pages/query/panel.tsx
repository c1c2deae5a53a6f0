/** The answer of a query: a table, a chart, a map, a graph, raw text, or how the service evaluates it. */
import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { planOf, type Plan } from "../../api/check";
import { graph, graphJson } from "../../api/service";
import { queryBody } from "../../api/sparql";
import { isGeometry, isNumeric, written, type Term } from "../../api/terms";
import { declaredPrefixes, labels, loadLabels, loadVocabulary } from "../../api/vocabulary";
import { Button, Menu, MenuItem, Tabs, type TabItem } from "../../ui/controls";
import { toast } from "../../ui/dialog";
import { declared } from "../../ui/sparql-language";
import { download } from "../../ui/download";
import { Empty, Fault, Loading, Notice } from "../../ui/states";
import { TermView } from "../../ui/term";
import { VirtualTable, type Column } from "../../ui/virtual";
import { go } from "../../app/router";
import { ROWS_MAX, triplesOf, type Answer, type Triple } from "./results";
import { change, run, tab, type Run } from "./store";

export function Results() {
  const current = run.value;
  const view = tab.value.view;
  const answer = current?.answer ?? null;
  const items = useMemo(() => viewsOf(answer), [answer]);
  const shown = items.some((one) => one.id === view) ? view : "table";
  return (
    <section class="results" aria-label="Answer">
      <header class="rhead">
        <Tabs label="View" look="segments" items={items} value={shown} onPick={(id) => change(tab.value.id, { view: id })} />
        <Status run={current} />
        {current?.state === "done" && answer?.where && <Engine key={current.queryId} query={current.text} asOf={current.asOf} where={answer.where} />}
        {answer && answer.form !== "UPDATE" && answer.form !== "ASK" && <Downloads run={current!} />}
      </header>
      <Body run={current} view={shown} />
    </section>
  );
}

function viewsOf(answer: Answer | null): TabItem[] {
  const some = answer !== null && answer.rows.length > 0;
  const items: TabItem[] = [{ id: "table", text: "Table", icon: "table" }];
  if (some && answer.form === "SELECT") items.push({ id: "chart", text: "Chart", icon: "chart" });
  if (some && answer.vars.some((name) => answer.rows.slice(0, 200).some((row) => isGeometry(row[name])))) items.push({ id: "map", text: "Map", icon: "map" });
  if (some && triplesOf({ ...answer, rows: answer.rows.slice(0, 50) })) items.push({ id: "graph", text: "Graph", icon: "graph" });
  if (answer?.form !== "UPDATE") items.push({ id: "raw", text: "Raw", icon: "raw" }, { id: "explain", text: "Explain", icon: "info" });
  return items;
}

function Status({ run: current }: { run: Run | null }) {
  const [, tick] = useState(0);
  const running = current?.state === "running";
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => tick((count) => count + 1), 100);
    return () => clearInterval(timer);
  }, [running]);
  if (!current) return <span class="grow" />;
  const { answer } = current;
  const rows = answer === null || answer.form === "UPDATE" || answer.form === "ASK" ? null
    : `${answer.rows.length.toLocaleString("en")}${answer.cut ? "+" : ""} ${answer.form === "SELECT" ? (answer.rows.length === 1 ? "row" : "rows") : answer.rows.length === 1 ? "triple" : "triples"}`;
  return (
    <div class="rstatus grow" role="status">
      {running && <span class="spinner" role="status" aria-label="Running" />}
      {rows && <b>{rows}</b>}
      <span class="muted num">{running ? seconds((performance.now() - current.began) / 1000) : answer ? seconds(answer.seconds) : ""}</span>
      {current.asOf !== null && <span class="badge accent" title="The answer is of a state of the past">as of {answer?.index !== null && answer?.index !== undefined ? `index ${answer.index.toLocaleString("en")}` : current.asOf}</span>}
      {current.asOf === null && answer?.index !== null && answer?.index !== undefined && <span class="muted index" title="The log index of the state that was read">index {answer.index.toLocaleString("en")}</span>}
      {answer?.cut && <span class="badge warn" title={`The page shows up to ${ROWS_MAX.toLocaleString("en")} rows; a download has all`}>cut</span>}
    </div>
  );
}

/** Which part of the service has answered; in its menu, why. */
function Engine({ query, asOf, where }: { query: string; asOf: string | null; where: string }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    planOf(query, asOf, stop.signal).then(setPlan, () => undefined); // nothing is missed without it
    return () => stop.abort();
  }, [query, asOf]);
  const name = /^reader/.test(where) ? "reader" : /column/.test(where) ? "column view" : where;
  const reasons = plan?.reasons.length ? plan.reasons : plan ? ["every step of the evaluation yields a row at once"] : [];
  return (
    <span class="engine">
      <Menu title="Which part of the service has answered, and why" text={name} icon="service" size="small" kind="quiet">
        {() => (
          <div class="why">
            <div><b>Answered {where === "at once" ? "at once, on the port itself" : where === "cache" ? "from the cache, as the data have not changed" : `by ${where}`}</b></div>
            {reasons.length > 0 && <ul>{reasons.map((one) => <li key={one}>{one}</li>)}</ul>}
            {plan && !plan.repeatable && <div class="muted">Each run may give another answer, so it is not kept.</div>}
            {plan?.warnings.map((one) => <div key={one} class="badge warn">close to a limit: {one}</div>)}
          </div>
        )}
      </Menu>
      {plan?.warnings.map((one) => <span key={one} class="badge warn" title={one}>close to a limit</span>)}
    </span>
  );
}

const seconds = (value: number) => value < 1 ? `${Math.max(1, Math.round(value * 1000))} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`;

function Body({ run: current, view }: { run: Run | null; view: string }) {
  const answer = current?.answer ?? null;
  if (!current) return <Empty icon="query" title="No answer yet">Write a query and press <kbd>Ctrl</kbd> <kbd>Enter</kbd>. Completion knows the classes and predicates of your data: press <kbd>Ctrl</kbd> <kbd>Space</kbd>.</Empty>;
  if (view === "explain") return <Explained text={current.text} asOf={current.asOf} />;
  if (current.state === "failed") return <div class="rpad"><Fault error={current.error} /></div>;
  if (current.state === "cancelled" && !answer?.rows.length) return <Empty icon="stop" title="Cancelled">The service has stopped working on this query.</Empty>;
  if (!answer) return <Loading what="Waiting for the first row" />;
  if (answer.form === "ASK") return <div class="state"><span class={`verdict ${answer.boolean ? "yes" : "no"}`}>{answer.boolean ? "Yes" : "No"}</span><p>{answer.boolean ? "The pattern matches." : "The pattern matches nothing."}</p></div>;
  if (answer.form === "UPDATE") return (
    <div class="state">
      <span class="verdict yes">{(answer.affected ?? 0).toLocaleString("en")}</span>
      <h2>{answer.affected === 1 ? "triple" : "triples"} added or removed</h2>
      <p>{answer.affected ? `Everybody who reads at log index ${answer.index} or later sees the change.` : "The data were already so: nothing has changed."}</p>
    </div>
  );
  if (view === "raw") return <Raw text={current.text} asOf={current.asOf} form={answer.form} />;
  if (answer.rows.length === 0) return answer.done ? <Empty icon="table" title="No rows">The query is correct, and nothing in the data fits it.</Empty> : <Loading />;
  if (view === "chart") return <Lazy load={() => import("./chart")} answer={answer} />;
  if (view === "map") return <Lazy load={() => import("./map")} answer={answer} />;
  if (view === "graph") return <GraphOf answer={answer} />;
  return <Table answer={answer} />;
}

function text(term: Term | undefined): string { return term === undefined ? "" : term.type === "triple" ? written(term) : labels.value.get(term.value) ?? term.value; }

function Table({ answer }: { answer: Answer }) {
  const columns = useMemo<Column[]>(() => answer.vars.map((name) => {
    const sample = answer.rows.slice(0, 100).map((row) => row[name]).filter((term) => term !== undefined);
    return {
      id: name, name, numeric: sample.length > 0 && sample.every(isNumeric),
      text: (row) => text(answer.rows[row]?.[name]),
      number: (row) => { const term = answer.rows[row]?.[name]; return isNumeric(term) ? Number((term as { value: string }).value) : null; },
      cell: (row) => <TermView term={answer.rows[row]?.[name]} />,
    };
  }), [answer.vars.join(" "), answer.rows]);
  useEffect(() => { declaredPrefixes.value = declared(run.peek()?.text ?? ""); }, [answer]);
  useEffect(() => { // labels of what is likely to be looked at first
    const iris = answer.rows.slice(0, 400).flatMap((row) => answer.vars.flatMap((name) => { const term = row[name]; return term?.type === "uri" ? [term.value] : []; }));
    void loadVocabulary().then(() => loadLabels(iris));
  }, [answer.rows]);
  return (
    <>
      {answer.cut && <div class="rnote"><Notice kind="warn">The answer has more rows. These are the first {answer.rows.length.toLocaleString("en")}; a download has all of them.</Notice></div>}
      <VirtualTable label="Rows of the answer" columns={columns} count={answer.rows.length} filters={answer.rows.length > 1} />
    </>
  );
}

/** A view that is loaded when it is first shown. */
function Lazy({ load, answer }: { load: () => Promise<{ default: ComponentType<{ answer: Answer }> }>; answer: Answer }) {
  const [View, setView] = useState<ComponentType<{ answer: Answer }> | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { load().then((module) => setView(() => module.default), setError); }, []);
  if (error) return <div class="rpad"><Fault error={error} /></div>;
  return View ? <View answer={answer} /> : <Loading />;
}

interface GraphProps { triples: Triple[]; onOpen?: (iri: string) => void }

function GraphOf({ answer }: { answer: Answer }) {
  const triples = useMemo(() => triplesOf(answer) ?? [], [answer]);
  const [View, setView] = useState<ComponentType<GraphProps> | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { import("../../ui/graph").then((module) => setView(() => module.default as ComponentType<GraphProps>), setError); }, []);
  if (error) return <div class="rpad"><Fault error={error} /></div>;
  return View ? <View triples={triples} onOpen={(iri) => go("explore", { iri })} /> : <Loading />;
}

const OF_ROWS = [["JSON", "json"], ["XML", "xml"], ["CSV", "csv"], ["TSV", "tsv"], ["NDJSON", "ndjson"]] as const;
const OF_GRAPHS = [["Turtle", "turtle"], ["N-Triples", "ntriples"], ["N-Triples, canonical", "ntriples-c14n"], ["RDF/XML", "rdfxml"], ["JSON-LD", "jsonld"], ["TriG", "trig"], ["N-Quads", "nquads"]] as const;
const ENDINGS: Record<string, string> = { turtle: "ttl", ntriples: "nt", "ntriples-c14n": "nt", rdfxml: "rdf", jsonld: "jsonld", trig: "trig", nquads: "nq" };

function Downloads({ run: current }: { run: Run }) {
  const formats = current.answer!.form === "SELECT" ? OF_ROWS : OF_GRAPHS;
  const save = async (format: string) => {
    try {
      const answer = await graph("/sparql", { method: "POST", body: queryBody(current.text, current.asOf, { format }) });
      download(await answer.blob(), `${tab.value.name.replace(/[^\w-]+/g, "-").toLowerCase() || "query"}.${ENDINGS[format] ?? format}`);
    } catch (error) { toast(String((error as Error).message), "bad"); }
  };
  return (
    <Menu title="Download" icon="download" kind="quiet" size="small">
      {(close) => <><div class="title">Download the whole answer as</div>{formats.map(([name, format]) => <MenuItem key={format} onPick={() => { close(); void save(format); }}>{name}</MenuItem>)}</>}
    </Menu>
  );
}

const RAW_MAX = 400_000;
function Raw({ text: query, asOf, form }: { text: string; asOf: string | null; form: string }) {
  const [format, setFormat] = useState<string>(form === "SELECT" || form === "ASK" ? "json" : "turtle");
  const [found, setFound] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    setFound(null);
    setError(null);
    (async () => {
      const answer = await graph("/sparql", { method: "POST", body: queryBody(query, asOf, { format }), signal: stop.signal });
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      let all = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (value) all += value;
        if (done) break;
        if (all.length > RAW_MAX) { await reader.cancel(); all = `${all.slice(0, RAW_MAX)}\n…`; break; }
      }
      setFound(all);
    })().catch((failure) => { if (!stop.signal.aborted) setError(failure); });
    return () => stop.abort();
  }, [query, asOf, format]);
  const items = (form === "SELECT" || form === "ASK" ? OF_ROWS.filter(([, id]) => form === "SELECT" || id === "json" || id === "xml") : OF_GRAPHS).map(([name, id]) => ({ id, text: name }));
  return (
    <div class="raw">
      <div class="rawbar"><Tabs label="Format" look="segments" items={items} value={format} onPick={setFormat} /><span class="grow" />
        <Button size="small" icon="copy" disabled={found === null} onClick={() => void navigator.clipboard.writeText(found ?? "").then(() => toast("Copied."))}>Copy</Button></div>
      {error ? <div class="rpad"><Fault error={error} /></div> : found === null ? <Loading /> : <pre class="rawtext" tabIndex={0}>{found}</pre>}
    </div>
  );
}

interface Explanation {
  query: { engine_text: string };
  classification: { evaluated: string; reasons: string[]; repeatable: boolean; cacheable: boolean };
  columns: { path: string; reason: string | null; plan: string | null } | null;
  complexity: Record<string, { value: number; limit: number; setting: string }>;
  scans: { pattern: string; quads: number | null; complete: boolean }[];
  lookups: unknown[];
  evaluation: { outcome: string; error: string | null; rows: number | null; seconds: number; where: string; snapshot_index: number };
}

function Explained({ text: query, asOf }: { text: string; asOf: string | null }) {
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    setFound(null);
    setError(null);
    graphJson<Explanation>("/sparql", { method: "POST", body: queryBody(query, asOf, { explain: "true" }), signal: stop.signal })
      .then(setFound, (failure) => { if (!stop.signal.aborted) setError(failure); });
    return () => stop.abort();
  }, [query, asOf]);
  if (error) return <div class="rpad"><Fault error={error} /></div>;
  if (!found) return <Loading what="The service evaluates the query and counts" />;
  const { evaluation, classification } = found;
  const most = Math.max(1, ...found.scans.map((one) => one.quads ?? 0));
  return (
    <div class="explain" tabIndex={0}>
      <div class="figures">
        <div><span class="muted">Evaluated</span><b>{classification.evaluated}</b></div>
        <div><span class="muted">Rows</span><b>{evaluation.rows?.toLocaleString("en") ?? "–"}</b></div>
        <div><span class="muted">Time</span><b>{seconds(evaluation.seconds)}</b></div>
        <div><span class="muted">Where</span><b>{evaluation.where}</b></div>
        <div><span class="muted">Kept in the cache</span><b>{classification.cacheable ? "yes" : "no"}</b></div>
      </div>
      {evaluation.error && <Notice kind="bad">{evaluation.error}</Notice>}
      <section><h2>Why</h2><ul class="reasons">{(classification.reasons.length ? classification.reasons : ["every step of the evaluation yields a row at once"]).map((one) => <li key={one}>{one}</li>)}
        {found.columns?.reason && <li>the column view does not answer: {found.columns.reason}</li>}</ul></section>
      {found.scans.length > 0 && <section><h2>What is read</h2>
        <table class="table scans"><thead><tr><th>Pattern</th><th class="num">Quads</th><th><span class="visually-hidden">Share</span></th></tr></thead><tbody>
          {found.scans.map((one, at) => <tr key={at}><td class="mono">{one.pattern}</td><td class="num">{one.quads === null ? "not counted" : `${one.quads.toLocaleString("en")}${one.complete ? "" : "+"}`}</td>
            <td class="bar"><div class="meter"><div style={{ width: `${100 * (one.quads ?? 0) / most}%` }} /></div></td></tr>)}
        </tbody></table></section>}
      <section><h2>What the engine gets</h2><pre class="rawtext small">{found.query.engine_text}</pre></section>
      {found.columns?.plan && <section><h2>Plan of the column view</h2><pre class="rawtext small plan">{found.columns.plan}</pre></section>}
      <section><h2>Limits</h2><div class="limits">{Object.entries(found.complexity).map(([name, one]) => <span key={name} class={`badge ${one.value > one.limit * 0.8 ? "warn" : ""}`} title={one.setting}>{name.replaceAll("_", " ")} {one.value} of {one.limit}</span>)}</div></section>
    </div>
  );
}
