/** Data: load files, the graphs, validation with SHACL. */
import { useState } from "preact/hooks";
import { mayWrite } from "../../api/session";
import { go, place } from "../../app/router";
import { Tabs, type TabItem } from "../../ui/controls";
import { Graphs } from "./graphs";
import { Uploads } from "./uploads";
import { Validation } from "./validation";

export default function DataPage() {
  const items: TabItem[] = [
    ...(mayWrite.value ? [{ id: "load", text: "Load", icon: "upload" } as const] : []),
    { id: "graphs", text: "Graphs", icon: "folder" }, { id: "validate", text: "Validate", icon: "check" },
  ];
  const asked = place.value.parameters.get("tab");
  const tab = items.some((one) => one.id === asked) ? asked! : items[0]!.id;
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  // A part that was opened stays, so that an upload goes on while one looks at the graphs.
  if (!seen.has(tab)) setSeen(new Set([...seen, tab]));
  const part = (id: string, inside: preact.ComponentChildren) => seen.has(id) && <div hidden={tab !== id} class="stack">{inside}</div>;
  return (
    <div class="page">
      <div class="title"><div class="grow"><h1>Data</h1><p class="muted">Load files, look after the graphs, and check them against shapes.</p></div></div>
      <Tabs label="Parts of this page" items={items} value={tab} panel="data-panel" onPick={(id) => go("data", { tab: id }, true)} />
      <div id="data-panel" role="tabpanel" aria-label={items.find((one) => one.id === tab)?.text}>
        {mayWrite.value && part("load", <Uploads />)}
        {part("graphs", <Graphs isShown={tab === "graphs"} />)}
        {part("validate", <Validation />)}
      </div>
    </div>
  );
}
