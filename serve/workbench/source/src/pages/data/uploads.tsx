/** Files that are dropped or chosen: sent one after the other, each with its progress, and what is wrong in it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ServiceError } from "../../api/errors";
import { Cancelled, upload, type Sending } from "../../api/upload";
import { Button, Check, Field, Input, Select } from "../../ui/controls";
import { confirm, toast } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Fault, Notice } from "../../ui/states";
import { bytesOf, countOf, secondsOf } from "../service/figures";
import { FORMATS, carriesGraphs, excerptOf, kindOf, type Excerpt, type Kind } from "./formats";

type State =
  | { kind: "waiting" } | { kind: "sending"; sent: number; rate: number } | { kind: "storing" } | { kind: "cancelled" }
  | { kind: "done"; triples: number; index: number; seconds: number } | { kind: "failed"; error: unknown; excerpt: Excerpt | null };
interface Item { id: number; file: File; known: Kind; type: string; state: State }

const RATE_WEIGHT = 0.2;
let counted = 0;

export function Uploads() {
  const [items, setItems] = useState<Item[]>([]);
  const [where, setWhere] = useState<"default" | "named" | "file">("default");
  const [iri, setIri] = useState("");
  const [isReplacing, setReplacing] = useState(false);
  const [isOver, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const running = useRef<Sending | null>(null);
  const [isRunning, setRunning] = useState(false);
  const stopped = useRef(false);
  const set = (id: number, changed: Partial<Item>) => setItems((all) => all.map((one) => one.id === id ? { ...one, ...changed } : one));
  useEffect(() => () => { stopped.current = true; running.current?.cancel(); }, []);

  const add = (files: FileList | null) => {
    const added = [...files ?? []].map((file): Item => {
      const known = kindOf(file.name);
      return { id: ++counted, file, known, type: known.type ?? "text/turtle", state: known.fault ? { kind: "failed", error: new Error(known.fault), excerpt: null } : { kind: "waiting" } };
    });
    setItems((all) => [...all, ...added]);
    if (added.some((one) => carriesGraphs(one.known.type)) && where === "default" && added.every((one) => carriesGraphs(one.known.type))) setWhere("file");
  };

  const send = async (item: Item) => {
    const began = performance.now();
    let last = began, before = 0, rate = 0;
    const target = where === "named" ? `?graph=${encodeURIComponent(iri)}` : where === "file" && carriesGraphs(item.type) ? "" : "?default";
    set(item.id, { state: { kind: "sending", sent: 0, rate: 0 } });
    const headers: Record<string, string> = { "Content-Type": item.type, ...(item.known.coding ? { "Content-Encoding": item.known.coding } : {}) };
    const sending = running.current = upload(`/data${target}`, isReplacing ? "PUT" : "POST", item.file, headers, (sent) => {
      const now = performance.now();
      if (now > last) { const fresh = (sent - before) / (now - last) * 1000; rate = rate === 0 ? fresh : rate + RATE_WEIGHT * (fresh - rate); }
      last = now; before = sent;
      set(item.id, { state: sent >= item.file.size ? { kind: "storing" } : { kind: "sending", sent, rate } });
    });
    try {
      const done = await sending.done;
      set(item.id, { state: { kind: "done", triples: done.affected_triples, index: done.snapshot_index, seconds: (performance.now() - began) / 1000 } });
    } catch (error) {
      if (error instanceof Cancelled) { set(item.id, { state: { kind: "cancelled" } }); return; }
      const at = error instanceof ServiceError ? error.place : null;
      const excerpt = at ? await excerptOf(item.file, item.known.coding, at.line, at.column) : null;
      set(item.id, { state: { kind: "failed", error, excerpt } });
    }
  };
  const waiting = items.filter((one) => one.state.kind === "waiting");
  const start = async () => {
    if (where === "named" && !/^[a-z][a-z0-9+.-]*:\S+$/i.test(iri)) { toast("Write the IRI of the graph first, such as https://example.org/graph.", "bad"); return; }
    if (isReplacing && !await confirm("Replace what is there?", <>What the {where === "named" ? "graph" : where === "file" ? "graphs that the files name" : "default graph"} hold now is removed, and the first file takes its place. A second file replaces the first.</>, "Replace")) return;
    setRunning(true);
    for (const item of waiting) if (!stopped.current) await send(item);
    running.current = null;
    setRunning(false);
  };

  return (
    <>
      <section class="card"><div class="body stack">
        <div class={`drop${isOver ? " over" : ""}`} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
          onDrop={(event) => { event.preventDefault(); setOver(false); add(event.dataTransfer?.files ?? null); }}>
          <span class="symbol"><Icon name="upload" size={22} /></span>
          <div><b>Drop files here</b><div class="muted small">Turtle, N-Triples, N-Quads, TriG, RDF/XML, JSON-LD; plain, .gz or .zst</div></div>
          <Button onClick={() => picker.current?.click()}>Choose files</Button>
          <input ref={picker} type="file" multiple class="visually-hidden" tabIndex={-1} aria-label="Files to load" onChange={(event) => { add(event.currentTarget.files); event.currentTarget.value = ""; }} />
        </div>
        <div class="columns">
          <Field label="Into" hint={where === "file" ? "TriG and N-Quads name their graphs; other files go to the default graph." : undefined}>
            {(id) => <Select id={id} value={where} options={[["default", "the default graph"], ["named", "a named graph"], ["file", "the graphs that the files name"]]} onPick={(value) => setWhere(value as typeof where)} />}
          </Field>
          {where === "named" && <Field label="IRI of the graph">{(id) => <Input id={id} placeholder="https://example.org/graph" value={iri} onInput={(event) => setIri(event.currentTarget.value)} />}</Field>}
        </div>
        <div class="row">
          <Button kind="primary" icon="upload" disabled={waiting.length === 0 || isRunning} onClick={start}>{waiting.length > 1 ? `Load ${waiting.length} files` : "Load"}</Button>
          <Check checked={isReplacing} onChange={setReplacing}>Replace what is there</Check>
          <span class="grow" />
          {items.some((one) => one.state.kind !== "waiting") && !isRunning && <Button kind="quiet" onClick={() => setItems(waiting)}>Clear the list</Button>}
        </div>
      </div></section>
      {items.length > 0 && (
        <section class="card"><header><h2>Files</h2></header>
          <ul class="files">{items.map((one) => (
            <li key={one.id} class="file" data-state={one.state.kind}>
              <div class="row">
                <Icon name={one.state.kind === "done" ? "check" : one.state.kind === "failed" ? "error" : "data"} />
                <b class="truncate grow" title={one.file.name}>{one.file.name}</b><span class="muted small">{bytesOf(one.file.size)}</span>
                {one.state.kind === "waiting" && <>
                  <Select small aria-label={`Format of ${one.file.name.slice(0, 80)}`} value={one.type} options={FORMATS} onPick={(type) => set(one.id, { type })} />
                  <Button size="small" kind="quiet" icon="close" title="Take it off the list" onClick={() => setItems(items.filter((other) => other !== one))} /></>}
                {one.state.kind === "sending" && <Button size="small" icon="stop" onClick={() => running.current?.cancel()}>Cancel</Button>}
              </div>
              <Progress item={one} />
            </li>
          ))}</ul>
        </section>
      )}
    </>
  );
}

function Progress({ item: { file, state } }: { item: Item }) {
  switch (state.kind) {
    case "waiting": return null;
    case "sending": {
      const share = file.size ? state.sent / file.size : 0;
      return <>
        <div class="progress" role="progressbar" aria-label={`Sent of ${file.name.slice(0, 80)}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share * 100)}><div ref={(bar) => { if (bar) bar.style.width = `${share * 100}%`; }} /></div>
        <div class="row small muted between"><span>{Math.round(share * 100)} %, {bytesOf(state.sent)} of {bytesOf(file.size)}</span>
          <span>{state.rate > 0 && `${bytesOf(state.rate)}/s, ${secondsOf((file.size - state.sent) / state.rate)} left`}</span></div>
      </>;
    }
    case "storing": return <div class="row small muted" role="status"><span class="spinner" />All sent; the service parses and stores it. This cannot be cancelled.</div>;
    case "cancelled": return <div class="small muted" role="status">Cancelled: nothing of this file was stored.</div>;
    case "done": return <div class="small" role="status">{countOf(state.triples)} triples added or removed in {secondsOf(state.seconds)}, at index {countOf(state.index)}.</div>;
    case "failed": return <>
      <Fault error={state.error} />
      {state.excerpt && <Lines excerpt={state.excerpt} />}
      {state.error instanceof ServiceError && state.error.status === 400 && <Notice>Nothing of this file was stored. Correct it, and load it again.</Notice>}
    </>;
  }
}

function Lines({ excerpt }: { excerpt: Excerpt }) {
  return (
    <pre class="excerpt" aria-label={`The file around line ${excerpt.line}`} tabIndex={0}>
      {excerpt.lines.map((one) => (
        <div key={one.number} class={one.number === excerpt.line ? "wrong" : ""}><span class="number">{one.number}</span><span>{one.text}</span></div>
      ))}
    </pre>
  );
}
