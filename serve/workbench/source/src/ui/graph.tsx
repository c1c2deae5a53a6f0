/**
 * `GraphView`: triples as a graph to look at and to walk through. Load it lazily.
 *
 * Literals are the values of their nodes and types their colour; neither is a node. Further triples may be given at any time:
 * what is drawn stays where it is. A click selects a node and offers its predicates with counts; a double click expands it.
 */
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted, countNeighbours, neighbours, typesOf, type Counted, type Direction } from "../api/neighbours";
import { RDF_TYPE, type Term } from "../api/terms";
import { labels, localName, shown } from "../api/vocabulary";
import { readLabels } from "../api/neighbours";
import { theme } from "../app/theme";
import { linkTo } from "../app/router";
import { Button, Input } from "./controls";
import { toast } from "./dialog";
import { Drawing, type Line, type Spot } from "./graph-drawing";
import { GraphModel, keyOf, type Edge, type Node, type Triple } from "./graph-model";
import { Layout } from "./graph-layout";
import { Icon } from "./icons";
import { Empty } from "./states";
import { TermView } from "./term";

export type { Triple } from "./graph-model";

const PAGE = 25; // resources that one expansion brings in
const NODES_MAX = 5000;
const SERIES = 7;

interface Props {
  triples: readonly Triple[];
  /** A resource that is there from the beginning, selected, even if no triple names it. */
  start?: string;
  /** What opening a resource does; its page in Explore if absent. */
  onOpen?: (iri: string) => void;
  label?: string;
}

function nameOf(term: Term): string {
  switch (term.type) {
    case "uri": return labels.value.get(term.value) ?? shown(term.value);
    case "bnode": return `_:${term.value.slice(0, 6)}`;
    case "literal": return term.value.slice(0, 60);
    default: return "triple";
  }
}
const plural = (count: number, what: string) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const short = (text: string, most = 28) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

export default function GraphView({ triples, start, onOpen, label = "Graph" }: Props) {
  const stage = useRef<HTMLDivElement>(null);
  const drawn = useRef<{ drawing: Drawing; layout: Layout } | null>(null);
  const model = useMemo(() => new GraphModel(), []);
  const keys = useId();
  const [version, setVersion] = useState(0);
  const [selected, setSelected] = useState<string | null>(null);
  const [hiddenClasses, setHiddenClasses] = useState<ReadonlySet<string>>(new Set());
  const [hiddenPredicates, setHiddenPredicates] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const [panel, setPanel] = useState<"legend" | null>("legend");
  const aborting = useMemo(() => new AbortController(), []);
  const open = onOpen ?? ((iri: string) => { location.hash = linkTo.resource(iri); });
  const changed = () => setVersion((before) => before + 1);

  // What is given
  useEffect(() => {
    if (start !== undefined) { model.begin({ type: "uri", value: start }); setSelected((before) => before ?? start); }
    const before = model.nodes.size;
    model.add(triples.slice(0, NODES_MAX * 4));
    describe([...model.nodes.keys()].slice(start !== undefined ? 0 : before));
    changed();
  }, [triples, start]);

  /** Labels and classes of nodes that have come in. */
  function describe(keys: readonly string[]) {
    const iris = keys.filter((key) => model.nodes.get(key)?.term.type === "uri");
    if (!iris.length) return;
    const names = [...new Set([...iris, ...[...model.edges.values()].map((edge) => edge.predicate)])];
    void (async () => { for (let from = 0; from < names.length; from += 1000) await readLabels(names.slice(from, from + 1000)); })().then(changed);
    typesOf(iris.filter((key) => model.nodes.get(key)!.classes.size === 0).slice(0, 2000), aborting.signal).then((found) => {
      for (const [node, type] of found) model.nodes.get(node)?.classes.add(type);
      changed();
    }, () => {}); // without them, nodes have one colour
  }
  useEffect(() => () => aborting.abort(), []);

  const counts = useMemo(() => model.counts(), [version]);
  const colours = useMemo(() => new Map(counts.classes.slice(0, SERIES).map(([iri], at) => [iri, at + 1])), [counts]);
  const colourOf = (node: Node) => Math.max(0, ...[...node.classes].map((iri) => colours.get(iri) ?? 0)) || SERIES + 1; // of its rarest class
  const visible = useMemo(() => {
    const isHidden = (node: Node) => node.classes.size > 0 && [...node.classes].every((one) => hiddenClasses.has(one));
    const nodes = [...model.nodes.values()].filter((node) => !isHidden(node));
    const keys = new Set(nodes.map((node) => node.key));
    const edges = [...model.edges.values()].filter((edge) => keys.has(edge.source) && keys.has(edge.target) && !hiddenPredicates.has(edge.predicate));
    return { nodes, edges };
  }, [version, hiddenClasses, hiddenPredicates]);

  // The canvas
  useLayoutEffect(() => {
    const layout = new Layout((isDone) => {
      if (layout.isWhole && !drawing.isTouched) drawing.fit();
      drawing.moved(isDone);
      if (!isDone) return;
      setBusy(false);
      drawing.keepInView();
    });
    const drawing = new Drawing(stage.current!, {
      pick: setSelected, expand: (key) => void expandAll(key),
      drag: (key, x, y, isEnd) => {
        layout.move(key, x, y);
        const node = model.nodes.get(key);
        if (isEnd && node) { node.pinned = true; changed(); }
      },
    }, {
      node: (key) => { const node = model.nodes.get(key); return node ? short(nameOf(node.term)) : ""; },
      edge: (predicate) => short(labels.value.get(predicate) ?? localName(predicate), 24),
    });
    drawn.current = { drawing, layout };
    (stage.current! as HTMLElement & { places?: Layout["places"] }).places = layout.places; // for whoever tests where nodes lie
    return () => { layout.stop(); drawing.close(); drawn.current = null; };
  }, []);
  useEffect(() => drawn.current?.drawing.restyle(), [theme.value]);
  useEffect(() => drawn.current?.drawing.redraw(), [labels.value]);
  useEffect(() => drawn.current?.drawing.choose(selected), [selected]);

  // What is drawn follows the model: nodes come and go, places are kept.
  useLayoutEffect(() => {
    const { drawing, layout } = drawn.current!;
    const own = visible.nodes.map((node) => node.key);
    if (layout.arrange(own, visible.edges, pinnedOf(visible.nodes), false)) setBusy(true);
    const spots = spotsOf(visible.nodes, visible.edges, layout, colourOf);
    drawing.show([...spots.values()], linesOf(visible.edges, spots));
    if (layout.isWhole && !drawing.isTouched) drawing.fit();
  }, [visible, colours]);

  const fit = () => drawn.current?.drawing.fit(true);
  const zoom = (by: number) => drawn.current?.drawing.zoom(by);

  function arrangeAgain() {
    const { drawing, layout } = drawn.current!;
    drawing.isTouched = false;
    if (layout.arrange(visible.nodes.map((node) => node.key), visible.edges, pinnedOf(visible.nodes), true)) setBusy(true);
  }

  async function expand(key: string, predicate: string, direction: Direction, offset = 0) {
    if (model.nodes.size >= NODES_MAX) { toast(`The graph has ${NODES_MAX.toLocaleString("en")} nodes. Collapse or hide some first.`, "info"); return; }
    const found = await neighbours(key, predicate, direction, PAGE, offset, aborting.signal);
    const self: Term = { type: "uri", value: key }, by: Term = { type: "uri", value: predicate };
    const made = model.add(found.map((other) => direction === "out" ? { subject: self, predicate: by, object: other } : { subject: other, predicate: by, object: self }), key);
    describe(made);
    changed();
  }
  async function expandAll(key: string) {
    if (model.nodes.get(key)?.term.type !== "uri") return;
    setBusy(true);
    try {
      const found = (await Promise.all([countNeighbours(key, "out", aborting.signal), countNeighbours(key, "in", aborting.signal)])).flat();
      for (const { predicate, direction } of found.slice(0, 12)) await expand(key, predicate, direction);
    } catch (error) { if (!aborting.signal.aborted) toast(String((error as Error).message), "bad"); } finally { setBusy(false); }
  }
  function togglePin(key: string) { const node = model.nodes.get(key); if (node) { node.pinned = !node.pinned; changed(); } }
  function collapse(key: string) { model.collapse(key); changed(); }
  function hide(key: string) { model.remove(key); setSelected(null); changed(); }

  /** The next node in the direction of an arrow key: near, and not far to the side. */
  function step(dx: number, dy: number) {
    const { places } = drawn.current!.layout;
    const from = selected === null ? undefined : places.get(selected);
    let best: string | null = null;
    let least = Infinity;
    for (const { key } of visible.nodes) {
      if (key === selected) continue;
      const at = places.get(key);
      if (!at) continue;
      const along = from ? (at.x - from.x) * dx + (at.y - from.y) * dy : 0;
      const aside = from ? Math.abs((at.x - from.x) * dy) + Math.abs((at.y - from.y) * dx) : Math.hypot(at.x, at.y);
      if (from && along <= 0) continue;
      const cost = along + 2 * aside;
      if (cost < least) { least = cost; best = key; }
    }
    if (best !== null) choose(best);
  }
  function choose(key: string) {
    setSelected(key);
    const { drawing, layout } = drawn.current!, place = layout.places.get(key);
    if (place) drawing.reveal(place);
  }
  function onKey(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const term = selected === null ? undefined : model.nodes.get(selected)?.term;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), f: fit, Escape: () => setSelected(null),
    };
    if (selected !== null) Object.assign(actions, {
      Enter: () => void expandAll(selected), p: () => togglePin(selected), c: () => collapse(selected), Delete: () => hide(selected),
      o: () => { if (term?.type === "uri") open(term.value); },
    });
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  }

  const chosen = selected === null ? undefined : model.nodes.get(selected);
  const toggled = (set: ReadonlySet<string>, one: string) => { const made = new Set(set); if (!made.delete(one)) made.add(one); return made; };
  return (
    <div class="graph">
      <div class="graph-bar">
        <Finder nodes={visible.nodes} onPick={choose} />
        <span class="muted small counts" role="status">{busy ? "Arranging …" : `${plural(visible.nodes.length, "node")}, ${plural(visible.edges.length, "edge")}`}</span>
        <span class="row tight nowrap">
          <Button kind="quiet" size="small" icon="plus" title="Zoom in (+)" onClick={() => zoom(1.25)} />
          <Button kind="quiet" size="small" icon="minus" title="Zoom out (-)" onClick={() => zoom(0.8)} />
          <Button kind="quiet" size="small" icon="fit" title="Show everything (f)" onClick={fit} />
          <Button kind="quiet" size="small" icon="refresh" title="Arrange again; pinned nodes stay" onClick={arrangeAgain} />
          <Button kind="quiet" size="small" icon="filter" title="Classes and predicates" pressed={panel === "legend"} onClick={() => setPanel(panel === "legend" ? null : "legend")} />
        </span>
      </div>
      <div class="graph-body">
        <div class="graph-stage">
          <div ref={stage} class="graph-canvas" tabIndex={0} role="application" aria-label={label} aria-describedby={keys} onKeyDown={onKey} />
          <p id={keys} class="visually-hidden">Arrows go from node to node, Enter expands, C collapses, P pins, O opens the page, Delete hides, plus and minus zoom, F shows everything.</p>
          <p class="visually-hidden" role="status">{chosen ? `${nameOf(chosen.term)} selected` : ""}</p>
          {visible.nodes.length === 0 && <div class="graph-empty"><Empty icon="graph" title={model.nodes.size ? "Everything is hidden" : "Nothing to draw"}>{model.nodes.size ? "Show a class or a predicate again." : "There are no triples between resources here."}</Empty></div>}
        </div>
        {(chosen || panel) && (
          <aside class="graph-side" aria-label={chosen ? "Selected node" : "Classes and predicates"}>
            {chosen ? (
              <Inspector key={chosen.key} node={chosen} model={model} version={version} open={open} onExpand={expand} onPin={() => togglePin(chosen.key)}
                onCollapse={() => collapse(chosen.key)} onHide={() => hide(chosen.key)} onClose={() => setSelected(null)} />
            ) : (
              <>
                <Legend title="Classes" items={counts.classes} hidden={hiddenClasses} onToggle={(one) => setHiddenClasses(toggled(hiddenClasses, one))} seriesOf={(one) => colours.get(one) ?? SERIES + 1} />
                <Legend title="Predicates" items={counts.predicates} hidden={hiddenPredicates} onToggle={(one) => setHiddenPredicates(toggled(hiddenPredicates, one))} />
                <p class="small muted hint">Click a node to see where it leads. Double-click to expand it. Dragging pins.</p>
              </>
            )}
          </aside>
        )}
      </div>
    </div>
  );
}

function Finder({ nodes, onPick }: { nodes: readonly Node[]; onPick: (key: string) => void }) {
  const [text, setText] = useState("");
  const sought = text.trim().toLowerCase();
  const found = sought ? nodes.filter((node) => nameOf(node.term).toLowerCase().includes(sought) || node.key.toLowerCase().includes(sought)).slice(0, 8) : [];
  return (
    <form class="graph-find" onSubmit={(event) => { event.preventDefault(); if (found[0]) { onPick(found[0].key); setText(""); } }}>
      <Input small type="search" placeholder="Find a node" aria-label="Find a node" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      {found.length > 0 && (
        <div class="menu left">{found.map((node) => <button key={node.key} type="button" class="item" onClick={() => { onPick(node.key); setText(""); }}><span class="truncate">{nameOf(node.term)}</span></button>)}</div>
      )}
    </form>
  );
}

function Legend(props: { title: string; items: [string, number][]; hidden: ReadonlySet<string>; onToggle: (iri: string) => void; seriesOf?: (iri: string) => number }) {
  if (!props.items.length) return null;
  return (
    <fieldset class="legend">
      <legend>{props.title}</legend>
      {props.items.slice(0, 60).map(([iri, count]) => (
        <label key={iri} class="check" title={iri}>
          <input type="checkbox" checked={!props.hidden.has(iri)} onChange={() => props.onToggle(iri)} />
          {props.seriesOf && <span class={`swatch series-${props.seriesOf(iri)}`} />}
          <span class="truncate grow">{labels.value.get(iri) ?? shown(iri)}</span>
          <span class="muted small num">{count.toLocaleString("en")}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Inspector(props: {
  node: Node; model: GraphModel; version: number; open: (iri: string) => void; onPin: () => void; onCollapse: () => void; onHide: () => void; onClose: () => void;
  onExpand: (key: string, predicate: string, direction: Direction, offset?: number) => Promise<void>;
}) {
  const { node, model } = props;
  const [found, setFound] = useState<Counted[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [waiting, setWaiting] = useState<string | null>(null);
  const iri = node.term.type === "uri" ? node.term.value : null;
  useEffect(() => {
    if (iri === null) { setFound([]); return; }
    const aborting = new AbortController();
    Promise.all([countNeighbours(iri, "out", aborting.signal), countNeighbours(iri, "in", aborting.signal)]).then(([out, back]) => {
      setFound([...out, ...back]);
      void readLabels([...out, ...back].map((one) => one.predicate));
    }, (failure: Error) => { if (!aborting.signal.aborted) setError(failure.message); });
    return () => aborting.abort();
  }, [iri]);
  const drawn = useMemo(() => {
    const counts = new Map<string, number>();
    for (const edge of model.edges.values()) {
      if (edge.source === node.key) counts.set(`out ${edge.predicate}`, (counts.get(`out ${edge.predicate}`) ?? 0) + 1);
      if (edge.target === node.key) counts.set(`in ${edge.predicate}`, (counts.get(`in ${edge.predicate}`) ?? 0) + 1);
    }
    return counts;
  }, [props.version, node.key]);
  const grow = async (one: Counted) => {
    const id = `${one.direction} ${one.predicate}`;
    setWaiting(id);
    await props.onExpand(node.key, one.predicate, one.direction, Math.floor((drawn.get(id) ?? 0) / PAGE) * PAGE).catch((failure: Error) => toast(failure.message, "bad"));
    setWaiting(null);
  };
  return (
    <div class="inspector">
      <div class="row nowrap between"><h2 class="truncate" title={node.key.slice(0, 500)}>{nameOf(node.term)}</h2><Button kind="quiet" size="small" icon="close" title="Close (Escape)" onClick={props.onClose} /></div>
      {node.classes.size > 0 && <div class="row tight">{[...node.classes].slice(0, 6).map((one) => <span key={one} class="badge" title={one}>{labels.value.get(one) ?? shown(one)}</span>)}</div>}
      <div class="row tight">
        {iri !== null && <Button size="small" icon="right" onClick={() => props.open(iri)}>Open</Button>}
        <Button size="small" icon="pin" pressed={node.pinned} onClick={props.onPin}>{node.pinned ? "Pinned" : "Pin"}</Button>
        {model.isExpanded(node.key) && <Button size="small" icon="collapse" onClick={props.onCollapse}>Collapse</Button>}
        <Button size="small" icon="trash" onClick={props.onHide}>Hide</Button>
      </div>
      {node.values.length > 0 && (
        <dl class="values">{node.values.slice(0, 12).map(([predicate, value]) => <div key={predicate + keyOf(value)}><dt class="muted small truncate" title={predicate}>{labels.value.get(predicate) ?? shown(predicate)}</dt><dd><TermView term={value} plain /></dd></div>)}</dl>
      )}
      {error !== null ? <p class="small fault" role="alert">{error}</p> : found === null ? <span class="spinner" role="status" aria-label="Loading" /> : (
        <>
          {(["out", "in"] as const).map((direction) => {
            const own = found.filter((one) => one.direction === direction);
            return own.length > 0 && (
              <div key={direction} class="ways">
                <h3>{direction === "out" ? "Leads to" : "Comes from"}</h3>
                {own.slice(0, 40).map((one) => {
                  const id = `${direction} ${one.predicate}`, shownNow = drawn.get(id) ?? 0;
                  const isWhole = shownNow >= one.count && !one.isPart;
                  return (
                    <button key={id} type="button" class="way" disabled={isWhole || waiting !== null} onClick={() => void grow(one)}
                      title={isWhole ? `${one.predicate}: all shown` : `Show ${Math.min(PAGE, one.count - shownNow)} more by ${one.predicate}`}>
                      <Icon name={waiting === id ? "refresh" : isWhole ? "check" : "plus"} size={12} />
                      <span class="truncate grow">{one.predicate === RDF_TYPE ? "instances" : labels.value.get(one.predicate) ?? shown(one.predicate)}</span>
                      <span class="muted small num">{shownNow > 0 && !isWhole ? `${shownNow} of ` : ""}{counted(one.count, one.isPart)}</span>
                    </button>
                  );
                })}
              </div>
            );
          })}
          {found.length === 0 && <p class="small muted">{iri === null ? "Only resources with an IRI can be expanded." : "It is connected with no other resource."}</p>}
        </>
      )}
    </div>
  );
}

const pinnedOf = (nodes: readonly Node[]) => new Set(nodes.filter((node) => node.pinned).map((node) => node.key));

function spotsOf(nodes: readonly Node[], edges: readonly Edge[], layout: Layout, seriesOf: (node: Node) => number): Map<string, Spot> {
  const degrees = new Map<string, number>();
  for (const { source, target } of edges) for (const key of [source, target]) degrees.set(key, (degrees.get(key) ?? 0) + 1);
  return new Map(nodes.map((node) => [node.key, {
    key: node.key, place: layout.places.get(node.key)!, series: seriesOf(node), isPinned: node.pinned,
    radius: Math.min(22, 7 + 2 * Math.sqrt(degrees.get(node.key) ?? 0)),
  }]));
}

/** Edges between the same two nodes go side by side. */
function linesOf(edges: readonly Edge[], spots: ReadonlyMap<string, Spot>): Line[] {
  const beside = new Map<string, Line[]>();
  for (const { source, target, predicate } of edges) {
    const pair = source < target ? `${source}\n${target}` : `${target}\n${source}`;
    const line: Line = { from: spots.get(source)!, to: spots.get(target)!, predicate, bend: 0 };
    const others = beside.get(pair);
    if (others) others.push(line); else beside.set(pair, [line]);
  }
  for (const lines of beside.values()) lines.forEach((line, at) => { line.bend = (at - (lines.length - 1) / 2) * (line.from.key < line.to.key ? 1 : -1); });
  return [...beside.values()].flat();
}
