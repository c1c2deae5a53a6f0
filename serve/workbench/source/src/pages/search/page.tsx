/** Search over port 9200: one box, facets, highlighted hits, vectors where there are some, why a hit has its score, and the request itself. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { config, mayWrite } from "../../api/session";
import { search, searchAddress } from "../../api/service";
import { classes, labels, loadVocabulary, shown } from "../../api/vocabulary";
import { readLabels } from "../../api/neighbours";
import { go, place } from "../../app/router";
import { useAsked } from "../../ui/asked";
import { Button, Check, Field, Input, Select, Tabs } from "../../ui/controls";
import { Dialog, toast } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Empty, Fault, Loading, Notice } from "../../ui/states";
import { Explained, HitView, isResource } from "./hit";
import { bodyOf, curlOf, fieldsOf, PAGE, type Answer, type Fields, type Filters, type Hit, type Mode, type Ranges, type Wanted } from "./request";

const HITS_MAX = 10_000; // that can be paged to
const NONE: Fields = { facets: [], ranges: [], vectors: [] };

interface Named { index: string; "docs.count": string | null }
interface Chosen { mode: Mode; every: boolean; filters: Filters; ranges: Ranges; like: { index: string; id: string } | null; field: string; pasted: string }

/** What is chosen stands in the address, so a search can be shared and gone back to. */
function read(parameters: URLSearchParams) {
  const parse = <T,>(name: string, otherwise: T): T => { try { return JSON.parse(parameters.get(name) ?? "") as T; } catch { return otherwise; } };
  return {
    index: parameters.get("index") ?? "*", text: parameters.get("q") ?? "", id: parameters.get("id"), page: Number(parameters.get("page")) || 0,
    mode: (["vector", "hybrid"].includes(parameters.get("mode") ?? "") ? parameters.get("mode") : "text") as Mode, every: parameters.get("every") === "1",
    filters: parse<Filters>("f", {}), ranges: parse<Ranges>("r", {}), like: parse<Chosen["like"]>("like", null), field: parameters.get("field") ?? "", pasted: parameters.get("v") ?? "",
  };
}
type Asked = ReturnType<typeof read>;
function show(asked: Asked, replace = false) {
  const text = (value: object) => Object.keys(value).length ? JSON.stringify(value) : undefined;
  go("search", {
    index: asked.index === "*" ? undefined : asked.index, q: asked.text || undefined, id: asked.id ?? undefined, page: asked.page ? String(asked.page) : undefined, mode: asked.mode === "text" ? undefined : asked.mode,
    every: asked.every ? "1" : undefined, f: text(asked.filters), r: text(asked.ranges), like: asked.like ? JSON.stringify(asked.like) : undefined, field: asked.field || undefined, v: asked.pasted || undefined,
  }, replace);
}

export default function SearchPage() {
  const indexes = useAsked(async (signal) => searchAddress() === null ? [] : (await search<Named[]>("/_cat/indices?format=json&h=index,docs.count", { signal })).filter((one) => !one.index.startsWith(".")), []);
  const [isMaking, setMaking] = useState(false);
  const title = <div class="title"><h1>Search</h1>{mayWrite.value && !!indexes.value?.length && <Button icon="plus" onClick={() => setMaking(true)}>New index</Button>}</div>;
  if (searchAddress() === null) return <div class="page">{title}<Empty icon="search" title="Search is switched off">Set <code>[search] enabled = true</code> in the configuration and restart the service. Then documents can be stored and found on port 9200, and an index can follow the graph.</Empty></div>;
  return (
    <div class="page search">
      {title}
      {indexes.error ? <><Fault error={indexes.error} again={indexes.again} /><p class="muted small">Search is on {searchAddress()}: this browser must reach it too.</p></> : !indexes.value ? <Loading what="Reading the indexes" />
        : indexes.value.length === 0 ? <Empty icon="search" title="There is no index yet" actions={mayWrite.value && <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>Make an index of a class</Button>}>An index can follow the graph: each resource of a class becomes a document, and stays up to date. Or store documents with any client of Elasticsearch.</Empty>
          : <Searching indexes={indexes.value} />}
      {isMaking && <NewIndex onClose={() => setMaking(false)} onMade={(name) => { setMaking(false); indexes.again(); show({ ...read(new URLSearchParams()), index: name }); }} />}
    </div>
  );
}

function Searching({ indexes }: { indexes: Named[] }) {
  const asked = read(place.value.parameters);
  const [text, setText] = useState(asked.text);
  useEffect(() => setText(asked.text), [asked.text]);
  const path = `/${encodeURIComponent(asked.index).replaceAll("%2C", ",").replaceAll("*", "*")}`;
  const caps = useAsked((signal) => search<Parameters<typeof fieldsOf>[0]>(`${path}/_field_caps?fields=*&ignore_unavailable=true`, { signal }), [asked.index]);
  const fields = useMemo(() => caps.value ? fieldsOf(caps.value) : NONE, [caps.value]);
  const field = fields.vectors.includes(asked.field) ? asked.field : fields.vectors[0] ?? "";
  const vector = useAsked(async (signal) => {
    if (asked.mode === "text" || !field) return null;
    if (asked.pasted) {
      const values = JSON.parse(asked.pasted) as unknown;
      if (!Array.isArray(values) || !values.every((one) => typeof one === "number")) throw new Error("A vector is a list of numbers, such as [0.1, -0.4, 0.9].");
      return { field, values: values as number[] };
    }
    if (!asked.like) return null;
    const found = await search<{ _source?: Record<string, unknown> }>(`/${encodeURIComponent(asked.like.index)}/_doc/${encodeURIComponent(asked.like.id)}?_source_includes=${encodeURIComponent(field)}`, { signal });
    const values = field.split(".").reduce<unknown>((held, name) => (held as Record<string, unknown> | undefined)?.[name], found._source) ?? found._source?.[field];
    if (!Array.isArray(values)) throw new Error(`The document has no vector in “${field}”.`);
    return { field, values: values as number[] };
  }, [asked.mode, field, JSON.stringify(asked.like), asked.pasted]);
  const key = place.value.parameters.toString();
  const wanted: Wanted = { ...asked, vector: vector.value };
  const body = useMemo(() => bodyOf(wanted, fields), [key, fields, vector.value]);
  const needsVector = asked.mode !== "text" && !vector.value;
  const answer = useAsked(async (signal) => caps.value === null || needsVector ? null : search<Answer>(`${path}/_search`, { json: body, signal }), [path, body, needsVector, caps.value]);
  const hits = answer.value?.hits.hits ?? [];
  useEffect(() => {
    const buckets = Object.values(answer.value?.aggregations ?? {}).flatMap((one) => one.found?.buckets ?? []).map((one) => String(one.key)).filter(isResource);
    void readLabels([...hits.flatMap((one) => [one._id, ...Object.values(one._source ?? {}).flat()]).filter((one): one is string => typeof one === "string" && one.length < 500 && isResource(one)), ...buckets]);
  }, [answer.value]);
  const change = (part: Partial<Asked>, replace = false) => show({ ...asked, page: 0, ...part }, replace);
  const isFiltered = Object.values(asked.filters).some((one) => one.length) || Object.values(asked.ranges).some((one) => one.from || one.to) || asked.id !== null;
  const total = answer.value?.hits.total;
  const failed = answer.value?._shards.failures?.[0]?.reason?.reason;
  return (
    <>
      <form class="search-box" role="search" onSubmit={(event) => { event.preventDefault(); change({ text, id: null }); }}>
        <Select aria-label="Index" value={asked.index} onPick={(index) => show({ ...asked, index, page: 0, filters: {}, ranges: {}, id: null, like: null, field: "" })}
          options={[["*", "All indexes"], ...indexes.map((one) => [one.index, `${one.index} (${Number(one["docs.count"] ?? 0).toLocaleString("en")})`] as const), ...(asked.index !== "*" && !indexes.some((one) => one.index === asked.index) ? [[asked.index, asked.index] as const] : [])]} />
        <div class="find-box grow"><Icon name="search" /><Input type="search" aria-label="Search for" placeholder='Words, "a phrase", -without, pref*' value={text} onInput={(event) => setText(event.currentTarget.value)} /></div>
        <Button kind="primary" type="submit">Search</Button>
      </form>
      <div class="row search-options">
        {fields.vectors.length > 0 && <Tabs label="How to rank" look="segments" value={asked.mode} onPick={(mode) => change({ mode: mode as Mode })} items={[{ id: "text", text: "BM25" }, { id: "vector", text: "Vector" }, { id: "hybrid", text: "Hybrid" }]} />}
        {asked.mode !== "vector" && <Check checked={asked.every} onChange={(every) => change({ every })}>Every word</Check>}
        {asked.like && asked.mode !== "text" && <span class="badge accent">Like {labels.value.get(asked.like.id) ?? shown(asked.like.id)}<button type="button" class="badge-close" aria-label="Not like this document" onClick={() => change({ like: null })}><Icon name="close" size={12} /></button></span>}
        {asked.id !== null && <span class="badge accent">Only {labels.value.get(asked.id) ?? shown(asked.id)}<button type="button" class="badge-close" aria-label="All documents" onClick={() => change({ id: null })}><Icon name="close" size={12} /></button></span>}
      </div>
      {asked.mode !== "text" && <VectorChoice key={asked.pasted} fields={fields.vectors} field={field} pasted={asked.pasted} isLike={asked.like !== null} onPick={(part) => change(part)} error={vector.error} />}
      <div class="search-body">
        <Facets fields={fields} asked={asked} answer={answer.value} change={change} />
        <div class="grow stack">
          <div class="row between results-head">
            <span class="muted" role="status">{answer.isLoading || caps.isLoading ? "Searching …" : total ? `${total.value.toLocaleString("en")}${total.relation === "gte" ? "+" : ""} ${total.value === 1 ? "hit" : "hits"} in ${answer.value!.took} ms` : ""}</span>
            {isFiltered && <Button size="small" kind="quiet" icon="close" onClick={() => change({ filters: {}, ranges: {}, id: null })}>Clear filters</Button>}
          </div>
          {failed && <Notice kind="warn">A part of the indexes could not answer: {failed}</Notice>}
          {caps.error || answer.error ? <Fault error={caps.error ?? answer.error} again={() => { caps.again(); answer.again(); }} />
            : needsVector && !vector.isLoading ? (vector.error ? null : <Empty icon="search" title="Like what?">Choose “Similar” at a hit of a text search, or paste a vector above.</Empty>)
              : answer.value === null ? <Loading what="Searching" />
                : hits.length === 0 ? <Empty icon="search" title="Nothing was found" actions={<>{asked.every && <Button onClick={() => change({ every: false })}>Any of the words</Button>}{isFiltered && <Button onClick={() => change({ filters: {}, ranges: {}, id: null })}>Clear filters</Button>}{asked.index !== "*" && <Button onClick={() => change({ index: "*", filters: {}, ranges: {} })}>All indexes</Button>}</>}>{asked.text ? "No document holds these words. Try fewer, or the beginning of one with *." : "The index is empty."}</Empty>
                  : <Hits hits={hits} max={answer.value.hits.max_score} path={path} body={body} vectors={fields.vectors} opened={asked.id} onLike={(hit) => change({ mode: asked.mode === "text" ? "vector" : asked.mode, like: { index: hit._index, id: hit._id }, pasted: "", id: null })} />}
          {total && total.value > PAGE && (
            <nav class="pager bare" aria-label="Pages of hits">
              <Button size="small" icon="left" title="Previous page" disabled={asked.page === 0} onClick={() => change({ page: asked.page - 1 })} />
              <span class="small muted">{(asked.page * PAGE + 1).toLocaleString("en")}–{Math.min(total.value, (asked.page + 1) * PAGE).toLocaleString("en")}</span>
              <Button size="small" icon="right" title="Next page" disabled={(asked.page + 1) * PAGE >= Math.min(total.value, HITS_MAX)} onClick={() => change({ page: asked.page + 1 })} />
            </nav>
          )}
          <Request path={path} body={body} />
        </div>
      </div>
    </>
  );
}

function Hits(props: { hits: Hit[]; max: number | null; path: string; body: Record<string, unknown>; vectors: string[]; opened: string | null; onLike: (hit: Hit) => void }) {
  const [explained, setExplained] = useState<{ hit: Hit; error: unknown } | null>(null);
  useEffect(() => setExplained(null), [props.body]);
  const explain = async (hit: Hit) => {
    // The same search once more, with the reasons: right for text, vectors and their fusion alike.
    const { aggs: _, highlight: __, ...rest } = props.body;
    try {
      const answer = await search<Answer>(`${props.path}/_search`, { json: { ...rest, explain: true } });
      const found = answer.hits.hits.find((one) => one._id === hit._id && one._index === hit._index);
      setExplained(found?._explanation ? { hit: found, error: null } : { hit, error: new Error("The document is no longer among these hits. Search again.") });
    } catch (error) { setExplained({ hit, error }); }
  };
  return (
    <>
      <ol class="hits">{props.hits.map((hit) => <HitView key={`${hit._index}\n${hit._id}`} hit={hit} max={props.max} isOpen={props.opened === hit._id} onExplain={() => void explain(hit)} onLike={props.vectors.length ? () => props.onLike(hit) : undefined} />)}</ol>
      {explained && <Dialog wide title="Why this score" onClose={() => setExplained(null)}>{explained.error ? <Fault error={explained.error} /> : <Explained one={explained.hit._explanation!} />}</Dialog>}
    </>
  );
}

function Facets({ fields, asked, answer, change }: { fields: Fields; asked: Asked; answer: Answer | null; change: (part: Partial<Asked>) => void }) {
  const [open, setOpen] = useState(false);
  const groups = fields.facets.flatMap((name) => {
    const found = answer?.aggregations?.[name]?.found;
    const chosen = asked.filters[name] ?? [];
    const buckets = found?.buckets ?? [];
    // Values that differ in every document divide nothing.
    const isUseless = !chosen.length && (buckets.length < 2 || buckets.every((one) => one.doc_count === 1));
    return isUseless ? [] : [{ name, buckets, chosen, rest: found?.sum_other_doc_count ?? 0 }];
  });
  if (!groups.length && !fields.ranges.length) return null;
  const toggle = (name: string, value: string) => {
    const before = asked.filters[name] ?? [];
    const values = before.includes(value) ? before.filter((one) => one !== value) : [...before, value];
    const { [name]: _, ...others } = asked.filters;
    change({ filters: values.length ? { ...others, [name]: values } : others });
  };
  return (
    <aside class={`facets${open ? " open" : ""}`} aria-label="Filters">
      <Button class="facets-toggle" icon="filter" aria-expanded={open} onClick={() => setOpen(!open)}>Filters</Button>
      <div class="facet-list">
        {groups.map(({ name, buckets, chosen, rest }) => (
          <fieldset key={name} class="legend">
            <legend title={name}>{name.replace(/\.keyword$/, "")}</legend>
            {[...buckets.map((one) => ({ value: one.key_as_string ?? String(one.key), count: one.doc_count })), ...chosen.filter((value) => !buckets.some((one) => (one.key_as_string ?? String(one.key)) === value)).map((value) => ({ value, count: 0 }))].map(({ value, count }) => (
              <label key={value} class="check" title={value.slice(0, 500)}>
                <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(name, value)} />
                <span class="truncate grow">{isResource(value) ? labels.value.get(value) ?? shown(value) : value.slice(0, 80) || "(empty)"}</span><span class="muted small num">{count.toLocaleString("en")}</span>
              </label>
            ))}
            {rest > 0 && <span class="small muted rest">{rest.toLocaleString("en")} with other values</span>}
          </fieldset>
        ))}
        {fields.ranges.map(({ name, type }) => {
          const { min, max } = answer?.aggregations?.[`${name} (range)`] ?? {};
          const now = asked.ranges[name] ?? {};
          const isDate = type.startsWith("date");
          const hint = (value: number | undefined) => value === undefined || !Number.isFinite(value) ? "" : isDate ? new Date(value).toISOString().slice(0, 10) : String(Math.round(value * 100) / 100);
          const set = (part: { from?: string; to?: string }) => {
            const made = { ...now, ...part };
            const { [name]: _, ...others } = asked.ranges;
            change({ ranges: made.from || made.to ? { ...others, [name]: made } : others });
          };
          return (
            <fieldset key={name} class="legend"><legend>{name}</legend>
              <div class="row nowrap tight">
                <Input small type={isDate ? "date" : "number"} step="any" aria-label={`${name} from`} placeholder={hint(min)} value={now.from ?? ""} onChange={(event) => set({ from: event.currentTarget.value })} />
                <span class="muted">–</span>
                <Input small type={isDate ? "date" : "number"} step="any" aria-label={`${name} to`} placeholder={hint(max)} value={now.to ?? ""} onChange={(event) => set({ to: event.currentTarget.value })} />
              </div>
            </fieldset>
          );
        })}
      </div>
    </aside>
  );
}

function VectorChoice(props: { fields: string[]; field: string; pasted: string; isLike: boolean; error: unknown; onPick: (part: Partial<Asked>) => void }) {
  const [text, setText] = useState(props.pasted);
  return (
    <form class="card vector-choice" onSubmit={(event) => { event.preventDefault(); props.onPick({ pasted: text.trim(), like: null }); }}>
      {props.fields.length > 1 && <Field label="Field">{(id) => <Select id={id} value={props.field} options={props.fields} onPick={(field) => props.onPick({ field })} />}</Field>}
      <Field label="Vector" hint={props.isLike ? "That of the chosen document. A pasted one replaces it." : "A list of numbers of the field's dimension; or choose “Similar” at a hit."} fault={props.error ? (props.error instanceof SyntaxError ? "A vector is a list of numbers, such as [0.1, -0.4, 0.9]." : (props.error as Error).message) : undefined}>
        {(id) => <div class="row nowrap"><Input id={id} class="mono" placeholder="[0.1, -0.4, 0.9]" aria-invalid={props.error !== null} value={text} onInput={(event) => setText(event.currentTarget.value)} /><Button type="submit" disabled={!text.trim()}>Use</Button></div>}
      </Field>
    </form>
  );
}

function Request({ path, body }: { path: string; body: Record<string, unknown> }) {
  const [form, setForm] = useState<"json" | "curl">("json");
  const text = form === "json" ? `POST ${path}/_search\n${JSON.stringify(body, null, 2)}` : curlOf(searchAddress()!, `${path}/_search`, body, config.value?.authentication.required ?? false);
  return (
    <details class="card request">
      <summary>The request</summary>
      <div class="row between"><Tabs label="Form of the request" look="segments" value={form} onPick={(id) => setForm(id as "json" | "curl")} items={[{ id: "json", text: "JSON" }, { id: "curl", text: "curl" }]} />
        <Button size="small" icon="copy" onClick={() => void navigator.clipboard.writeText(form === "json" ? JSON.stringify(body, null, 2) : text).then(() => toast("Copied"), () => toast("The browser does not permit copying here.", "bad"))}>Copy</Button></div>
      <pre class="small" tabIndex={0} aria-label="Request">{text}</pre>
    </details>
  );
}

function NewIndex({ onClose, onMade }: { onClose: () => void; onMade: (name: string) => void }) {
  const [shape, setShape] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => { void loadVocabulary(); }, []);
  const pick = (iri: string) => { setShape(iri); setName((shown(iri).split(/[:/#]/).pop() ?? "").toLowerCase().replace(/[^a-z0-9_-]/g, "").replace(/^[-_]+/, "")); };
  const make = async () => {
    setBusy(true);
    setError(null);
    try { await search(`/${encodeURIComponent(name)}`, { method: "PUT", json: { settings: { graph: { shape } } } }); toast("The index is being built."); onMade(name); }
    catch (failure) { setError(failure); setBusy(false); }
  };
  return (
    <Dialog title="New index that follows the graph" onClose={onClose} onSubmit={() => void make()} foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit" disabled={busy || !shape || !name}>{busy ? "Making …" : "Make"}</Button></>}>
      <Field label="Class" hint="Each of its resources in the default graph becomes a document, with its properties as fields.">
        {(id) => <Select id={id} value={shape} onPick={pick} options={[["", "Choose a class"], ...classes.value.slice(0, 200).map((one) => [one.iri, `${labels.value.get(one.iri) ?? shown(one.iri)} (${one.count.toLocaleString("en")})`] as const)]} />}
      </Field>
      <Field label="Name" hint="Lower case letters, digits, - and _.">{(id) => <Input id={id} required pattern="[a-z0-9][a-z0-9_.\-]*" value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
      {error !== null && <Fault error={error} />}
    </Dialog>
  );
}

