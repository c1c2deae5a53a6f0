/** Queries that are kept in the service: one's own, and those that others share. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { graph, graphJson } from "../../api/service";
import { mayAdmin, mayWrite, principal } from "../../api/session";
import { Button, Check, Field, Input, Menu, MenuItem } from "../../ui/controls";
import { Dialog, confirm, toast } from "../../ui/dialog";
import { Fault } from "../../ui/states";
import { change, openTab, tab } from "./store";

export interface Saved { id: string; name: string; description: string; query: string; view: string | null; shared: boolean; owner: string; provider: string; changed_at: string }
export const saved = signal<Saved[] | null>(null);

export async function loadSaved(): Promise<void> {
  saved.value = (await graphJson<{ queries: Saved[] }>("/saved-queries")).queries;
}

export function SavedMenu() {
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { loadSaved().catch(setError); }, []);
  const remove = async (one: Saved) => {
    if (!(await confirm("Delete the saved query?", <>“{one.name}” is deleted in the service{one.shared ? ", for everybody" : ""}.</>, "Delete"))) return;
    try {
      await graph(`/saved-queries/${one.id}`, { method: "DELETE" });
      if (tab.peek().saved === one.id) change(tab.peek().id, { saved: null });
      await loadSaved();
    } catch (failure) { toast(String((failure as Error).message), "bad"); }
  };
  const mine = (one: Saved) => one.owner === principal.value?.name && one.provider === principal.value.provider;
  const groups: [string, Saved[]][] = [
    ["Mine", (saved.value ?? []).filter((one) => mine(one))],
    ["Shared by others", (saved.value ?? []).filter((one) => !mine(one))],
  ];
  return (
    <Menu title="Saved queries" icon="folder" size="small" kind="quiet" text="Saved">
      {(close) => error ? <Fault error={error} /> : saved.value?.length ? groups.map(([title, found]) => found.length > 0 && (
        <div key={title}>
          <div class="title">{title}</div>
          {found.map((one) => (
            <div key={one.id} class="row nowrap tight saved-item">
              <MenuItem icon={one.shared ? "share" : "query"} onPick={() => { openTab(one.query, one.name, one.view ?? undefined, one.id); close(); }}>
                <span class="saved-text"><span class="truncate">{one.name}</span>{one.description && <span class="small muted truncate">{one.description}</span>}</span>
              </MenuItem>
              {((mine(one) && (mayWrite.value || !one.shared)) || mayAdmin.value) && <Button size="small" kind="quiet" icon="trash" title={`Delete ${one.name}`} onClick={() => void remove(one)} />}
            </div>
          ))}
        </div>
      )) : <div class="title">Nothing is saved yet: Ctrl-S saves the query of this tab.</div>}
    </Menu>
  );
}

export function SaveDialog({ onClose }: { onClose: () => void }) {
  const own = tab.value;
  const known = saved.value?.find((one) => one.id === own.saved);
  const [name, setName] = useState(known?.name ?? own.name);
  const [description, setDescription] = useState(known?.description ?? "");
  const [shared, setShared] = useState(known?.shared ?? false);
  const [error, setError] = useState<unknown>(null);
  const store = async (anew: boolean) => {
    const body = JSON.stringify({ name, description, query: own.text, view: own.view, shared });
    const headers = { "Content-Type": "application/json" };
    try {
      const kept = known && !anew
        ? await graphJson<Saved>(`/saved-queries/${known.id}`, { method: "PUT", body, headers })
        : await graphJson<Saved>("/saved-queries", { method: "POST", body, headers });
      change(own.id, { name, saved: kept.id });
      await loadSaved();
      toast(`“${name}” is saved.`);
      onClose();
    } catch (failure) { setError(failure); }
  };
  return (
    <Dialog title="Save the query" onClose={onClose} onSubmit={() => void store(false)}
      foot={<><Button onClick={onClose}>Cancel</Button>{known && <Button onClick={() => void store(true)}>Save as new</Button>}<Button kind="primary" type="submit">Save</Button></>}>
      <Field label="Name">{(id) => <Input id={id} required maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
      <Field label="Description">{(id) => <Input id={id} maxLength={2000} value={description} onInput={(event) => setDescription(event.currentTarget.value)} />}</Field>
      {mayWrite.value
        ? <Check checked={shared} onChange={setShared}>Share it with everybody who may read</Check>
        : <span class="muted small">Only you will see it: sharing needs the permission Write.</span>}
      {error !== null && <Fault error={error} />}
    </Dialog>
  );
}
