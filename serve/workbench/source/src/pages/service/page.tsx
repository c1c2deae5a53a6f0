/** Service: how the node and its cluster are, what runs, rates and latencies, keys, who I am. */
import { useEffect, useState } from "preact/hooks";
import { graph, graphJson, write } from "../../api/service";
import { config, mayAdmin, principal } from "../../api/session";
import { Button } from "../../ui/controls";
import { confirm, toast } from "../../ui/dialog";
import { href } from "../../app/router";
import { Empty, Fault, Loading, Notice } from "../../ui/states";
import { bytesOf, countOf, secondsOf, timeOf } from "./figures";
import { parse, quantile, rate, type Moment } from "./metrics";
import { Spark } from "./spark";

interface Health { status: string; role: string; node_id: number; snapshot_index: number; uptime_seconds: number; replication_lag: number | null; reason?: string }
interface Member { node_id: number; address: string; role: string; reachable: boolean; matched_index: number | null }
interface Cluster { node_id: number; role: string; term: number; leader_id: number | null; commit_index: number; last_index: number; applied_index: number; members: Member[] }
interface Query { id: string; text: string; form: string; state: string; where: string; age_seconds: number; principal: string | null }
interface Key { name: string; roles: string[]; expires_at: string | null }

const EVERY_MS = 2000;
const MOMENTS_MAX = 90;
const DURATION = "service_service_query_duration_seconds";

export default function ServicePage() {
  const [health, setHealth] = useState<Health | null>(null);
  const [cluster, setCluster] = useState<Cluster | null>(null);
  const [moments, setMoments] = useState<Moment[]>([]);
  const [error, setError] = useState<unknown>(null);
  const load = async () => {
    try {
      const [state, members, metrics] = await Promise.all([
        graphJson<Health>("/health"), graphJson<Cluster>("/cluster"), graph("/metrics", { headers: { Accept: "text/plain" } }).then((answer) => answer.text()),
      ]);
      setHealth(state); setCluster(members); setError(null);
      setMoments((all) => [...all.slice(1 - MOMENTS_MAX), { at: Date.now(), sample: parse(metrics) }]);
    } catch (failure) { setError(failure); }
  };
  useEffect(() => {
    void load();
    const timer = setInterval(() => { if (!document.hidden) void load(); }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="page">
      <div class="title"><h1>Service</h1>
        <div class="row">
          {config.value?.graphql.enabled && config.value.graphql.playground && <a class="button" href={href("graphql")}>GraphiQL</a>}
          <a class="button" href={href("reference")}>API reference</a>
        </div>
      </div>
      {error !== null && <Fault error={error} again={load} />}
      {health === null || cluster === null ? error === null && <Loading what="Asking the service" /> : (
        <>
          <Overview health={health} cluster={cluster} now={moments.at(-1)} />
          <Rates moments={moments} />
          <Members cluster={cluster} />
          {mayAdmin.value && <Running />}
          <div class="columns"><WhoIAm />{mayAdmin.value && <Keys />}</div>
        </>
      )}
    </div>
  );
}

function Figure(props: { title: string; value: string; note?: string; kind?: string; share?: number }) {
  return (
    <div class="card figure">
      <span class="small muted">{props.title}</span>
      <span class={`value ${props.kind ?? ""}`}>{props.value}</span>
      {props.share !== undefined && <Meter title={props.title} share={props.share} />}
      {props.note && <span class="small muted">{props.note}</span>}
    </div>
  );
}
function Meter({ title, share }: { title: string; share: number }) {
  return <meter class="meter" aria-label={`${title}, part in use`} min={0} max={1} high={0.85} value={share} />;
}

function Overview({ health, cluster, now }: { health: Health; cluster: Cluster; now: Moment | undefined }) {
  const read = (name: string) => now?.sample.get(`service_service_${name}`) ?? null;
  const memory = read("host_memory_bytes"), memoryLeft = read("host_memory_available_bytes"), disk = read("disk_bytes"), diskLeft = read("disk_free_bytes");
  const own = now?.sample.get("process_resident_memory_bytes") ?? null;
  const lag = health.replication_lag ?? cluster.last_index - cluster.applied_index;
  return (
    <>
      {health.reason && <Notice kind="warn">{health.reason}</Notice>}
      <div class="figures">
        <Figure title="Health" value={health.status} kind={health.status === "healthy" ? "good" : "bad"} note={`up for ${secondsOf(health.uptime_seconds)}`} />
        <Figure title="Log index" value={countOf(cluster.applied_index)} note={`${countOf(Math.max(0, lag))} entries behind`} />
        {memory !== null && memoryLeft !== null && <Figure title="Memory of the host" value={bytesOf(memory - memoryLeft)} share={1 - memoryLeft / memory} note={`of ${bytesOf(memory)}; this process ${own === null ? "–" : bytesOf(own)}`} />}
        {disk !== null && diskLeft !== null && <Figure title="Disk of the data" value={`${bytesOf(diskLeft)} free`} share={1 - diskLeft / disk} note={`of ${bytesOf(disk)}`} />}
      </div>
    </>
  );
}

function Rates({ moments }: { moments: Moment[] }) {
  const pairs = moments.slice(1).map((now, at) => [moments[at]!, now] as const);
  // Latencies are those of the last ten moments, so that a few queries are enough to see them.
  const wide = moments.slice(1).map((now, at) => [moments[Math.max(0, at - 9)]!, now] as const);
  const of = (name: string) => pairs.map(([before, now]) => rate(before, now, name));
  return (
    <section aria-label="Rates and latencies" class="sparks">
      <Spark title="Queries each second" empty="Two looks are needed." write={(value) => value.toFixed(1)} series={[
        { name: "all", values: of("service_service_queries_total"), colour: 1 },
        { name: "from the cache", values: of("service_service_query_cache_hits_total"), colour: 3 }]} />
      <Spark title="Time of a query" empty="No query has been answered while you look." write={secondsOf} series={[
        { name: "median", values: wide.map(([before, now]) => quantile(before, now, DURATION, 0.5)), colour: 1 },
        { name: "95 %", values: wide.map(([before, now]) => quantile(before, now, DURATION, 0.95)), colour: 2 }]} />
      <Spark title="Writes each second" empty="Two looks are needed." write={(value) => value.toFixed(1)} series={[
        { name: "log entries", values: of("service_service_raft_last_index"), colour: 4 }]} />
      <Spark title="Processor of this process" empty="Two looks are needed." write={(value) => `${Math.round(value * 100)} %`} series={[
        { name: "of a core", values: of("process_cpu_seconds_total"), colour: 7 }]} />
    </section>
  );
}

function Members({ cluster }: { cluster: Cluster }) {
  return (
    <section class="card">
      <header><h2>Cluster</h2><span class="badge">term {countOf(cluster.term)}</span></header>
      <div class="table-wrap" tabIndex={0} role="region" aria-label="Members of the cluster">
        <table class="table">
          <thead><tr><th>Node</th><th>Address</th><th>Role</th><th>State</th><th class="num">Log index</th><th class="num">Behind</th></tr></thead>
          <tbody>{cluster.members.map((one) => (
            <tr key={one.node_id}>
              <td>{one.node_id}{one.node_id === cluster.node_id && <span class="muted"> (this one)</span>}</td><td class="mono">{one.address}</td>
              <td>{one.node_id === cluster.leader_id && one.role !== "standalone" ? <span class="badge accent">leader</span> : one.role}</td>
              <td><span class={`badge ${one.reachable ? "good" : "bad"}`}>{one.reachable ? "reachable" : "unreachable"}</span></td>
              <td class="num">{one.matched_index === null ? "–" : countOf(one.matched_index)}</td>
              <td class="num">{one.matched_index === null ? "–" : countOf(Math.max(0, cluster.last_index - one.matched_index))}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {cluster.leader_id === null && <div class="body"><Notice kind="bad">No leader is known: no node accepts writes now. This should pass within seconds; otherwise a majority of the nodes is down.</Notice></div>}
    </section>
  );
}

function Running() {
  const [queries, setQueries] = useState<Query[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = () => graphJson<{ queries: Query[] }>("/queries").then((found) => { setQueries(found.queries); setError(null); }, setError);
  useEffect(() => {
    void load();
    const timer = setInterval(load, 1000);
    return () => clearInterval(timer);
  }, []);
  const cancel = async (query: Query) => {
    if (!await confirm("Cancel this query?", <pre class="sample">{query.text.slice(0, 1000)}</pre>, "Cancel the query")) return;
    try { await write(`/queries/${encodeURIComponent(query.id)}`, "DELETE"); toast("The query is cancelled."); } catch (failure) { toast(failure instanceof Error ? failure.message : String(failure), "bad"); }
    void load();
  };
  return (
    <section class="card running">
      <header><h2>Running queries</h2>{queries !== null && <span class="badge">{queries.length}</span>}</header>
      {error !== null ? <div class="body"><Fault error={error} again={load} /></div> : queries === null ? <Loading /> : queries.length === 0 ? (
        <Empty icon="query" title="Nothing runs">Queries that take longer than a moment are listed here while they run, and can be cancelled.</Empty>
      ) : (
        <div class="table-wrap" tabIndex={0} role="region" aria-label="Running queries">
          <table class="table">
            <thead><tr><th>Query</th><th>By</th><th>Where</th><th class="num">Since</th><th><span class="visually-hidden">Cancel</span></th></tr></thead>
            <tbody>{queries.map((one) => (
              <tr key={one.id}>
                <td><span class="badge">{one.form}</span> <code class="query-text" title={one.text.slice(0, 1000)}>{one.text.slice(0, 300)}</code></td>
                <td>{one.principal ?? "–"}</td><td class="small">{one.state === "queued" ? "queued" : one.where}</td><td class="num">{secondsOf(one.age_seconds)}</td>
                <td class="num"><Button size="small" kind="danger" icon="stop" onClick={() => cancel(one)}>Cancel</Button></td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function WhoIAm() {
  const who = principal.value;
  if (!who) return null;
  return (
    <section class="card">
      <header><h2>Who I am</h2><span class="badge accent">{who.permission}</span></header>
      <dl class="facts body">
        <div><dt>Name</dt><dd>{who.name}</dd></div>
        <div><dt>Known by</dt><dd>{who.provider === "none" ? "nothing: authentication is off" : who.provider}</dd></div>
        <div><dt>Roles</dt><dd>{who.roles.join(", ") || "none"}</dd></div>
        <div><dt>Sees</dt><dd>{who.sees_everything ? "everything" : "a part of the graph"}</dd></div>
        <div><dt>Until</dt><dd>{who.expires_at === null ? "no end" : timeOf(new Date(who.expires_at * 1000).toISOString())}</dd></div>
      </dl>
    </section>
  );
}

function Keys() {
  const [keys, setKeys] = useState<Key[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { graphJson<{ api_keys: Key[] }>("/api_keys").then((found) => setKeys(found.api_keys), setError); }, []);
  return (
    <section class="card">
      <header><h2>API keys</h2></header>
      {error !== null ? <div class="body"><Fault error={error} /></div> : keys === null ? <Loading /> : keys.length === 0 ? (
        <Empty icon="key" title="No API keys">Make one with <code>graphdb auth create-key</code>, and write it into the configuration.</Empty>
      ) : (
        <div class="table-wrap" tabIndex={0} role="region" aria-label="API keys">
          <table class="table">
            <thead><tr><th>Name</th><th>Roles</th><th>Expires</th></tr></thead>
            <tbody>{keys.map((one) => (
              <tr key={one.name}><td>{one.name}</td><td>{one.roles.join(", ") || "none"}</td>
                <td>{one.expires_at === null ? <span class="muted">never</span> : new Date(one.expires_at) < new Date() ? <span class="badge bad">expired</span> : timeOf(one.expires_at)}</td></tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}
