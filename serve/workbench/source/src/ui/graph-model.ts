/** What a drawn graph holds: nodes, edges, and which node brought each edge in, so that it can be taken out again. */
import { RDF_TYPE, type Term } from "../api/terms";

export interface Triple { subject: Term; predicate: Term; object: Term }
export interface Node { key: string; term: Term; classes: Set<string>; values: [predicate: string, value: Term][]; pinned: boolean }
export interface Edge { key: string; source: string; predicate: string; target: string; origins: Set<string> }

const START = ""; // the origin of edges that were given, and not brought in by expanding a node

export function keyOf(term: Term): string {
  switch (term.type) {
    case "uri": return term.value;
    case "bnode": return `_:${term.value}`;
    case "literal": return `"${term.value.slice(0, 200)}"@${term["xml:lang"] ?? term.datatype ?? ""}`;
    default: return `<<${keyOf(term.value.subject)} ${keyOf(term.value.predicate)} ${keyOf(term.value.object)}>>`;
  }
}

export class GraphModel {
  readonly nodes = new Map<string, Node>();
  readonly edges = new Map<string, Edge>();
  /** Nodes that stay without edges: those that were given. */
  private readonly given = new Set<string>();

  /** Adds triples; types become classes of their subjects, literals their values. Returns the keys of new nodes. */
  add(triples: readonly Triple[], origin = START): string[] {
    const made: string[] = [];
    for (const { subject, predicate, object } of triples) {
      if (predicate.type !== "uri") continue;
      const from = this.node(subject, made);
      if (origin === START) this.given.add(from.key);
      if (predicate.value === RDF_TYPE && object.type === "uri") { from.classes.add(object.value); continue; }
      if (object.type === "literal") {
        if (from.values.length < 50 && !from.values.some(([known, value]) => known === predicate.value && keyOf(value) === keyOf(object))) from.values.push([predicate.value, object]);
        continue;
      }
      const to = this.node(object, made);
      if (origin === START) this.given.add(to.key);
      const key = `${from.key}\n${predicate.value}\n${to.key}`;
      const known = this.edges.get(key);
      if (known) known.origins.add(origin);
      else this.edges.set(key, { key, source: from.key, predicate: predicate.value, target: to.key, origins: new Set([origin]) });
    }
    return made;
  }

  private node(term: Term, made: string[]): Node {
    const key = keyOf(term);
    let found = this.nodes.get(key);
    if (!found) {
      found = { key, term, classes: new Set(), values: [], pinned: false };
      this.nodes.set(key, found);
      made.push(key);
    }
    return found;
  }

  /** A node alone, such as the one that everything begins with. */
  begin(term: Term): string { const { key } = this.node(term, []); this.given.add(key); return key; }

  isExpanded(key: string): boolean { for (const edge of this.edges.values()) if (edge.origins.has(key)) return true; return false; }

  /** Takes out what a node brought in, and what hung on that alone. Pinned nodes stay. */
  collapse(key: string): void {
    const waiting = [key];
    const seen = new Set(waiting);
    for (let origin = waiting.pop(); origin !== undefined; origin = waiting.pop()) {
      for (const edge of this.edges.values()) if (edge.origins.delete(origin) && edge.origins.size === 0) this.edges.delete(edge.key);
      const held = new Set<string>([key, ...this.given]);
      for (const edge of this.edges.values()) { held.add(edge.source); held.add(edge.target); }
      for (const node of this.nodes.values()) {
        if (held.has(node.key) || node.pinned || seen.has(node.key)) continue;
        seen.add(node.key);
        waiting.push(node.key);
      }
      this.drop((node) => held.has(node.key) || node.pinned);
    }
  }

  /** Takes one node and its edges out. */
  remove(key: string): void {
    this.given.delete(key);
    for (const edge of this.edges.values()) if (edge.source === key || edge.target === key) this.edges.delete(edge.key);
    this.drop((node) => node.key !== key);
  }

  private drop(stays: (node: Node) => boolean): void { for (const node of this.nodes.values()) if (!stays(node)) this.nodes.delete(node.key); }

  /** How many nodes have each class, and how many edges each predicate, the most frequent first. */
  counts(): { classes: [string, number][]; predicates: [string, number][] } {
    const classes = new Map<string, number>(), predicates = new Map<string, number>();
    for (const node of this.nodes.values()) for (const one of node.classes) classes.set(one, (classes.get(one) ?? 0) + 1);
    for (const edge of this.edges.values()) predicates.set(edge.predicate, (predicates.get(edge.predicate) ?? 0) + 1);
    const sorted = (found: Map<string, number>) => [...found].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
    return { classes: sorted(classes), predicates: sorted(predicates) };
  }
}
