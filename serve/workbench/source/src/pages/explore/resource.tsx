/** The page of one resource: what it is, its properties, what points to it, where it is, its graphs; and its surroundings as a graph. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { counted, countNeighbours } from "../../api/neighbours";
import { mayWrite } from "../../api/session";
import { RDF_TYPE, webAddress, written, type Term } from "../../api/terms";
import { labels, predicates, shorten, shown } from "../../api/vocabulary";
import { readLabels } from "../../api/neighbours";
import { go, href, linkTo, place } from "../../app/router";
import { useAsked } from "../../ui/asked";
import { Button, Select, Tabs } from "../../ui/controls";
import { confirm, toast } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Empty, Fault, Loading } from "../../ui/states";
import { mayShowImage, TermView } from "../../ui/term";
import { checkResource, forgetShapes, type Finding } from "./checks";
import { changeValue, ValueForm } from "./edit";
import { ResourceHistory } from "./history";
import { LazyGraph } from "./lazy-graph";
import { PlacesMap } from "./places-map";
import { PAGE, picturesOf, readDocuments, readIncoming, readPlaces, readResource, readValues, VALUES_MAX, type Group, type Value } from "./resource-data";

const SHOWN = 6; // values of one property that are shown at first
const MORE = 50; // that are read with each click after that
const VIEWS = [{ id: "properties", text: "Properties", icon: "table" }, { id: "graph", text: "Graph", icon: "graph" }, { id: "history", text: "History", icon: "history" }] as const;

export function ResourcePage({ node }: { node: string }) {
  const asked = place.value.parameters.get("view");
  const { id: view, text: viewName } = VIEWS.find((one) => one.id === asked) ?? VIEWS[0];
  const read = useAsked((signal) => readResource(node, signal), [node]);
  const resource = read.value;
  useEffect(() => {
    if (!resource) return;
    const iris = resource.groups.flatMap(({ predicate, values }) => [predicate, ...values.slice(0, 60).flatMap(({ term }) => term.type === "uri" ? [term.value] : [])]);
    void readLabels([node, ...iris].slice(0, 800));
  }, [resource]);
  const name = labels.value.get(node) ?? ownName(resource?.groups ?? []) ?? shown(node);
  const picture = useMemo(() => picturesOf(resource?.groups ?? []), [resource]);
  const canShow = picture.find(mayShowImage);
  const address = webAddress(node);
  const query = `SELECT ?property ?value WHERE {\n  ${written({ type: "uri", value: node })} ?property ?value\n}\nLIMIT 100`;
  return (
    <div class={`page explore${view === "graph" ? " with-graph" : ""}`}>
      <nav class="crumbs small" aria-label="Where this is"><a href={href("explore")}>Explore</a><Icon name="right" size={12} />
        {resource?.types[0] && <><a href={href("explore", { class: resource.types[0] })}>{labels.value.get(resource.types[0]) ?? shown(resource.types[0])}</a><Icon name="right" size={12} /></>}
        <span class="muted truncate">{name}</span>
      </nav>
      <header class="resource-head">
        {canShow && <img class="portrait" src={canShow} alt="" />}
        <div class="grow">
          <h1 class="resource-name">{name}</h1>
          <div class="row tight iri-line">
            <code class="truncate muted" title={node}>{node}</code>
            <Button kind="quiet" size="small" icon="copy" title="Copy the IRI" onClick={() => void navigator.clipboard.writeText(node).then(() => toast("Copied"))} />
            {address && <a class="button quiet small icon" href={address} target="_blank" rel="noopener noreferrer" title="Open the address in a new window" aria-label="Open the address in a new window"><Icon name="external" size={14} /></a>}
          </div>
          {resource && <div class="row tight">{resource.types.map((one) => <a key={one} class="badge accent" href={href("explore", { class: one })} title={one}>{labels.value.get(one) ?? shown(one)}</a>)}
            {resource.graphs.filter((one) => one !== null).slice(0, 8).map((one) => <span key={one} class="badge" title={`Has triples in the graph ${one}`}><Icon name="folder" size={12} />{shown(one!)}</span>)}</div>}
        </div>
        <a class="button" href={linkTo.query(query)}><Icon name="query" />Query</a>
      </header>
      <Tabs label="Views" items={VIEWS} value={view} panel="resource-view"
        onPick={(id) => go("explore", { iri: node, view: id === VIEWS[0].id ? undefined : id }, true)} />
      <div id="resource-view" role="tabpanel" class={view === "graph" ? "graph-frame card" : view === "history" ? "stack" : "resource-body"} aria-label={viewName}>
        {view === "graph" ? <LazyGraph key={node} start={node} triples={NONE} label={`Graph around ${name}`} onOpen={(one) => go("explore", { iri: one })} />
          : view === "history" ? <ResourceHistory node={node} />
            : read.error ? <Fault error={read.error} again={read.again} />
              : !resource ? <Loading what="Reading its properties" />
                : <>
                  <div class="stack grow"><Properties node={node} groups={resource.groups} graphs={resource.graphs} types={resource.types} again={read.again} /><Incoming node={node} /></div>
                  <aside class="resource-aside stack" aria-label="More about it">
                    {!canShow && picture[0] && <Picture address={picture[0]} />}
                    <PlacesCard node={node} />
                    <GraphsCard graphs={resource.graphs} />
                    <SearchCard node={node} />
                  </aside>
                </>}
      </div>
    </div>
  );
}
const NONE: never[] = [];

/** What a resource calls itself, before the labels of everything else are known. */
function ownName(groups: readonly Group[]): string | undefined {
  const values = groups.filter(({ predicate }) => /[#/](label|prefLabel|name|title)$/.test(predicate)).flatMap((one) => one.values).map(({ term }) => term);
  const own = navigator.language.slice(0, 2);
  const rank = (term: Term) => term.type !== "literal" ? 9 : term["xml:lang"]?.startsWith(own) ? 0 : term["xml:lang"]?.startsWith("en") || !term["xml:lang"] ? 1 : 2;
  const best = values.filter((term) => term.type === "literal" && term.value.length < 200).sort((one, other) => rank(one) - rank(other))[0];
  return best?.type === "literal" ? best.value : undefined;
}

function Picture({ address }: { address: string }) {
  const web = webAddress(address);
  if (!web) return null;
  return <section class="card small-card"><h2><Icon name="image" />Picture</h2><p class="small"><a href={web} target="_blank" rel="noopener noreferrer">{new URL(web).host}</a><br /><span class="muted">Pictures of this host are shown here once it is in <code>server.workbench_image_hosts</code>.</span></p></section>;
}

function Properties(props: { node: string; groups: Group[]; graphs: (string | null)[]; types: string[]; again: () => void }) {
  const { node, groups } = props;
  const checks = useAsked((signal) => checkResource(node, signal).catch(() => null), [node, groups]);
  const [adding, setAdding] = useState(false);
  const [filter, setFilter] = useState("");
  const findings = checks.isLoading ? [] : checks.value ?? []; // those of before an edit say nothing now
  const order = (one: Group) => one.predicate === RDF_TYPE ? 2 : /(label|name|title)$/i.test(one.predicate) ? 0 : 1;
  const sought = filter.trim().toLowerCase();
  const sorted = [...groups].sort((one, other) => order(one) - order(other)).filter((one) => !sought || (labels.value.get(one.predicate) ?? "").toLowerCase().includes(sought) || one.predicate.toLowerCase().includes(sought));
  const elsewhere = findings.filter((one) => !groups.some((group) => group.predicate === one.path));
  const done = (changed: { predicate: string; before: Term | null; after: Term | null; wasThere: boolean; graph: string | null }) => {
    setAdding(false);
    if (!changed.wasThere) toast("Nothing was changed: somebody else changed it meanwhile, or it was there already.", "info");
    else {
      const undo = () => void changeValue(node, changed.predicate, changed.graph, changed.after, changed.before).then(props.again, (error: Error) => toast(error.message, "bad"));
      toast(<span class="row between">Saved<Button size="small" onClick={undo}>Undo</Button></span>);
    }
    forgetShapes();
    props.again();
  };
  return (
    <section class="card">
      <header>
        <h2>Properties</h2>
        {checks.isLoading ? <span class="muted small" role="status">Checking its shapes …</span> : checks.value !== null && (findings.length === 0 ? <span class="badge good"><Icon name="check" size={12} />Conforms to its shapes</span> : <span class="badge bad"><Icon name="warning" size={12} />{findings.length} {findings.length === 1 ? "finding" : "findings"} of SHACL</span>)}
        {groups.length > 12 && <input class="input small filter" type="search" placeholder="Filter" aria-label="Filter properties" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}
        {mayWrite.value && <Button size="small" icon="plus" onClick={() => setAdding(true)}>Add property</Button>}
      </header>
      <datalist id="known-predicates">{predicates.value.slice(0, 200).map((one) => <option key={one.iri} value={one.iri}>{one.label ?? labels.value.get(one.iri)}</option>)}</datalist>
      {elsewhere.length > 0 && <div class="body findings">{elsewhere.map((one, at) => <FindingView key={at} finding={one} withPath />)}</div>}
      {adding && <div class="body"><ValueForm subject={node} graph={null} label="New property" onCancel={() => setAdding(false)} onDone={(changed) => done({ ...changed, graph: null })} /></div>}
      {groups.length === 0 ? <Empty title="No properties">Nothing is said about it in any graph that you may see. It may still be pointed to, below.</Empty> : (
        <dl class="properties">
          {sorted.map((group) => <PropertyGroup key={group.predicate} node={node} group={group} findings={findings.filter((one) => one.path === group.predicate)} onDone={done} />)}
        </dl>
      )}
    </section>
  );
}

function FindingView({ finding, withPath = false }: { finding: Finding; withPath?: boolean }) {
  return <div class={`finding ${finding.severity}`}><Icon name={finding.severity === "info" ? "info" : "warning"} size={14} /><span>{withPath && finding.path && <b title={finding.path}>{shown(finding.path)}: </b>}{finding.message}</span></div>;
}

function PropertyGroup({ node, group, findings, onDone }: {
  node: string; group: Group; findings: Finding[];
  onDone: (changed: { predicate: string; before: Term | null; after: Term | null; wasThere: boolean; graph: string | null }) => void;
}) {
  const [more, setMore] = useState<Value[] | null>(null);
  const [limit, setLimit] = useState(SHOWN);
  const [editing, setEditing] = useState<number | "new" | null>(null);
  const [busy, setBusy] = useState(false);
  const { predicate } = group;
  const values = more ?? group.values;
  const shownValues = values.slice(0, limit);
  const label = labels.value.get(predicate) ?? shown(predicate);
  useEffect(() => { setMore(null); setEditing(null); }, [group]);
  const grow = async () => {
    if (limit + MORE > values.length && values.length < group.count) {
      setBusy(true);
      try {
        const next = await readValues(node, predicate, more?.length ?? 0, more ? MORE : Math.min(VALUES_MAX, limit + MORE));
        const all = [...more ?? [], ...next];
        setMore(all);
        void readLabels(next.flatMap(({ term }) => term.type === "uri" ? [term.value] : []));
      } catch (error) { toast((error as Error).message, "bad"); }
      setBusy(false);
    }
    setLimit(limit + MORE);
  };
  const remove = async (value: Value) => {
    if (!await confirm("Delete this value?", <p>{label}: {valueText(value.term)}</p>, "Delete")) return;
    try { onDone({ predicate, before: value.term, after: null, wasThere: await changeValue(node, predicate, value.graph, value.term, null), graph: value.graph }); }
    catch (error) { toast((error as Error).message, "bad"); }
  };
  return (
    <div class="property">
      <dt><a href={href("explore", { property: predicate })} title={predicate}>{label}</a>{group.count > 1 && <span class="muted small"> {counted(group.count, group.isPart)}</span>}
        {mayWrite.value && editing === null && <Button class="add-value" size="small" kind="quiet" icon="plus" title={`Add a value of ${label}`} onClick={() => setEditing("new")} />}</dt>
      <dd>
        <ul>
          {shownValues.map((value, at) => editing === at ? (
            <li key={at}><ValueForm subject={node} predicate={predicate} graph={value.graph} value={value.term} label={`Edit ${label}`} onCancel={() => setEditing(null)} onDone={(changed) => onDone({ ...changed, graph: value.graph })} /></li>
          ) : (
            <li key={at} class="value">
              <ValueView value={value} />
              {value.graph !== null && <span class="in-graph muted small" title={`in the graph ${value.graph}`}><Icon name="folder" size={11} />{shorten(value.graph) ?? "graph"}</span>}
              {mayWrite.value && !value.isCut && (value.term.type === "uri" || value.term.type === "literal") && (
                <span class="value-tools">
                  <Button kind="quiet" size="small" icon="edit" title={`Edit ${label}: ${valueText(value.term)}`} onClick={() => setEditing(at)} />
                  <Button kind="quiet" size="small" icon="trash" title={`Delete ${label}: ${valueText(value.term)}`} onClick={() => void remove(value)} />
                </span>
              )}
            </li>
          ))}
          {editing === "new" && <li><ValueForm subject={node} predicate={predicate} graph={null} label={`Add ${label}`} onCancel={() => setEditing(null)} onDone={(changed) => onDone({ ...changed, graph: null })} /></li>}
        </ul>
        {findings.map((one, at) => <FindingView key={at} finding={one} />)}
        {limit < group.count && <Button size="small" kind="quiet" icon="down" disabled={busy} onClick={() => void grow()}>{busy ? "Reading …" : `Show ${Math.min(MORE, group.count - limit)} more of ${counted(group.count, group.isPart)}`}</Button>}
      </dd>
    </div>
  );
}

function valueText(term: Term): string { return term.type === "uri" ? shown(term.value) : term.type === "literal" ? term.value.slice(0, 60) : "value"; }

/** A value: long texts over several lines, cut where the service has cut them. */
function ValueView({ value }: { value: Value }) {
  const [whole, setWhole] = useState(false);
  const { term } = value;
  if (term.type !== "literal" || (term.value.length <= 60 && !value.isCut)) return <TermView term={term} />;
  const text = whole ? term.value : term.value.slice(0, 360);
  return (
    <span class="long-text">
      {text}{text.length < term.value.length ? "… " : value.isCut ? "… " : ""}
      {term.value.length > 360 && <Button size="small" kind="quiet" onClick={() => setWhole(!whole)}>{whole ? "Less" : "More"}</Button>}
      {value.isCut && <span class="muted small"> The first {term.value.length.toLocaleString("en")} of {value.length.toLocaleString("en")} characters. Query it to read the rest.</span>}
      {term["xml:lang"] && <span class="muted small"> {term["xml:lang"]}</span>}
    </span>
  );
}

function Incoming({ node }: { node: string }) {
  const [predicate, setPredicate] = useState<string | null>(null);
  const [page, setPage] = useState(0);
  useEffect(() => { setPredicate(null); setPage(0); }, [node]);
  const counts = useAsked((signal) => countNeighbours(node, "in", signal), [node]);
  const read = useAsked((signal) => readIncoming(node, predicate, page * PAGE, signal), [node, predicate, page]);
  const arrows = read.value;
  useEffect(() => { if (arrows) void readLabels(arrows.flatMap(({ subject, predicate: by }) => subject.type === "uri" ? [subject.value, by] : [by])); }, [arrows]);
  const own = counts.value ?? [];
  const isPart = own.some((one) => one.isPart);
  const of = predicate === null ? own.reduce((sum, one) => sum + one.count, 0) : own.find((one) => one.predicate === predicate)?.count ?? 0;
  return (
    <section class="card" aria-busy={read.isLoading}>
      <header>
        <h2>What points to it {counts.value && <span class="muted small">{counted(of, isPart)}</span>}</h2>
        {own.length > 1 && <Select small aria-label="By which property" value={predicate ?? ""} onPick={(one) => { setPredicate(one || null); setPage(0); }}
          options={[["", "By any property"], ...own.map((one) => [one.predicate, `${labels.value.get(one.predicate) ?? shown(one.predicate)} (${counted(one.count, one.isPart)})`] as const)]} />}
      </header>
      {read.error ? <div class="body"><Fault error={read.error} again={read.again} /></div> : !arrows ? <Loading /> : arrows.length === 0 ? <p class="body muted">{page ? "That was all." : "Nothing points to it."}</p> : (
        <ul class="arrows">{arrows.map((one, at) => (
          <li key={at}><TermView term={one.subject} /><span class="by muted small"><a href={href("explore", { property: one.predicate })} title={one.predicate}>{labels.value.get(one.predicate) ?? shown(one.predicate)}</a></span></li>
        ))}</ul>
      )}
      {(page > 0 || (arrows?.length === PAGE)) && <Pager page={page} hasNext={arrows?.length === PAGE && (isPart || (page + 1) * PAGE < of || counts.value === null)} onPage={setPage} size={PAGE} total={counts.value ? counted(of, isPart) : undefined} />}
    </section>
  );
}

export function Pager(props: { page: number; hasNext: boolean; onPage: (page: number) => void; size: number; total?: string }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <Button size="small" icon="left" title="Previous page" disabled={props.page === 0} onClick={() => props.onPage(props.page - 1)} />
      <span class="small muted" role="status">{(props.page * props.size + 1).toLocaleString("en")}–{((props.page + 1) * props.size).toLocaleString("en")}{props.total && ` of ${props.total}`}</span>
      <Button size="small" icon="right" title="Next page" disabled={!props.hasNext} onClick={() => props.onPage(props.page + 1)} />
    </nav>
  );
}

function PlacesCard({ node }: { node: string }) {
  const read = useAsked((signal) => readPlaces(node, signal), [node]);
  if (!read.value?.length) return null;
  return (
    <section class="card small-card"><h2><Icon name="map" />Where it is</h2>
      <PlacesMap geometries={read.value} name={labels.value.get(node) ?? shown(node)} />
      <ul class="small mono">{read.value.slice(0, 3).map((one) => one.type === "literal" && <li key={one.value} class="truncate" title={one.value.slice(0, 500)}>{one.value.slice(0, 120)}</li>)}</ul>
    </section>
  );
}

function GraphsCard({ graphs }: { graphs: (string | null)[] }) {
  if (!graphs.some((one) => one !== null)) return null;
  return <section class="card small-card"><h2><Icon name="folder" />Its graphs</h2><ul class="small">{graphs.map((one) => <li key={one ?? ""} class="truncate">{one === null ? "Default graph" : <TermView term={{ type: "uri", value: one }} />}</li>)}</ul></section>;
}

function SearchCard({ node }: { node: string }) {
  const read = useAsked((signal) => readDocuments(node, signal).catch(() => []), [node]);
  if (!read.value?.length) return null;
  return <section class="card small-card"><h2><Icon name="search" />In search</h2><ul class="small">{read.value.map((one) => <li key={one}><a href={href("search", { index: one, id: node })}>{one}</a></li>)}</ul></section>;
}
