/** The pages of a class and of a property: what its instances have, how it is used, with a sample and a list. */
import { useEffect, useState } from "preact/hooks";
import { anywhere, counted } from "../../api/neighbours";
import type { Row, Term } from "../../api/terms";
import { classes, labels, predicates, quickRows, shown } from "../../api/vocabulary";
import { readLabels } from "../../api/neighbours";
import { go, href, linkTo, place } from "../../app/router";
import { useAsked } from "../../ui/asked";
import { Select, Tabs } from "../../ui/controls";
import { Icon } from "../../ui/icons";
import type { Triple } from "../../ui/graph-model";
import { Empty, Fault, Loading } from "../../ui/states";
import { TermView } from "../../ui/term";
import { LazyGraph } from "./lazy-graph";
import { iri } from "./resource-data";
import { Pager } from "./resource";

const SAMPLE = 500;
const PAGE = 25;
const SIZES = ["50", "200", "1000", "2000"]; // instances that are drawn
const COUNTED_MAX = 10_000;
const number = (term: Term | undefined) => term?.type === "literal" ? Number(term.value) : 0;
const address = (term: Term | undefined) => term?.type === "uri" ? term.value : null;
const nameOf = (one: string) => labels.value.get(one) ?? shown(one);

function Head(props: { node: string; kind: string; count: number | null; isPart: boolean; query: string }) {
  return (
    <>
      <nav class="crumbs small" aria-label="Where this is"><a href={href("explore")}>Explore</a><Icon name="right" size={12} /><span class="muted">{props.kind}</span></nav>
      <header class="resource-head">
        <div class="grow"><h1 class="resource-name">{nameOf(props.node)}</h1><code class="muted truncate block" title={props.node}>{props.node}</code></div>
        {props.count !== null && <div class="figure"><b>{counted(props.count, props.isPart)}</b><span class="muted small">{props.kind === "Class" ? "instances" : "triples"}</span></div>}
        <div class="row tight"><a class="button" href={linkTo.resource(props.node)}>As a resource</a><a class="button" href={linkTo.query(props.query)}><Icon name="query" />Query</a></div>
      </header>
    </>
  );
}

/** How many there are: as the overview counted them, or counted here up to a bound. */
function useCount(node: string, known: readonly { iri: string; count: number }[], pattern: string) {
  const own = known.find((one) => one.iri === node)?.count;
  const read = useAsked(async (signal) => own ?? number((await quickRows(`SELECT (COUNT(*) AS ?n) WHERE { SELECT * WHERE { ${anywhere(pattern)} } LIMIT ${COUNTED_MAX + 1} }`, signal))[0]?.n), [node, own]);
  return { count: read.value, isPart: own === undefined && (read.value ?? 0) > COUNTED_MAX };
}

export function ClassPage({ node }: { node: string }) {
  const view = place.value.parameters.get("view") === "graph" ? "graph" : "list";
  const { count, isPart } = useCount(node, classes.value, `?s a ${iri(node)}`);
  const shape = useAsked((signal) => quickRows(`SELECT ?p (COUNT(DISTINCT ?s) AS ?n) (SAMPLE(?o) AS ?v) WHERE {
    { SELECT DISTINCT ?s WHERE { ${anywhere(`?s a ${iri(node)}`)} } LIMIT ${SAMPLE} } ${anywhere("?s ?p ?o")}
    FILTER(!isLiteral(?o) || STRLEN(STR(?o)) < 1000) } GROUP BY ?p ORDER BY DESC(?n) LIMIT 200`, signal), [node]);
  useEffect(() => { void readLabels([node, ...(shape.value ?? []).flatMap(({ p, v }) => [address(p), address(v)]).filter((one) => one !== null)]); }, [shape.value, node]);
  const sampled = Math.min(SAMPLE, count ?? SAMPLE);
  return (
    <div class={`page explore${view === "graph" ? " with-graph" : ""}`}>
      <Head node={node} kind="Class" count={count} isPart={isPart} query={`SELECT ?instance WHERE {\n  ?instance a ${iri(node)}\n}\nLIMIT 100`} />
      <Tabs label="Views" items={[{ id: "list", text: "Instances", icon: "table" }, { id: "graph", text: "Graph", icon: "graph" }]} value={view}
        onPick={(id) => go("explore", { class: node, view: id === "graph" ? "graph" : undefined }, true)} />
      {view === "graph" ? <ClassGraph node={node} /> : (
        <div class="resource-body even">
          <Instances key={node} node={node} count={count} isPart={isPart} />
          <section class="card grow">
            <header><h2>Properties of its instances</h2>{shape.value && (count ?? 0) > SAMPLE && <span class="muted small">of {SAMPLE} instances</span>}</header>
            {shape.error ? <div class="body"><Fault error={shape.error} again={shape.again} /></div> : !shape.value ? <Loading /> : (
              <ul class="bars">{shape.value.map(({ p, n, v }) => address(p) && (
                <li key={address(p)}>
                  <Bar part={number(n) / Math.max(1, sampled)} />
                  <a class="truncate" href={href("explore", { property: address(p)! })} title={address(p)!}>{nameOf(address(p)!)}</a>
                  <span class="example muted small truncate"><TermView term={v} plain label /></span>
                  <span class="num muted small">{Math.min(100, Math.round(100 * number(n) / Math.max(1, sampled)))} %</span>
                </li>
              ))}</ul>
            )}
          </section>
        </div>
      )}
    </div>
  );
}

/** How much of the whole, behind the row. */
export function Bar({ part }: { part: number }) { return <span class="bar" style={{ width: `${Math.max(0.4, Math.min(100, 100 * part))}%` }} />; }

function Instances({ node, count, isPart }: { node: string; count: number | null; isPart: boolean }) {
  const [page, setPage] = useState(0);
  const read = useAsked((signal) => quickRows(`SELECT DISTINCT ?s WHERE { ${anywhere(`?s a ${iri(node)}`)} } LIMIT ${PAGE} OFFSET ${page * PAGE}`, signal), [node, page]);
  useEffect(() => { void readLabels((read.value ?? []).flatMap(({ s }) => address(s) ?? [])); }, [read.value]);
  return (
    <section class="card grow">
      <header><h2>Instances</h2></header>
      {read.error ? <div class="body"><Fault error={read.error} again={read.again} /></div> : !read.value ? <Loading /> : read.value.length === 0 ? <Empty title="No instances">No resource has this class in a graph that you may see.</Empty> : (
        <ul class="arrows">{read.value.map(({ s }, at) => <li key={at}><TermView term={s} /></li>)}</ul>
      )}
      {(page > 0 || read.value?.length === PAGE) && <Pager page={page} size={PAGE} onPage={setPage} total={count === null ? undefined : counted(count, isPart)} hasNext={read.value?.length === PAGE && (isPart || count === null || (page + 1) * PAGE < count)} />}
    </section>
  );
}

/** Some instances and what is between them and their neighbours. */
function ClassGraph({ node }: { node: string }) {
  const asked = place.value.parameters.get("size") ?? "";
  const size = SIZES.includes(asked) ? asked : SIZES[0]!;
  const read = useAsked(async (signal) => triplesOf(await quickRows(`SELECT ?s ?p ?o WHERE { { SELECT DISTINCT ?s WHERE { ${anywhere(`?s a ${iri(node)}`)} } LIMIT ${size} } ${anywhere("?s ?p ?o")} FILTER(!isLiteral(?o) || STRLEN(STR(?o)) < 300) } LIMIT ${12 * Number(size)}`, signal)), [node, size]);
  return <div class="graph-frame card"><label class="graph-size small"><span class="muted">Instances</span><Select small value={size} options={SIZES} onPick={(one) => go("explore", { class: node, view: "graph", size: one }, true)} /></label>
    {read.error ? <Fault error={read.error} again={read.again} /> : !read.value || read.isLoading ? <Loading what="Reading the instances" /> : <LazyGraph key={node + size} triples={read.value} label={`Instances of ${nameOf(node)}`} onOpen={(one) => go("explore", { iri: one })} />}</div>;
}
export function triplesOf(rows: readonly Row[]): Triple[] { return rows.flatMap(({ s, p, o }) => s && p && o ? [{ subject: s, predicate: p, object: o }] : []); }

export function PropertyPage({ node }: { node: string }) {
  const [page, setPage] = useState(0);
  useEffect(() => setPage(0), [node]);
  const { count, isPart } = useCount(node, predicates.value, `?s ${iri(node)} ?o`);
  const sample = `{ SELECT ?s ?o WHERE { ${anywhere(`?s ${iri(node)} ?o`)} } LIMIT ${SAMPLE} }`;
  const ends = useAsked(async (signal) => {
    const [from, to] = await Promise.all([
      quickRows(`SELECT ?c (COUNT(*) AS ?n) WHERE { ${sample} ${anywhere("?s a ?c")} } GROUP BY ?c ORDER BY DESC(?n) LIMIT 12`, signal),
      quickRows(`SELECT ?c (COUNT(*) AS ?n) WHERE { ${sample} OPTIONAL { ?o a ?own } BIND(IF(isLiteral(?o), DATATYPE(?o), ?own) AS ?c) } GROUP BY ?c ORDER BY DESC(?n) LIMIT 12`, signal),
    ]);
    return { from, to };
  }, [node]);
  const read = useAsked((signal) => quickRows(`SELECT ?s (IF(isLiteral(?o) && STRLEN(STR(?o)) > 300, SUBSTR(STR(?o), 1, 300), ?o) AS ?v) WHERE { ${anywhere(`?s ${iri(node)} ?o`)} } LIMIT ${PAGE} OFFSET ${page * PAGE}`, signal), [node, page]);
  useEffect(() => { void readLabels([node, ...[...(read.value ?? []), ...(ends.value?.from ?? []), ...(ends.value?.to ?? [])].flatMap(({ s, v, c }) => [address(s), address(v), address(c)]).filter((one) => one !== null)]); }, [read.value, ends.value, node]);
  return (
    <div class="page explore">
      <Head node={node} kind="Property" count={count} isPart={isPart} query={`SELECT ?subject ?object WHERE {\n  ?subject ${iri(node)} ?object\n}\nLIMIT 100`} />
      <div class="columns">
        <Ends title="It begins at" rows={ends.value?.from} none="Its subjects have no class." />
        <Ends title="It leads to" rows={ends.value?.to} none="Its objects have no class." />
      </div>
      <section class="card">
        <header><h2>Where it is used</h2></header>
        {read.error ? <div class="body"><Fault error={read.error} again={read.again} /></div> : !read.value ? <Loading /> : read.value.length === 0 ? <Empty title="It is not used">No triple with this property is in a graph that you may see.</Empty> : (
          <div class="table-wrap"><table class="table"><thead><tr><th>Subject</th><th>Value</th></tr></thead><tbody>
            {read.value.map(({ s, v }, at) => <tr key={at}><td><TermView term={s} /></td><td><TermView term={v} /></td></tr>)}
          </tbody></table></div>
        )}
        {(page > 0 || read.value?.length === PAGE) && <Pager page={page} size={PAGE} onPage={setPage} total={count === null ? undefined : counted(count, isPart)} hasNext={read.value?.length === PAGE} />}
      </section>
    </div>
  );
}

function Ends({ title, rows, none }: { title: string; rows: Row[] | undefined; none: string }) {
  const total = Math.max(1, ...(rows ?? []).map(({ n }) => number(n)));
  const named = (rows ?? []).filter(({ c }) => c?.type === "uri");
  return (
    <section class="card"><header><h2>{title}</h2><span class="muted small">of a sample of {SAMPLE}</span></header>
      {!rows ? <Loading /> : named.length === 0 ? <p class="body muted">{none}</p> : <ul class="bars">{named.map(({ c, n }) => {
        const isDatatype = /XMLSchema#|#langString$|geosparql#(wkt|geoJSON)Literal$/.test(address(c)!);
        return <li key={address(c)}><Bar part={number(n) / total} />{isDatatype ? <span class="truncate">{shown(address(c)!)}</span> : <a class="truncate" href={href("explore", { class: address(c)! })}>{nameOf(address(c)!)}</a>}<span class="num muted small">{number(n).toLocaleString("en")}</span></li>;
      })}</ul>}
    </section>
  );
}
