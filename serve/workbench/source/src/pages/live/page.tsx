/** Live: a query whose rows are followed, and the alerts. */
import { go, place } from "../../app/router";
import { Tabs } from "../../ui/controls";
import { Alerts } from "./alerts";
import { FollowedQuery } from "./followed-query";

const ITEMS = [{ id: "query", text: "Live query", icon: "live" }, { id: "alerts", text: "Alerts", icon: "bell" }] as const;

export default function LivePage() {
  const tab = place.value.parameters.get("tab") === "alerts" ? "alerts" : "query";
  return (
    <div class="page">
      <div class="title"><div class="grow"><h1>Live</h1><p class="muted">Follow the rows of a query as they change, or be called when they do.</p></div></div>
      <Tabs label="Parts of this page" items={ITEMS} value={tab} panel="live-panel" onPick={(id) => go("live", { tab: id }, true)} />
      <div id="live-panel" role="tabpanel" aria-label={tab === "alerts" ? "Alerts" : "Live query"} class="stack">
        {tab === "alerts" ? <Alerts /> : <FollowedQuery />}
      </div>
    </div>
  );
}
