/** The graphs with their sizes: download, clear, delete. */
import { useEffect, useState } from "preact/hooks";
import { write } from "../../api/service";
import { mayWrite } from "../../api/session";
import { select, update, valueOf } from "../../api/sparql";
import { written } from "../../api/terms";
import { linkTo } from "../../app/router";
import { Button, Input, Menu, MenuItem } from "../../ui/controls";
import { confirm, toast } from "../../ui/dialog";
import { downloadFrom } from "../../ui/download";
import { Empty, Fault, Loading } from "../../ui/states";
import { countOf } from "../service/figures";
import { FORMATS } from "./formats";

interface Graph { iri: string | null; isBlank: boolean; triples: number }
const SHOWN_MAX = 500;
const ENDING: Record<string, string> = { "text/turtle": "ttl", "application/n-triples": "nt", "application/n-quads": "nq", "application/trig": "trig", "application/rdf+xml": "rdf", "application/ld+json": "jsonld" };
const WHOLE = FORMATS.filter(([type]) => ["application/n-quads", "application/trig", "application/ld+json"].includes(type));
const said = (failure: unknown) => toast(failure instanceof Error ? failure.message : String(failure), "bad");

async function readGraphs(): Promise<Graph[]> {
  const [whole, named, sizes] = await Promise.all([
    select("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"), select("SELECT ?g WHERE { GRAPH ?g {} }"),
    select("SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g"),
  ]);
  const count = new Map(sizes.rows.map((row) => [valueOf(row.g), Number(valueOf(row.n))]));
  const found = named.rows.map((row): Graph => ({ iri: valueOf(row.g), isBlank: row.g?.type === "bnode", triples: count.get(valueOf(row.g)) ?? 0 }));
  return [{ iri: null, isBlank: false, triples: Number(valueOf(whole.rows[0]?.n)) }, ...found.sort((one, other) => other.triples - one.triples || (one.iri! < other.iri! ? -1 : 1))];
}

export function Graphs({ isShown }: { isShown: boolean }) {
  const [graphs, setGraphs] = useState<Graph[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [sought, setSought] = useState("");
  const load = () => readGraphs().then((found) => { setGraphs(found); setError(null); }, setError);
  useEffect(() => { if (isShown) void load(); }, [isShown]);
  const save = (one: Graph | "all", type: string) => {
    const path = one === "all" ? "?dataset=all" : one.iri === null ? "?default" : `?graph=${encodeURIComponent(one.iri)}`;
    const name = (one === "all" ? "everything" : one.iri?.split(/[/#:]/).findLast(Boolean) ?? "default").replace(/[^\w.-]/g, "_").slice(0, 80);
    downloadFrom(`/data${path}`, type, `${name}.${ENDING[type]}`).catch(said);
  };
  const clear = async (one: Graph) => {
    if (!await confirm("Clear this graph?", <>All {countOf(one.triples)} triples of {one.iri === null ? "the default graph" : <b>{one.iri.slice(0, 300)}</b>} are removed. The graph stays, empty.</>, "Clear")) return;
    await update(one.iri === null ? "CLEAR DEFAULT" : `CLEAR GRAPH ${written({ type: "uri", value: one.iri })}`).then(() => toast("The graph is empty."), said);
    void load();
  };
  const remove = async (one: Graph) => {
    if (!await confirm("Delete this graph?", <><b>{one.iri?.slice(0, 300)}</b> is deleted, with its {countOf(one.triples)} triples.</>, "Delete")) return;
    await write(`/data?graph=${encodeURIComponent(one.iri ?? "")}`, "DELETE").then(() => toast("The graph is deleted."), said);
    void load();
  };
  if (error !== null) return <Fault error={error} again={load} />;
  if (graphs === null) return <Loading what="Counting the graphs" />;
  const found = graphs.filter((one) => (one.iri ?? "default graph").toLowerCase().includes(sought.toLowerCase()));
  return (
    <section class="card">
      <header class="wrap">
        <h2>Graphs</h2>
        {graphs.length > 8 && <Input small type="search" aria-label="Find a graph" placeholder="Find a graph" value={sought} onInput={(event) => setSought(event.currentTarget.value)} />}
        <Button size="small" kind="quiet" icon="refresh" title="Count again" onClick={load} />
        <Menu title="Download everything" text="Download everything" icon="download" size="small">{(close) => WHOLE.map(([type, name]) => <MenuItem key={type} onPick={() => { save("all", type); close(); }}>{name}</MenuItem>)}</Menu>
      </header>
      {found.length === 0 ? <Empty icon="search" title="No such graph">Write a part of its IRI.</Empty> : (
        <ul class="graphs">{found.slice(0, SHOWN_MAX).map((one) => (
          <li key={one.iri ?? ""} class="graph-row">
            <span class="name">{one.iri === null ? <b>Default graph</b> : one.isBlank ? `_:${one.iri}` : <a href={linkTo.resource(one.iri)}>{one.iri.slice(0, 500)}</a>}</span>
            <span class="num">{countOf(one.triples)} <span class="muted small">triples</span></span>
            {!one.isBlank && <span class="row tight nowrap">
              <Menu title="Download" icon="download" size="small" kind="quiet">{(close) => FORMATS.map(([type, name]) => <MenuItem key={type} onPick={() => { save(one, type); close(); }}>{name}</MenuItem>)}</Menu>
              {mayWrite.value && <Button size="small" kind="quiet" disabled={one.triples === 0} onClick={() => clear(one)}>Clear</Button>}
              {mayWrite.value && one.iri !== null && <Button size="small" kind="quiet" icon="trash" title={`Delete ${one.iri.slice(0, 200)}`} onClick={() => remove(one)} />}
            </span>}
          </li>
        ))}</ul>
      )}
      {found.length > SHOWN_MAX && <div class="body muted small">{countOf(found.length - SHOWN_MAX)} more: find them by a part of their IRI.</div>}
    </section>
  );
}
