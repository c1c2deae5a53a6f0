/** One hit: its title, what matched, its score, and the ways on from it. And the explanation of a score. */
import { useState } from "preact/hooks";
import { labels } from "../../api/vocabulary";
import { href, linkTo } from "../../app/router";
import { Button } from "../../ui/controls";
import { Icon } from "../../ui/icons";
import { BEGIN, END, type Explanation, type Hit } from "./request";

export const TITLES = ["title", "name", "label", "prefLabel", "headline", "subject"];
const LONG = 240; // characters of one value that a hit shows
const SOURCE_MAX = 100_000; // characters of the whole document

/** Whether the id of a document may be the IRI of a resource. */
export function isResource(id: string): boolean { return /^(https?|urn|tag|mailto|info|doi|file):[^\s<>"{}|^`\\]+$/.test(id); }

/** A text with what matched marked: as text only, whatever it holds. */
function Marked({ text }: { text: string }) {
  return <>{text.slice(0, 4000).split(BEGIN).map((piece, at) => {
    if (at === 0) return piece;
    const [inside, ...after] = piece.split(END);
    return <span key={at}><mark>{inside}</mark>{after.join("")}</span>;
  })}</>;
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.slice(0, 5).map(textOf).join(", ") + (value.length > 5 ? ` and ${value.length - 5} more` : "");
  if (value !== null && typeof value === "object") return textOf((value as { id?: unknown }).id ?? JSON.stringify(value).slice(0, LONG));
  const text = String(value);
  return isResource(text) ? labels.value.get(text) ?? text : text;
}

export function HitView(props: { hit: Hit; max: number | null; isOpen: boolean; onExplain: () => void; onLike?: () => void }) {
  const { hit } = props;
  const [open, setOpen] = useState(props.isOpen);
  const source = hit._source ?? {};
  const isLinked = isResource(hit._id);
  const titled = TITLES.find((name) => source[name] !== undefined);
  const name = titled === undefined ? labels.value.get(hit._id) ?? hit._id : textOf(source[titled]);
  const matched = titled === undefined ? undefined : hit.highlight?.[titled]?.[0];
  const seen = new Set<string>();
  const marked = Object.entries(hit.highlight ?? {}).filter(([field, pieces]) => {
    const own = pieces.join("\n");
    if (field === titled || field.endsWith(".keyword") || seen.has(own)) return false;
    seen.add(own);
    return true;
  });
  const facts = Object.entries(source).filter(([field]) => field !== titled && field !== "id" && !marked.some(([one]) => one === field) && !/@[\w-]+$/.test(field));
  const title = matched ? <Marked text={matched} /> : name.slice(0, 200);
  return (
    <li class="card hit">
      <div class="row nowrap between hit-head">
        <h3 class="truncate">{isLinked ? <a href={linkTo.resource(hit._id)}>{title}</a> : title}</h3>
        {hit._score !== null && <span class="score" title={`score ${hit._score}`}><span class="track"><span style={{ width: `${Math.max(3, 100 * hit._score / (props.max || hit._score || 1))}%` }} /></span><span class="num small">{hit._score.toPrecision(3)}</span></span>}
      </div>
      <div class="row tight small muted hit-id"><span class="badge">{hit._index}</span><code class="truncate">{hit._id}</code></div>
      {marked.length > 0 && <dl class="facts">{marked.slice(0, 4).map(([field, pieces]) => <div key={field}><dt>{field}</dt><dd class="fragments">{pieces.slice(0, 2).map((one, at) => <p key={at}><Marked text={one} /></p>)}</dd></div>)}</dl>}
      {facts.length > 0 && <dl class="facts quiet">{facts.slice(0, marked.length ? 3 : 5).map(([field, value]) => <div key={field}><dt>{field}</dt><dd class="truncate">{textOf(value).slice(0, LONG)}</dd></div>)}</dl>}
      <div class="row tight hit-tools">
        {isLinked && <a class="button quiet small" href={href("explore", { iri: hit._id, view: "graph" })}><Icon name="graph" size={14} />Graph</a>}
        <Button size="small" kind="quiet" icon="chart" onClick={props.onExplain}>Why</Button>
        {props.onLike && <Button size="small" kind="quiet" icon="share" onClick={props.onLike}>Similar</Button>}
        <Button size="small" kind="quiet" icon="raw" aria-expanded={open} onClick={() => setOpen(!open)}>Document</Button>
      </div>
      {open && <pre class="source small" tabIndex={0} aria-label="Document">{sourceText(source)}</pre>}
    </li>
  );
}

function sourceText(source: object): string {
  const text = JSON.stringify(source, (_, value: unknown) => typeof value === "string" && value.length > SOURCE_MAX ? `${value.slice(0, 1000)}… (${value.length} characters)` : value, 2);
  return text.length > SOURCE_MAX ? `${text.slice(0, SOURCE_MAX)}…` : text;
}

/** The tree of a score: each part with its value; what contributes nothing is folded. */
export function Explained({ one, depth = 0 }: { one: Explanation; depth?: number }) {
  const parts = one.details ?? [];
  const line = <><span class="num">{Number(one.value.toPrecision(5))}</span><span>{one.description}</span></>;
  return parts.length === 0 ? <div class="why leaf">{line}</div> : (
    <details class="why" open={depth < 4 && one.value !== 0}><summary><Icon name="right" size={12} />{line}</summary><div class="parts">{parts.map((part, at) => <Explained key={at} one={part} depth={depth + 1} />)}</div></details>
  );
}
