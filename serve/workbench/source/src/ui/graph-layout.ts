/** Where nodes lie: forces of d3-force. What has a place keeps it; only what is new looks for one. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";

export interface Placed extends SimulationNodeDatum { key: string; x: number; y: number }
interface Link { source: Placed; target: Placed }
const SLICE_MS = 10; // of each frame, so that the page answers meanwhile

export class Layout {
  readonly places = new Map<string, Placed>();
  private running = 0;

  /**
   * Finds places for the nodes that have none; with `again` for all but those in `fixed`.
   * New nodes begin near the node that they are connected with. `done` is called unless another call comes first.
   */
  arrange(keys: readonly string[], edges: readonly { source: string; target: string }[], fixed: ReadonlySet<string>, again: boolean, done: () => void): void {
    const run = ++this.running;
    const present = new Set(keys);
    for (const key of [...this.places.keys()]) if (!present.has(key)) this.places.delete(key);
    const missing = keys.filter((key) => !this.places.has(key));
    if (!missing.length && !again) { done(); return; }
    const isFirst = this.places.size === 0;
    const around = new Map<string, string>();
    for (const { source, target } of edges) {
      if (this.places.has(source)) around.set(target, source);
      if (this.places.has(target)) around.set(source, target);
    }
    const old = new Set(this.places.keys());
    missing.forEach((key, at) => {
      const near = this.places.get(around.get(key) ?? "");
      const turn = at * 2.399963; // the golden angle: an even spiral
      const far = near ? 60 + 6 * Math.sqrt(at) : 18 * Math.sqrt(at + 0.5);
      this.places.set(key, { key, x: (near?.x ?? 0) + far * Math.cos(turn), y: (near?.y ?? 0) + far * Math.sin(turn) });
    });
    const nodes = keys.map((key) => this.places.get(key)!);
    for (const node of nodes) {
      const isHeld = fixed.has(node.key) || (!again && old.has(node.key));
      node.fx = isHeld ? node.x : null;
      node.fy = isHeld ? node.y : null;
    }
    const links = edges.flatMap(({ source, target }): Link[] => {
      const [from, to] = [this.places.get(source), this.places.get(target)];
      return from && to && from !== to ? [{ source: from, target: to }] : [];
    });
    const many = nodes.length > 600;
    const simulation = forceSimulation<Placed>(nodes)
      .force("link", forceLink<Placed, Link>(links).distance(many ? 50 : 125).iterations(many ? 1 : 2))
      .force("charge", forceManyBody<Placed>().strength(many ? -60 : -320).distanceMax(many ? 400 : 700).theta(many ? 1.1 : 0.9))
      .force("x", forceX<Placed>(0).strength(isFirst || again ? 0.04 : 0)).force("y", forceY<Placed>(0).strength(isFirst || again ? 0.05 : 0))
      .force("collide", forceCollide<Placed>(many ? 14 : 26))
      .alphaDecay(many ? 0.05 : 0.03).alpha(again || isFirst ? 1 : 0.6).stop();
    const step = () => {
      if (run !== this.running) return;
      const until = performance.now() + SLICE_MS;
      do simulation.tick(); while (simulation.alpha() > simulation.alphaMin() && performance.now() < until);
      if (simulation.alpha() > simulation.alphaMin()) requestAnimationFrame(step);
      else done();
    };
    step();
  }

  move(key: string, x: number, y: number): void { const place = this.places.get(key); if (place) { place.x = x; place.y = y; } }
  stop(): void { this.running++; }
}
