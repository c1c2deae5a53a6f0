/** The shape of the data at one glance: a box to find a resource, classes and properties with counts, and how classes are connected. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { RDF_TYPE, XSD, type Term } from "../../api/terms";
import { classes, labelPredicates, labels, predicates, prefixes, quickRows, shown, type Named } from "../../api/vocabulary";
import { readLabels } from "../../api/neighbours";
import { mayWrite } from "../../api/session";
import { go, href, linkTo, place } from "../../app/router";
import { useAsked } from "../../ui/asked";
import { Button, Input, Tabs } from "../../ui/controls";
import { Icon } from "../../ui/icons";
import type { Triple } from "../../ui/graph-model";
import { Empty, Fault, Loading } from "../../ui/states";
import { TermView } from "../../ui/term";
import { Bar } from "./kinds";
import { LazyGraph } from "./lazy-graph";
import { iri } from "./resource-data";

const SCHEMA = /^http:\/\/www\.w3\.org\/(1999\/02\/22-rdf-syntax-ns|2000\/01\/rdf-schema|2002\/07\/owl|ns\/shacl)#/;
const CLASSES_DRAWN = 24;
const LABELS_READ = 300_000; // labels that one look for a name reads at most

export function Overview({ isReady }: { isReady: boolean }) {
  const view = place.value.parameters.get("view") === "shape" ? "shape" : "lists";
  return (
    <div class={`page explore${view === "shape" ? " with-graph" : ""}`}>
      <div class="title"><h1>Explore</h1></div>
      <Find />
      {!isReady ? <Loading what="Counting classes and properties" /> : !classes.value.length && !predicates.value.length ? (
        <Empty icon="graph" title="There is nothing to explore yet" actions={mayWrite.value && <a class="button primary" href={href("data")}><Icon name="upload" />Load data</a>}>
          No graph that you may see holds a triple, or counting them took too long. Load data, or ask with a query.
        </Empty>
      ) : <>
        <Tabs label="Views" items={[{ id: "lists", text: "Classes and properties", icon: "table" }, { id: "shape", text: "How they connect", icon: "graph" }]} value={view} onPick={(id) => go("explore", { view: id === "shape" ? "shape" : undefined }, true)} />
        {view === "shape" ? <Shape /> : (
          <div class="overview">
            <List title="Classes" icon="explore" items={classes.value} parameter="class" queryOf={(one) => `SELECT ?instance WHERE {\n  ?instance a ${iri(one)}\n}\nLIMIT 100`} />
            <List title="Properties" icon="right" items={predicates.value} parameter="property" queryOf={(one) => `SELECT ?subject ?object WHERE {\n  ?subject ${iri(one)} ?object\n}\nLIMIT 100`} />
          </div>
        )}
      </>}
    </div>
  );
}

function List(props: { title: string; icon: "explore" | "right"; items: readonly Named[]; parameter: "class" | "property"; queryOf: (iri: string) => string }) {
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  const sought = filter.trim().toLowerCase();
  const found = props.items.filter((one) => !sought || one.iri.toLowerCase().includes(sought) || (labels.value.get(one.iri) ?? "").toLowerCase().includes(sought));
  const most = props.items[0]?.count ?? 1;
  return (
    <section class="card">
      <header><h2>{props.title} <span class="muted small">{props.items.length.toLocaleString("en")}</span></h2>
        {props.items.length > 10 && <Input small class="filter" type="search" placeholder="Filter" aria-label={`Filter ${props.title.toLowerCase()}`} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}
      </header>
      {found.length === 0 ? <p class="body muted">{sought ? "Nothing has this in its name." : `There are no ${props.title.toLowerCase()}.`}</p> : (
        <ul class="bars">{found.slice(0, all ? 2000 : 25).map((one) => {
          const label = labels.value.get(one.iri), short = shown(one.iri);
          return (
            <li key={one.iri}>
              <Bar part={one.count / most} />
              <a class="truncate" href={href("explore", { [props.parameter]: one.iri })} title={one.iri}>{label ?? short}</a>
              {label && label !== short && <span class="muted small truncate tag">{short}</span>}
              <span class="num muted small">{one.count.toLocaleString("en")}</span>
              <a class="button quiet small icon" href={linkTo.query(props.queryOf(one.iri))} title={`Query ${label ?? short}`} aria-label={`Query ${label ?? short}`}><Icon name="query" size={14} /></a>
            </li>
          );
        })}</ul>
      )}
      {found.length > 25 && <div class="pager"><Button size="small" kind="quiet" onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show all ${found.length.toLocaleString("en")}`}</Button></div>}
    </section>
  );
}

/** Classes as nodes, and between them the properties that a sample of their instances has. */
function Shape() {
  const own = useMemo(() => { const data = classes.value.filter((one) => !SCHEMA.test(one.iri)); return (data.length ? data : classes.value).slice(0, CLASSES_DRAWN); }, [classes.value]);
  const read = useAsked(async (signal) => {
    const triples: Triple[] = [];
    for (let from = 0; from < own.length; from += 4) {
      await Promise.all(own.slice(from, from + 4).map(async (one) => {
        const rows = await quickRows(`SELECT DISTINCT ?p ?c WHERE { { SELECT ?s WHERE { { ?s a ${iri(one.iri)} } UNION { GRAPH ?g { ?s a ${iri(one.iri)} } } } LIMIT 100 }
          { ?s ?p ?o . ?o a ?c } UNION { GRAPH ?h { ?s ?p ?o } ?o a ?c } FILTER(?p != <${RDF_TYPE}>) } LIMIT 200`, signal).catch(() => []);
        const self: Term = { type: "uri", value: one.iri };
        triples.push({ subject: self, predicate: { type: "uri", value: "urn:x-graphdb:instances" }, object: { type: "literal", value: String(one.count), datatype: `${XSD}integer` } });
        for (const { p, c } of rows) if (p?.type === "uri" && c?.type === "uri" && !SCHEMA.test(c.value)) triples.push({ subject: self, predicate: p, object: c });
      }));
      signal.throwIfAborted();
    }
    return triples;
  }, [own]);
  return (
    <div class="graph-frame card">{read.error ? <Fault error={read.error} again={read.again} /> : !read.value ? <Loading what="Looking at samples of each class" />
      : <LazyGraph triples={read.value} label="How classes are connected" onOpen={(one) => go("explore", { class: one })} />}</div>
  );
}

function Find() {
  const [text, setText] = useState("");
  const [sought, setSought] = useState("");
  const trimmed = text.trim();
  useEffect(() => { const timer = setTimeout(() => setSought(trimmed), 250); return () => clearTimeout(timer); }, [trimmed]);
  const address = addressOf(trimmed);
  const read = useAsked(async (signal) => {
    if (sought.length < 2 || addressOf(sought)) return [];
    const by = labelPredicates().slice(0, 12).map(iri).join(" ");
    const text = JSON.stringify(sought.toLowerCase().replace(/[\uD800-\uDFFF]/g, ""));
    return quickRows(`SELECT DISTINCT ?s ?l WHERE { { SELECT ?s ?l WHERE { VALUES ?p { ${by} } { ?s ?p ?l } UNION { GRAPH ?g { ?s ?p ?l } } } LIMIT ${LABELS_READ} } FILTER(isIRI(?s) && STRLEN(STR(?l)) < 500 && CONTAINS(LCASE(STR(?l)), ${text})) } LIMIT 12`, signal);
  }, [sought]);
  useEffect(() => { void readLabels((read.value ?? []).flatMap(({ s }) => s?.type === "uri" ? [s.value] : [])); }, [read.value]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const first = read.value?.[0]?.s;
    if (address) go("explore", { iri: address }); else if (first?.type === "uri") go("explore", { iri: first.value });
  };
  return (
    <form class="find" role="search" onSubmit={submit}>
      <div class="find-box"><Icon name="search" /><Input type="search" aria-label="Find a resource by its name or IRI" placeholder="Find a resource: a name, an IRI, prefix:name" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        {read.isLoading && sought.length >= 2 && <span class="spinner" role="status" aria-label="Looking" />}
        <Button kind="primary" type="submit" disabled={!address && !read.value?.length}>Open</Button></div>
      {read.error !== null && <Fault error={read.error} again={read.again} />}
      {!address && sought.length >= 2 && read.value && <ul class="card arrows found">{read.value.length === 0 ? <li class="muted">No name holds “{sought.slice(0, 60)}”.</li>
        : read.value.map(({ s, l }, at) => <li key={at}><TermView term={s} />{l?.type === "literal" && s?.type === "uri" && l.value !== labels.value.get(s.value) && <span class="muted small truncate">{l.value.slice(0, 80)}</span>}</li>)}</ul>}
    </form>
  );
}

/** An IRI that somebody wrote, with or without brackets, or short with a prefix of the data. */
function addressOf(text: string): string | null {
  const bare = text.replace(/^<|>$/g, "");
  if (/^(https?|urn|tag|mailto|file|did|ftp|doi|info):\S+$/i.test(bare)) return bare;
  const found = /^([\w.-]+):(\S+)$/.exec(bare);
  const namespace = found ? prefixes.value.get(found[1]!) : undefined;
  return namespace === undefined ? null : namespace + found![2];
}

