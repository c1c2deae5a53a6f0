/** The query page: tabs with an editor above, the answer below. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { faultIn } from "../../api/check";
import { ServiceError } from "../../api/errors";
import { mayWrite } from "../../api/session";
import { href, place, go } from "../../app/router";
import { Button, Menu, MenuItem } from "../../ui/controls";
import { confirm, toast } from "../../ui/dialog";
import type { Mark } from "../../ui/editor";
import { Icon } from "../../ui/icons";
import { Editor } from "../../ui/lazy-editor";
import { format, formOf } from "../../ui/sparql-language";
import { AsOf } from "./as-of";
import { complete } from "./complete";
import { ASK_FROM, losses } from "./destroys";
import { Results } from "./panel";
import { SaveDialog, SavedMenu } from "./saved";
import { cancel, change, closeTab, open, openTab, past, run, start, tab, tabs } from "./store";

const SPLIT = "graphdb.query.split";

export default function QueryPage() {
  const [saving, setSaving] = useState(false);
  const [wrong, setWrong] = useState<Mark | null>(null); // while writing
  const [isAsking, setAsking] = useState(false); // for a state of the past
  const own = tab.value;
  const asOf = own.asOf ?? null;
  const showsAsOf = isAsking || asOf !== null;
  const running = run.value?.state === "running";
  const kind = formOf(own.text);

  // A link to a query: it opens in a tab of its own, and runs unless it changes something.
  useSignalEffect(() => {
    const { page, parameters } = place.value;
    const text = parameters.get("query");
    if (page !== "query" || text === null) return;
    const same = tabs.peek().find((one) => one.text === text);
    if (same) open.value = same.id; else openTab(text, parameters.get("name") ?? undefined);
    if (parameters.get("view")) change(open.peek(), { view: parameters.get("view")! });
    change(open.peek(), { asOf: parameters.get("as_of") });
    if (parameters.get("run") === "1" && formOf(text) !== "UPDATE") void start(open.peek(), text);
    go("query", {}, true);
  });

  const execute = async () => {
    const { id, text } = tab.peek();
    if (!text.trim()) return;
    if (formOf(text) === "UPDATE" && !(await mayApply(text))) return;
    await start(id, text);
  };
  const again = () => {
    const { id, text } = tab.peek();
    if (text.trim() && formOf(text) !== "UPDATE") void start(id, text);
  };
  const toggleAsOf = () => {
    setAsking(!showsAsOf);
    if (asOf === null) return;
    change(own.id, { asOf: null });
    again();
  };
  const escape = () => cancel(tab.peek().id);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented) escape();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !(event.target as HTMLElement).closest(".cm-editor, dialog")) { event.preventDefault(); void execute(); }
      if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); setSaving(true); }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);

  const share = async () => {
    const address = `${location.origin}/${href("query", { query: own.text, view: own.view, as_of: asOf ?? undefined, run: "1" })}`;
    try { await navigator.clipboard.writeText(address); toast("The link is in the clipboard."); } catch { toast(<>Copy this link: <code>{address}</code></>, "info"); }
  };
  const fault = run.value?.error instanceof ServiceError && run.value.text === own.text && run.value.error.place
    ? { ...run.value.error.place, message: run.value.error.message } : null;

  return (
    <div class="page full query">
      <h1 class="visually-hidden">Query</h1>
      <div class="qtabs">
        <TabStrip />
        <Menu title="History" icon="history" size="small" kind="quiet" side="right">
          {(close) => past.value.length === 0 ? <div class="title">No query has been run yet.</div> : <>
            <div class="title">History</div>
            {past.value.slice(0, 40).map((one) => (
              <MenuItem key={one.text} icon={one.failed ? "error" : "query"} onPick={() => { openTab(one.text); close(); }}
                note={one.rows === null ? "failed" : `${one.rows.toLocaleString("en")} · ${new Date(one.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`}>
                <span class="truncate past">{one.text.replace(/\s+/g, " ").slice(0, 90)}</span>
              </MenuItem>
            ))}
          </>}
        </Menu>
        <SavedMenu />
      </div>
      <Split>
        <section class="qeditor" aria-label="Editor">
          <Editor key={own.id} label="Query" value={own.text} onChange={(text) => change(own.id, { text })} onRun={() => void execute()} onEscape={escape}
            fault={fault} check={faultIn} onChecked={setWrong} complete={complete} hint="SELECT * WHERE { ?subject ?predicate ?object } LIMIT 10" />
          {showsAsOf && <AsOf key={own.id} asOf={asOf} newestSeen={run.value?.answer?.index ?? 0} isUpdate={kind === "UPDATE"} onPick={(to) => { setAsking(true); change(own.id, { asOf: to }); }} onSettled={again} />}
          <div class="qbar">
            {running
              ? <Button kind="danger" icon="stop" onClick={escape} title="Cancel (Escape)">Cancel</Button>
              : <Button kind="primary" icon="play" onClick={() => void execute()} disabled={!own.text.trim() || (kind === "UPDATE" && !mayWrite.value)}
                  title={kind === "UPDATE" && !mayWrite.value ? "You may not change data" : "Run (Ctrl-Enter)"}>{kind === "UPDATE" ? "Apply update" : "Run"}</Button>}
            {!wrong && <span class="qkeys muted small"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>}
            <span class="qwrong grow small truncate" role="status" title={wrong?.message}>{wrong && !fault && <><b>Line {wrong.line}, column {wrong.column}</b> {wrong.message}</>}</span>
            <Button kind="quiet" icon="clock" pressed={showsAsOf} title="Query a state of the past" onClick={toggleAsOf} />
            <Button kind="quiet" icon="format" title="Format the query" onClick={() => change(own.id, { text: format(own.text) })} />
            <Button kind="quiet" icon="share" title="Copy a link to this query and view" onClick={() => void share()} />
            <Button kind="quiet" icon="save" title="Save the query in the service (Ctrl-S)" onClick={() => setSaving(true)} />
          </div>
        </section>
        <Results key={own.id} />
      </Split>
      {saving && <SaveDialog onClose={() => setSaving(false)} />}
    </div>
  );
}

/** Whether an update may be applied: asks where it would remove much. */
async function mayApply(text: string): Promise<boolean> {
  const found = await losses(text);
  const serious = found.filter((one) => one.count === null || one.count >= ASK_FROM);
  if (!serious.length) return true;
  return confirm("Remove this?", <>
    <p>This update may remove:</p>
    <ul class="losses">{serious.map((one, at) => <li key={at}><b>{one.what}</b>{one.count === null ? ", of unknown size" : `: ${one.count.toLocaleString("en")} ${one.what.startsWith("what") ? "matches" : "triples"}`}</li>)}</ul>
    <p class="muted">It cannot be undone.</p>
  </>, "Apply update");
}

function TabStrip() {
  const [renaming, setRenaming] = useState<string | null>(null);
  return (
    <div class="strip">
      <div class="strip-tabs" role="tablist" aria-label="Queries">
        {tabs.value.map((one) => (
          <div key={one.id} class="strip-tab" role="presentation" data-open={one.id === open.value}>
            {renaming === one.id
              ? <input class="rename" value={one.name} aria-label="Name of the tab" autofocus
                  onBlur={(event) => { change(one.id, { name: event.currentTarget.value.trim() || one.name }); setRenaming(null); }}
                  onKeyDown={(event) => { if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur(); }} />
              : <button type="button" role="tab" aria-selected={one.id === open.value} title={`${one.name}: double click or F2 to rename`}
                  onClick={() => { open.value = one.id; }} onDblClick={() => setRenaming(one.id)} onKeyDown={(event) => {
                    if (event.key === "F2") setRenaming(one.id);
                    if (event.key === "Delete") closeTab(one.id);
                    const at = tabs.value.findIndex((other) => other.id === one.id) + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0);
                    const to = tabs.value[at];
                    if (to && to.id !== one.id) { open.value = to.id; (event.currentTarget.parentElement?.parentElement?.children[at]?.querySelector("[role=tab]") as HTMLElement | null)?.focus(); }
                  }}>
                  {one.name}
                </button>}
          </div>
        ))}
      </div>
      <Button size="small" kind="quiet" icon="close" title="Close this tab" onClick={() => closeTab(open.value)} />
      <Button size="small" kind="quiet" icon="plus" title="New tab" onClick={() => openTab("")} />
    </div>
  );
}

/** Two panes, and a bar between them that moves with the pointer and the arrows. */
function Split({ children }: { children: [preact.ComponentChild, preact.ComponentChild] }) {
  const [share, setShare] = useState(() => Number(localStorage.getItem(SPLIT)) || 38);
  const box = useRef<HTMLDivElement>(null);
  const set = (to: number) => { const kept = Math.round(Math.min(80, Math.max(15, to))); setShare(kept); localStorage.setItem(SPLIT, String(kept)); };
  const drag = (event: PointerEvent) => {
    event.preventDefault();
    const { top, height } = box.current!.getBoundingClientRect();
    const move = (moved: PointerEvent) => set(((moved.clientY - top) / height) * 100);
    const end = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  };
  return (
    <div class="split" ref={box} style={{ gridTemplateRows: `minmax(120px, ${share}%) 7px minmax(0, 1fr)` }}>
      {children[0]}
      <div class="splitter" role="separator" aria-orientation="horizontal" aria-label="Height of the editor" aria-valuenow={share} aria-valuemin={15} aria-valuemax={80} tabIndex={0}
        onPointerDown={drag} onKeyDown={(event) => { const by = { ArrowUp: -4, ArrowDown: 4 }[event.key]; if (by) { event.preventDefault(); set(share + by); } }}><Icon name="more" size={14} /></div>
      {children[1]}
    </div>
  );
}
