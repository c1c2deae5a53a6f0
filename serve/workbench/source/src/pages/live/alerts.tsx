/** Alerts: list, make, pause, test, last firings. */
import { useEffect, useState } from "preact/hooks";
import { graphJson, write } from "../../api/service";
import { mayWrite } from "../../api/session";
import { Button, Field, Input, Select } from "../../ui/controls";
import { Dialog, confirm, toast } from "../../ui/dialog";
import { FieldEditor } from "../../ui/lazy-editor";
import { faultIn } from "../../api/check";
import { complete } from "../query/complete";
import { Empty, Fault, Loading } from "../../ui/states";
import { plural, timeOf } from "../service/figures";

interface Alert {
  id: string; name: string; query: string; condition: string; interval_seconds: number; webhook: string; notify: "interval" | "change";
  signed: boolean; status: "active" | "paused" | "error"; last_evaluated_at: string | null; last_value: number | null;
  last_fired_at: string | null; fire_count: number; last_error: string | null;
}
interface Firing { id: string; fired_at: string; result: number | null; status: string; attempts: number; status_code: number | null; error: string | null }
interface Tested { result: number | null; holds: boolean; delivered: boolean; status_code: number | null; error: string | null }

const EVERY_MS = 5000;
const path = (alert: Alert, action = "") => `/alerts/${encodeURIComponent(alert.id)}${action}`;

export function Alerts() {
  const [alerts, setAlerts] = useState<Alert[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isMaking, setMaking] = useState(false);
  const load = () => graphJson<{ alerts: Alert[] }>("/alerts").then((found) => { setAlerts(found.alerts); setError(null); }, setError);
  useEffect(() => {
    void load();
    const timer = setInterval(load, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const make = mayWrite.value && <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New alert</Button>;
  return (
    <>
      {error !== null && <Fault error={error} again={load} />}
      {alerts === null ? error === null && <Loading what="Reading the alerts" /> : alerts.length === 0 ? (
        <section class="card"><Empty icon="bell" title="No alerts" actions={make}>
          An alert evaluates a query at an interval, and calls a webhook when the answer meets a condition.
          {!mayWrite.value && " You may read alerts, but not make them."}
        </Empty></section>
      ) : (
        <>
          <div class="row between"><span class="muted">{plural(alerts.length, "alert")}</span>{make}</div>
          {alerts.map((alert) => <AlertCard key={alert.id} alert={alert} changed={load} />)}
        </>
      )}
      {isMaking && <NewAlert close={() => setMaking(false)} made={() => { setMaking(false); void load(); }} />}
    </>
  );
}

function AlertCard({ alert, changed }: { alert: Alert; changed: () => void }) {
  const [firings, setFirings] = useState<Firing[] | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [tested, setTested] = useState<Tested | null>(null);
  const [error, setError] = useState<unknown>(null);
  const act = async (doIt: () => Promise<unknown>) => {
    setBusy(true); setError(null);
    try { await doIt(); changed(); } catch (failure) { setError(failure); } finally { setBusy(false); }
  };
  const history = () => graphJson<{ history: Firing[] }>(path(alert, "/history")).then((found) => setFirings(found.history), setError);
  const isPaused = alert.status === "paused";
  return (
    <section class="card alert" aria-label={`Alert ${alert.name.slice(0, 80)}`}>
      <header>
        <h2 class="truncate">{alert.name}</h2>
        <span class={`badge ${{ active: "good", paused: "", error: "bad" }[alert.status]}`}>{alert.status}</span>
      </header>
      <div class="body stack">
        <dl class="facts">
          <div><dt>Condition</dt><dd class="mono">{alert.condition}</dd></div>
          <div><dt>Last result</dt><dd>{alert.last_value ?? "none"}<span class="muted small"> {alert.last_evaluated_at && timeOf(alert.last_evaluated_at)}</span></dd></div>
          <div><dt>Fired</dt><dd>{plural(alert.fire_count, "time")}<span class="muted small"> {alert.last_fired_at && `last ${timeOf(alert.last_fired_at)}`}</span></dd></div>
          <div><dt>Evaluated</dt><dd>every {alert.interval_seconds.toLocaleString("en")} s, {alert.notify === "change" ? "fires when it becomes true" : "fires each time"}</dd></div>
          <div><dt>Webhook</dt><dd class="mono">{alert.webhook}{alert.signed && <span class="badge">signed</span>}</dd></div>
        </dl>
        <details><summary>Query</summary><pre class="sample">{alert.query}</pre></details>
        {alert.last_error && <Fault error={new Error(alert.last_error)} />}
        {error !== null && <Fault error={error} />}
        {tested && (
          <div class={`notice ${tested.delivered ? "good" : "bad"}`} role="status">
            <div class="stack tight"><span class="what">{tested.delivered ? `The webhook took it (status ${tested.status_code}).` : `The webhook did not take it: ${tested.error ?? `status ${tested.status_code}`}`}</span>
              <span class="small">The result is {tested.result ?? "not a number"}; the condition {tested.holds ? "holds" : "does not hold"}.</span>
              {!tested.delivered && <span class="small">Check that the address answers with a status from 200 to 299. Private addresses must be in security.webhook_allow.</span>}</div>
          </div>
        )}
        <div class="row">
          {mayWrite.value && <>
            <Button icon="play" size="small" disabled={isBusy} onClick={() => act(async () => setTested(await (await write(path(alert, "/test"), "POST")).json() as Tested))}>Test webhook</Button>
            <Button size="small" icon={isPaused ? "play" : "stop"} disabled={isBusy} onClick={() => act(() => write(path(alert, isPaused ? "/resume" : "/pause"), "POST"))}>{isPaused ? "Resume" : "Pause"}</Button>
          </>}
          <Button size="small" icon="history" aria-expanded={firings !== null} onClick={() => firings ? setFirings(null) : history()}>Last firings</Button>
          <span class="grow" />
          {mayWrite.value && <Button size="small" kind="danger" icon="trash" disabled={isBusy} onClick={async () => {
            if (await confirm("Delete this alert?", <>“{alert.name.slice(0, 200)}” and its firings are deleted.</>, "Delete")) void act(async () => { await write(path(alert), "DELETE"); toast("The alert is deleted."); });
          }}>Delete</Button>}
        </div>
        {firings && (firings.length === 0 ? <p class="muted">It has not fired yet.</p> : (
          <div class="table-wrap" tabIndex={0} role="region" aria-label="Last firings">
            <table class="table">
              <thead><tr><th>Fired</th><th class="num">Result</th><th>Delivery</th><th class="num">Attempts</th></tr></thead>
              <tbody>{firings.map((one) => (
                <tr key={one.id}><td>{timeOf(one.fired_at)}</td><td class="num">{one.result ?? "–"}</td>
                  <td><span class={`badge ${one.status === "delivered" ? "good" : one.status === "pending" ? "warn" : "bad"}`}>{one.status}</span> <span class="small muted">{one.error ?? ""}</span></td>
                  <td class="num">{one.attempts}</td></tr>
              ))}</tbody>
            </table>
          </div>
        ))}
      </div>
    </section>
  );
}

function NewAlert({ close, made }: { close: () => void; made: () => void }) {
  const [form, setForm] = useState({ name: "", query: "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }", operator: ">", bound: "0", interval: "60", webhook: "", notify: "change", secret: "" });
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const set = (name: keyof typeof form) => (event: { currentTarget: { value: string } }) => setForm({ ...form, [name]: event.currentTarget.value });
  const submit = async () => {
    setBusy(true); setError(null);
    try {
      await write("/alerts", "POST", {
        name: form.name, query: form.query, condition: `result ${form.operator} ${form.bound}`, interval_seconds: Number(form.interval), webhook: form.webhook,
        notify: form.notify, ...(form.secret ? { secret: form.secret } : {}),
      });
      toast("The alert is made, and evaluated now.");
      made();
    } catch (failure) { setError(failure); } finally { setBusy(false); }
  };
  return (
    <Dialog title="New alert" wide onClose={close} onSubmit={submit}
      foot={<><Button onClick={close}>Cancel</Button><Button kind="primary" type="submit" disabled={isBusy || !form.query.trim()}>Make alert</Button></>}>
      <Field label="Name">{(id) => <Input id={id} required maxLength={200} value={form.name} onInput={set("name")} />}</Field>
      <Field label="Query" hint="SELECT or ASK. The result is the number in an answer of one cell, otherwise the number of rows.">
        {() => <FieldEditor label="Query" rows={5} value={form.query} onChange={(query) => setForm((before) => ({ ...before, query }))} complete={complete} check={faultIn} />}
      </Field>
      <div class="columns">
        <Field label="Fires when the result is">{(id) => (
          <div class="row nowrap"><Select id={id} value={form.operator} options={[">", ">=", "<", "<=", "==", "!="]} onPick={(operator) => setForm({ ...form, operator })} />
            <Input type="number" step="any" required aria-label="than" value={form.bound} onInput={set("bound")} /></div>)}
        </Field>
        <Field label="Evaluated every (seconds)">{(id) => <Input id={id} type="number" min={1} max={31622400} required value={form.interval} onInput={set("interval")} />}</Field>
        <Field label="Calls">{(id) => <Select id={id} value={form.notify} options={[["change", "when it becomes true"], ["interval", "each time it is true"]]} onPick={(notify) => setForm({ ...form, notify })} />}</Field>
      </div>
      <Field label="Webhook" hint="An http or https address. Private ones must be in security.webhook_allow.">{(id) => <Input id={id} type="url" required placeholder="https://" value={form.webhook} onInput={set("webhook")} />}</Field>
      <Field label="Secret (optional)" hint="16 to 512 characters; signs the calls, and is never shown again.">{(id) => <Input id={id} type="password" minLength={16} maxLength={512} value={form.secret} onInput={set("secret")} />}</Field>
      {error !== null && <Fault error={error} />}
    </Dialog>
  );
}
