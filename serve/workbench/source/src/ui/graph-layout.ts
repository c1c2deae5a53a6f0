/** The places of nodes. What has a place keeps it; only what is new looks for one, with the forces of `graph-forces.ts`. */
import type { Found, Task } from "./graph-forces";

declare const FORCES: string; // the address of the worker, written in by build.mjs

export interface Place { x: number; y: number }

export class Layout {
  readonly places = new Map<string, Place>();
  private readonly worker = new Worker(FORCES, { type: "module" });
  private run = 0;
  private keys: readonly string[] = [];
  private readonly held = new Set<string>();
  /** Whether the last run arranges everything, rather than some nodes added to what is there. */
  isWhole = false;
  private isRunning = false;
  private readonly isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  /** moved is called whenever places have changed, isDone with the last ones. */
  constructor(moved: (isDone: boolean) => void) {
    this.worker.onmessage = ({ data: { run, places, isDone } }: MessageEvent<Found>) => {
      if (run !== this.run || (this.isCalm && !isDone)) return;
      this.keys.forEach((key, at) => {
        const place = this.places.get(key);
        if (place && !this.held.has(key)) { place.x = places[2 * at]!; place.y = places[2 * at + 1]!; }
      });
      this.isRunning = !isDone;
      moved(isDone);
    };
  }

  /**
   * Finds places for the nodes that have none; with `again` for all but those in `fixed`. Nodes have a place at once, near the
   * node that they are connected with, and move from there. Returns whether there is anything to be arranged.
   */
  arrange(keys: readonly string[], edges: readonly { source: string; target: string }[], fixed: ReadonlySet<string>, again: boolean): boolean {
    const missing = keys.filter((key) => !this.places.has(key));
    if (!missing.length && !again) return false;
    // What the last run has not finished goes on.
    this.isWhole = again || missing.length === keys.length || (this.isRunning && this.isWhole);
    const isMoving = new Set(this.isRunning ? this.keys.filter((key) => !this.held.has(key)) : []);
    this.held.clear();
    for (const key of keys) if (fixed.has(key) || (!again && this.places.has(key) && !isMoving.has(key))) this.held.add(key);
    const around = new Map<string, string>();
    for (const { source, target } of edges) {
      if (this.places.has(source)) around.set(target, source);
      if (this.places.has(target)) around.set(source, target);
    }
    missing.forEach((key, at) => {
      const near = this.places.get(around.get(key) ?? "");
      const turn = at * 2.399963; // the golden angle: an even spiral
      const far = near ? 60 + 6 * Math.sqrt(at) : 18 * Math.sqrt(at + 0.5);
      this.places.set(key, { x: (near?.x ?? 0) + far * Math.cos(turn), y: (near?.y ?? 0) + far * Math.sin(turn) });
    });
    this.keys = keys;
    const numbers = new Map(keys.map((key, at) => [key, at]));
    const places = Float32Array.from(keys.flatMap((key) => { const { x, y } = this.places.get(key)!; return [x, y]; }));
    const links = Uint32Array.from(edges.flatMap(({ source, target }) => {
      const [from, to] = [numbers.get(source), numbers.get(target)];
      return from === undefined || to === undefined || from === to ? [] : [from, to];
    }));
    const task: Task = { run: ++this.run, places, held: Uint8Array.from(keys, (key) => Number(this.held.has(key))), links, isWhole: this.isWhole };
    this.isRunning = true;
    this.worker.postMessage(task, [places.buffer, links.buffer]);
    return true;
  }

  /** A node has been moved by hand: it stays there. */
  move(key: string, x: number, y: number): void {
    const place = this.places.get(key);
    if (place) { place.x = x; place.y = y; this.held.add(key); }
  }
  stop(): void { this.worker.terminate(); }
}
