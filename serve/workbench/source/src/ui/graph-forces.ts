/** Where nodes lie, found in a worker of its own, so that the page answers meanwhile: the forces of d3-force. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";

export interface Task {
  run: number;
  /** x and y of each node, one after the other, where it begins. */
  places: Float32Array;
  /** 1 for each node that stays where it is. */
  held: Uint8Array;
  /** The numbers of the nodes at both ends of each edge, one after the other. */
  links: Uint32Array;
  /** Whether everything is arranged, rather than some nodes added to what is there. */
  isWhole: boolean;
}
export interface Found { run: number; places: Float32Array; isDone: boolean }
interface Body extends SimulationNodeDatum { x: number; y: number }

const MANY = 600; // nodes, from which on they lie closer together and fewer steps are made
const SLICE_MS = 30; // between two messages to the page
const port = globalThis as unknown as { onmessage: (event: { data: Task }) => void; postMessage: (found: Found, moved: ArrayBuffer[]) => void };
let latest = 0;

port.onmessage = ({ data: { run, places, held, links, isWhole } }) => {
  latest = run;
  const bodies = Array.from(held, (isHeld, at): Body => {
    const x = places[2 * at]!, y = places[2 * at + 1]!;
    return isHeld ? { x, y, fx: x, fy: y } : { x, y };
  });
  const many = bodies.length > MANY;
  const pairs = Array.from({ length: links.length / 2 }, (_, at) => ({ source: links[2 * at]!, target: links[2 * at + 1]! }));
  const simulation = forceSimulation<Body>(bodies)
    .force("link", forceLink<Body, { source: number; target: number }>(pairs).distance(many ? 60 : 125).iterations(many ? 1 : 2))
    .force("charge", forceManyBody<Body>().strength(many ? -160 : -320).distanceMax(many ? 900 : 700).theta(many ? 1.1 : 0.9))
    .force("x", forceX<Body>(0).strength(isWhole ? (many ? 0.03 : 0.04) : 0)).force("y", forceY<Body>(0).strength(isWhole ? (many ? 0.04 : 0.05) : 0))
    .force("collide", forceCollide<Body>(many ? 16 : 26))
    .alphaDecay(many ? 0.05 : 0.03).alpha(isWhole ? 1 : 0.6).stop();
  const step = () => {
    if (run !== latest) return;
    const until = performance.now() + SLICE_MS;
    do simulation.tick(); while (simulation.alpha() > simulation.alphaMin() && performance.now() < until);
    const isDone = simulation.alpha() <= simulation.alphaMin();
    const now = new Float32Array(2 * bodies.length);
    bodies.forEach(({ x, y }, at) => { now[2 * at] = x; now[2 * at + 1] = y; });
    port.postMessage({ run, places: now, isDone }, [now.buffer]);
    if (!isDone) setTimeout(step); // another task may have come
  };
  step();
};
