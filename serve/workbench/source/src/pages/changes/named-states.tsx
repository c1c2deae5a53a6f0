/** Named states: their list, which everybody reads; who administers names a state and takes a name away. */
import { useState } from "preact/hooks";
import { momentOf, type NamedState } from "../../api/history";
import { write } from "../../api/service";
import { mayAdmin } from "../../api/session";
import { href } from "../../app/router";
import type { Asked } from "../../ui/asked";
import { Button, Field, Input } from "../../ui/controls";
import { Dialog, confirm, toast } from "../../ui/dialog";
import { StateNames } from "../../ui/state-names";
import { Empty, Fault, Loading } from "../../ui/states";
import { bytesOf, countOf, timeOf } from "../service/figures";

const EVERYTHING = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 100";

export function NamedStates({ read, compareTo }: { read: Asked<NamedState[]>; compareTo: (name: string) => string }) {
  const [isNaming, setNaming] = useState(false);
  const remove = async (one: NamedState) => {
    if (!await confirm("Delete the name?", <>The changes since “{one.name}” are then kept no longer than others.</>, "Delete")) return;
    try {
      await write(`/snapshots/${encodeURIComponent(one.name)}`, "DELETE");
      toast(`The name “${one.name}” is deleted.`);
    } catch (failure) { toast((failure as Error).message, "bad"); }
    read.again();
  };
  const states = read.value;
  return (
    <section class="card" aria-busy={read.isLoading}>
      <header class="wrap">
        <h2>Named states</h2>
        {mayAdmin.value && <Button size="small" icon="plus" onClick={() => setNaming(true)}>Name a state</Button>}
      </header>
      {read.error ? <div class="body"><Fault error={read.error} again={read.again} /></div>
        : states === null ? <Loading what="Reading the names" />
          : states.length === 0 ? <Empty icon="clock" title="No state has a name">A state that has one is kept until the name is deleted.</Empty>
            : (
              <div class="table-wrap" tabIndex={0} role="region" aria-label="Named states">
                <table class="table named-states">
                  <thead><tr><th>Name</th><th class="num">Index</th><th>Named</th><th>By</th><th class="num">History since</th><th><span class="visually-hidden">What to do</span></th></tr></thead>
                  <tbody>{states.map((one) => (
                    <tr key={one.name}>
                      <td><b>{one.name}</b></td>
                      <td class="num">{countOf(one.index)}</td>
                      <td>{timeOf(one.named_at)}</td>
                      <td>{one.named_by ?? "–"}</td>
                      <td class="num">{bytesOf(one.history_bytes)}</td>
                      <td><span class="row tight nowrap">
                        {one.kept ? <>
                          <a class="button small quiet" href={href("query", { query: EVERYTHING, as_of: one.name, run: "1" })}>Query</a>
                          <a class="button small quiet" href={compareTo(one.name)}>Difference to now</a>
                        </> : <span class="muted small">This node does not have it any more.</span>}
                        {mayAdmin.value && <Button size="small" kind="quiet" icon="trash" title={`Delete the name ${one.name}`} onClick={() => void remove(one)} />}
                      </span></td>
                    </tr>
                  ))}</tbody>
                </table>
              </div>
            )}
      {isNaming && <NameDialog states={states} onClose={() => setNaming(false)} onNamed={() => { setNaming(false); read.again(); }} />}
    </section>
  );
}

function NameDialog({ states, onClose, onNamed }: { states: readonly NamedState[] | null; onClose: () => void; onNamed: () => void }) {
  const [name, setName] = useState("");
  const [at, setAt] = useState("");
  const [error, setError] = useState<unknown>(null);
  const store = async () => {
    const moment = momentOf(at);
    try {
      const answer = await write(`/snapshots/${encodeURIComponent(name.trim())}${moment ? `?${new URLSearchParams({ at: moment })}` : ""}`, "PUT");
      const made = await answer.json() as NamedState;
      toast(`The state at index ${countOf(made.index)} is “${made.name}”.`);
      onNamed();
    } catch (failure) { setError(failure); }
  };
  return (
    <Dialog title="Name a state" onClose={onClose} onSubmit={() => void store()}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Name it</Button></>}>
      <Field label="Name" hint="Letters, digits, dots, hyphens and underscores; it begins with a letter.">{(id) => <Input id={id} required maxLength={64} value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
      <Field label="State" hint="A log index, a time such as 2026-11-27 08:00, or another name. Empty: the present.">{(id) => <Input id={id} placeholder="now" list="named-already" value={at} onInput={(event) => setAt(event.currentTarget.value)} />}</Field>
      <StateNames id="named-already" states={states} />
      {error !== null && <Fault error={error} />}
    </Dialog>
  );
}
