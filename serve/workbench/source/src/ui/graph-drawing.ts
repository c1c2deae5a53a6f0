/**
 * The canvas of a graph: draws nodes, edges and names, moves and zooms what is seen, and tells what is pointed at.
 *
 * Names have one size at each zoom, and only those are drawn that do not cover each other. While something moves, what is
 * expensive is left out. What lies under the pointer is found in a quadtree.
 */
import { quadtree, type Quadtree } from "d3-quadtree";
import { colour } from "../app/theme";
import type { Place } from "./graph-layout";

export interface Spot { key: string; place: Place; radius: number; series: number; isPinned: boolean }
export interface Line { from: Spot; to: Spot; predicate: string; /** of edges between the same two: how far to the side */ bend: number }
export interface Events {
  pick: (key: string | null) => void;
  expand: (key: string) => void;
  /** A node is dragged; isEnd when it is let go. */
  drag: (key: string, x: number, y: number, isEnd: boolean) => void;
}
interface View { k: number; x: number; y: number }
export interface Names { node: (key: string) => string; edge: (predicate: string) => string }

const SERIES = 8;
const ZOOM_MIN = 0.02, ZOOM_MAX = 4;
const NAMES_MAX = 160, NAMES_MOVING_MAX = 40, NAME_AREA = 9000; // pixels of the canvas for each name
const ARROWS_MAX = 1500, EDGE_NAMES_MAX = 80;
const CELL = { width: 24, height: 9 }; // pixels, of the grid by which names that would cover each other are found
const REACH = 6; // pixels beside a node that still count as on it
const STILL_MS = 140; // after the last movement everything is drawn again
const LARGE = 800, FRESH_MS = 120; // nodes and edges from which on a picture is moved, and how long at most
const PIECE = 40; // lines drawn at once: one path of thousands takes several times as long
const GLIDE_MS = 350;
const MARGIN = 48;
const isFar = (x: number, y: number) => Math.hypot(x, y) > 4; // a click trembles

export class Drawing {
  private readonly canvas = document.createElement("canvas");
  /** Above the canvas: what is pointed at, so that the rest need not be drawn again. */
  private readonly cover = document.createElement("canvas");
  private readonly pen = this.canvas.getContext("2d")!;
  private readonly above = this.cover.getContext("2d")!;
  private spots: Spot[] = []; // in the order in which they get a name: those with many edges first
  private lines: Line[] = [];
  private view: View = { k: 1, x: 0, y: 0 };
  private size = { width: 1, height: 1, ratio: 1 };
  private chosen: string | null = null;
  private hovered: Spot | null = null;
  private tree: Quadtree<Spot> | null = null;
  private frame = 0;
  private gliding = 0;
  private stillTimer = 0;
  private isMoving = false;
  /** Whether the picture is not that of the nodes and edges any more; and the view and the time that it is of. */
  private isOld = true;
  private drawn: View = { k: 1, x: 0, y: 0 };
  private drawnAt = 0;
  private font = "";
  private colours: Record<string, string> = {};
  private readonly widths = new Map<string, number>();
  private readonly ends = new AbortController();
  /** Whether somebody has moved or zoomed the view: then it is not moved any more by itself. */
  isTouched = false;

  constructor(private readonly box: HTMLElement, private readonly events: Events, private readonly names: Names) {
    for (const canvas of [this.canvas, this.cover]) { canvas.setAttribute("aria-hidden", "true"); box.append(canvas); }
    this.listen();
    const watching = new ResizeObserver(() => this.resize());
    watching.observe(box);
    this.ends.signal.addEventListener("abort", () => watching.disconnect());
    this.restyle();
    this.resize();
  }
  close(): void {
    this.ends.abort();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.gliding);
    clearTimeout(this.stillTimer);
    this.canvas.remove();
    this.cover.remove();
  }

  /** What is drawn. The places are shared: after they have changed, call `moved`. */
  show(spots: Spot[], lines: Line[]): void {
    this.spots = spots.sort((one, other) => other.radius - one.radius);
    this.lines = lines;
    this.hovered = this.hovered && spots.find((one) => one.key === this.hovered!.key) || null;
    this.tree = null;
    this.redraw();
  }
  /** Places have changed, and may change again at once. */
  moved(isDone: boolean): void { this.tree = null; if (!isDone) this.move(); this.redraw(); }
  choose(key: string | null): void { this.chosen = key; this.redraw(); }
  /** The theme has changed. */
  restyle(): void {
    for (const name of ["surface", "text", "text-muted", "line-strong", "accent", "focus"]) this.colours[name] = colour(name);
    for (let at = 1; at <= SERIES; at++) this.colours[at] = colour(`series-${at}`);
    this.font = getComputedStyle(document.body).fontFamily;
    this.redraw();
  }
  redraw(): void { this.isOld = true; this.nextFrame(); }
  private nextFrame(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      // A large picture is moved as it is, and drawn again now and then.
      if (this.isOld || this.spots.length + this.lines.length < LARGE || performance.now() - this.drawnAt > FRESH_MS) this.draw(); else this.shift();
      this.drawCover();
    });
  }
  private shift(): void {
    const { k, x, y } = this.view, share = k / this.drawn.k;
    this.canvas.style.transform = `translate(${x - share * this.drawn.x}px, ${y - share * this.drawn.y}px) scale(${share})`;
  }

  // The view

  /** Shows everything; smoothly, if somebody is looking at something already. */
  fit(isSmooth = false): void {
    const to = this.whole();
    if (!to) return;
    if (!isSmooth || matchMedia("(prefers-reduced-motion: reduce)").matches) { this.view = to; this.redraw(); return; }
    const from = this.view, began = performance.now();
    const step = () => {
      const share = Math.min(1, (performance.now() - began) / GLIDE_MS), eased = share * share * (3 - 2 * share);
      const between = (name: "k" | "x" | "y") => from[name] + eased * (to[name] - from[name]);
      this.view = { k: between("k"), x: between("x"), y: between("y") };
      this.move();
      this.gliding = share < 1 ? requestAnimationFrame(step) : 0;
    };
    cancelAnimationFrame(this.gliding);
    step();
  }
  /** Shows everything, if something is outside and nobody has chosen what is seen. */
  keepInView(): void {
    const { k, x, y } = this.view, { width, height } = this.size;
    if (!this.isTouched && this.spots.some(({ place }) => { const left = place.x * k + x, top = place.y * k + y; return left < 0 || top < 0 || left > width || top > height; })) this.fit(true);
  }
  private whole(): View | null {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { place: { x, y } } of this.spots) { left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y); }
    if (right < left) return null;
    const { width, height } = this.size;
    const k = Math.max(ZOOM_MIN, Math.min(1.3, (width - 2 * MARGIN) / Math.max(1, right - left), (height - 2 * MARGIN) / Math.max(1, bottom - top)));
    return { k, x: width / 2 - k * (left + right) / 2, y: height / 2 - k * (top + bottom) / 2 };
  }
  zoom(by: number, x = this.size.width / 2, y = this.size.height / 2): void {
    const k = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, this.view.k * by)), share = k / this.view.k;
    this.view = { k, x: x - share * (x - this.view.x), y: y - share * (y - this.view.y) };
    this.touch();
    this.move();
  }
  private touch(): void { this.isTouched = true; cancelAnimationFrame(this.gliding); }
  /** Moves the view, if a node is outside. */
  reveal({ x, y }: Place): void {
    const { k } = this.view, { width, height } = this.size;
    const [left, top] = [x * k + this.view.x, y * k + this.view.y];
    if (left < 30 || top < 30 || left > width - 30 || top > height - 30) { this.view = { k, x: width / 2 - x * k, y: height / 2 - y * k }; this.redraw(); }
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.box, ratio = Math.min(2, devicePixelRatio || 1);
    if (!width || !height) return;
    this.view.x += (width - this.size.width) / 2;
    this.view.y += (height - this.size.height) / 2;
    this.size = { width, height, ratio };
    for (const canvas of [this.canvas, this.cover]) { canvas.width = width * ratio; canvas.height = height * ratio; }
    this.draw(); // at once: they are empty now
  }
  private move(): void {
    this.isMoving = true;
    clearTimeout(this.stillTimer);
    this.stillTimer = setTimeout(() => { this.isMoving = false; this.redraw(); }, STILL_MS);
    this.nextFrame();
  }

  // What is pointed at

  private spotAt(x: number, y: number): Spot | null {
    const { k } = this.view;
    this.tree ??= quadtree<Spot>().x((one) => one.place.x).y((one) => one.place.y).addAll(this.spots);
    const [atX, atY] = [(x - this.view.x) / k, (y - this.view.y) / k];
    const found = this.tree.find(atX, atY, 50 + REACH / k);
    return found && Math.hypot(found.place.x - atX, found.place.y - atY) <= found.radius + REACH / k ? found : null;
  }

  private listen(): void {
    const { box } = this, told = { signal: this.ends.signal };
    const at = (event: MouseEvent): [number, number] => { const { left, top } = box.getBoundingClientRect(); return [event.clientX - left, event.clientY - top]; };
    const pointers = new Map<number, [x: number, y: number]>();
    let held: Spot | null = null, hasMoved = false, from: [number, number] = [0, 0];
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      pointers.set(event.pointerId, at(event));
      box.setPointerCapture(event.pointerId);
      if (pointers.size > 1) { held = null; return; }
      from = at(event);
      held = this.spotAt(...from);
      hasMoved = false;
    }, told);
    box.addEventListener("pointermove", (event) => {
      const [x, y] = at(event), before = pointers.get(event.pointerId);
      if (!before) { this.hover(this.spotAt(x, y)); return; }
      if (!hasMoved && !isFar(x - from[0], y - from[1])) return;
      hasMoved = true;
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, [x, y]);
      if (other) this.zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), (x + other[0]) / 2, (y + other[1]) / 2);
      else if (held) this.drag(held, x, y, false);
      else { this.view.x += x - before[0]; this.view.y += y - before[1]; this.touch(); this.move(); }
    }, told);
    const end = (event: PointerEvent) => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      if (hasMoved && held) this.drag(held, ...at(event), true);
      else if (!hasMoved && event.type === "pointerup") this.events.pick(held?.key ?? null);
      held = null;
    };
    box.addEventListener("pointerup", end, told);
    box.addEventListener("pointercancel", end, told);
    box.addEventListener("pointerleave", () => this.hover(null), told);
    box.addEventListener("dblclick", (event) => { const spot = this.spotAt(...at(event)); if (spot) this.events.expand(spot.key); }, told);
    box.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015) * (event.ctrlKey ? 4 : 1)), ...at(event));
    }, { ...told, passive: false });
  }
  private hover(spot: Spot | null): void {
    if (spot === this.hovered) return;
    this.hovered = spot;
    this.box.style.cursor = spot ? "pointer" : "";
    this.nextFrame();
  }
  private drag(spot: Spot, x: number, y: number, isEnd: boolean): void {
    this.events.drag(spot.key, (x - this.view.x) / this.view.k, (y - this.view.y) / this.view.k, isEnd);
    this.tree = null;
    this.touch();
    this.move();
    this.redraw();
  }

  // Drawing, in pixels of the page

  private draw(): void {
    const { pen, view: { k, x, y }, size: { width, height, ratio } } = this;
    this.isOld = false;
    this.drawn = { ...this.view };
    this.drawnAt = performance.now();
    this.canvas.style.transform = "";
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const lines = this.lines.filter(({ from: { place: a }, to: { place: b } }) => // those that may be seen
      Math.max(a.x, b.x) * k + x > 0 && Math.min(a.x, b.x) * k + x < width && Math.max(a.y, b.y) * k + y > 0 && Math.min(a.y, b.y) * k + y < height);
    const spots = this.spots.filter(({ place, radius }) => {
      const left = place.x * k + x, top = place.y * k + y, far = this.radius(radius) + 2;
      return left > -far && top > -far && left < width + far && top < height + far;
    });
    const isNear = (line: Line) => line.from.key === this.chosen || line.to.key === this.chosen;
    const near = this.chosen === null ? [] : lines.filter(isNear);
    const many = lines.length > ARROWS_MAX;
    pen.globalAlpha = many ? 0.35 : 0.6;
    this.drawLines(lines, "line-strong", many ? 0.7 : 1.1, !many && !(this.isMoving && lines.length > 400));
    pen.globalAlpha = 0.95;
    this.drawLines(near, "accent", 1.8, true);
    pen.globalAlpha = 1;
    this.drawSpots(spots);
    if (!this.isMoving && k > 0.45 && lines.length <= EDGE_NAMES_MAX) for (const line of lines) this.nameLine(line);
    else if (!this.isMoving && k > 0.45 && near.length <= EDGE_NAMES_MAX) for (const line of near) this.nameLine(line);
    this.nameSpots(spots);
  }

  /** Nodes grow with the zoom, but less than it. */
  private radius(own: number): number { return Math.max(1.5, own * Math.min(1.4, this.view.k ** 0.9)); }
  /** Both ends in pixels, and the middle, through which a bent edge goes. */
  private course({ from, to, bend }: Line): { ax: number; ay: number; bx: number; by: number; mx: number; my: number } {
    const { k, x, y } = this.view;
    const ax = from.place.x * k + x, ay = from.place.y * k + y, bx = to.place.x * k + x, by = to.place.y * k + y;
    const length = Math.hypot(bx - ax, by - ay) || 1, aside = bend * 22 * Math.min(1, k);
    return { ax, ay, bx, by, mx: (ax + bx) / 2 - aside * (by - ay) / length, my: (ay + by) / 2 + aside * (bx - ax) / length };
  }

  private drawLines(lines: readonly Line[], ink: string, width: number, hasArrows: boolean): void {
    if (!lines.length) return;
    const { pen, view: { k, x, y } } = this;
    pen.strokeStyle = pen.fillStyle = this.colours[ink]!;
    pen.lineWidth = width;
    pen.beginPath();
    lines.forEach((line, at) => {
      if (at % PIECE === 0) { pen.stroke(); pen.beginPath(); }
      const { from, to, bend } = line;
      if (from === to) { const far = this.radius(from.radius) + 7; pen.moveTo(from.place.x * k + x + far, from.place.y * k + y - far); pen.arc(from.place.x * k + x, from.place.y * k + y - far, far, 0, 2 * Math.PI); return; }
      pen.moveTo(from.place.x * k + x, from.place.y * k + y);
      if (!bend) { pen.lineTo(to.place.x * k + x, to.place.y * k + y); return; }
      const { ax, ay, bx, by, mx, my } = this.course(line);
      pen.quadraticCurveTo(2 * mx - (ax + bx) / 2, 2 * my - (ay + by) / 2, bx, by);
    });
    pen.stroke();
    if (!hasArrows) return;
    pen.beginPath();
    for (const line of lines) {
      if (line.from === line.to) continue;
      const { ax, ay, bx, by, mx, my } = this.course(line);
      const towards = line.bend ? Math.atan2(by - (2 * my - (ay + by) / 2), bx - (2 * mx - (ax + bx) / 2)) : Math.atan2(by - ay, bx - ax);
      const far = this.radius(line.to.radius) + 1.5, tipX = bx - far * Math.cos(towards), tipY = by - far * Math.sin(towards);
      pen.moveTo(tipX, tipY);
      for (const turn of [-0.42, 0.42]) pen.lineTo(tipX - 8 * Math.cos(towards + turn), tipY - 8 * Math.sin(towards + turn));
    }
    pen.fill();
  }

  private drawSpots(spots: readonly Spot[]): void {
    const { pen } = this;
    if (spots.length < ARROWS_MAX) this.ring(pen, spots, "surface", 2.5, 0.5); // a gap between a node and the edges behind it
    for (let series = 1; series <= SERIES; series++) {
      pen.fillStyle = this.colours[series]!;
      spots.filter((one) => one.series === series).forEach((spot, at) => {
        if (at % PIECE === 0) { pen.fill(); pen.beginPath(); }
        this.circle(pen, spot);
      });
      pen.fill();
      pen.beginPath();
    }
    this.ring(pen, spots.filter((one) => one.isPinned), "text", 1.5, 2.5);
    const chosen = spots.filter((one) => one.key === this.chosen);
    this.ring(pen, chosen, "surface", 3, 1.5);
    this.ring(pen, chosen, "focus", 3, 3.5);
  }
  private circle(pen: CanvasRenderingContext2D, { place, radius: own }: Spot, further = 0): void {
    const { k, x, y } = this.view, left = place.x * k + x, top = place.y * k + y, radius = this.radius(own) + further;
    pen.moveTo(left + radius, top);
    pen.arc(left, top, radius, 0, 2 * Math.PI);
  }
  private ring(pen: CanvasRenderingContext2D, spots: readonly Spot[], ink: string, width: number, further: number): void {
    if (!spots.length) return;
    pen.strokeStyle = this.colours[ink]!;
    pen.lineWidth = width;
    pen.beginPath();
    for (const spot of spots) this.circle(pen, spot, further);
    pen.stroke();
  }

  private drawCover(): void {
    const { above: pen, hovered, size: { width, height, ratio } } = this;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!hovered) return;
    this.ring(pen, [hovered], "focus", 2, 2);
    this.name(pen, hovered, true, true);
  }

  /** Names below their nodes: that of the chosen one, then the others where there is room. */
  private nameSpots(spots: readonly Spot[]): void {
    const { pen, view: { k, x }, size: { width, height } } = this;
    const taken = new Set<number>();
    const most = this.isMoving ? NAMES_MOVING_MAX : Math.min(NAMES_MAX, width * height / NAME_AREA);
    const chosen = spots.find((one) => one.key === this.chosen);
    let count = 0;
    for (const spot of chosen ? [chosen, ...spots.filter((one) => one !== chosen)] : spots) {
      if (count >= most) break;
      pen.font = this.fontOf(spot === chosen);
      const left = spot.place.x * k + x, top = this.nameTop(spot), half = this.width(pen, this.names.node(spot.key)) / 2;
      const cells: number[] = [];
      for (let row = Math.floor(top / CELL.height); row <= Math.floor((top + 12) / CELL.height); row++)
        for (let column = Math.floor((left - half) / CELL.width); column <= Math.floor((left + half) / CELL.width); column++) cells.push((row + 1000) * 4096 + column + 1000);
      if (cells.some((cell) => taken.has(cell))) continue;
      for (const cell of cells) taken.add(cell);
      this.name(pen, spot, spot === chosen, !this.isMoving);
      count++;
    }
  }
  private fontOf(isBold: boolean): string { return `${isBold ? "600 " : ""}11px ${this.font}`; }
  private nameTop(spot: Spot): number { return spot.place.y * this.view.k + this.view.y + this.radius(spot.radius) + 4; }
  private name(pen: CanvasRenderingContext2D, spot: Spot, isBold: boolean, hasGround: boolean): void {
    const name = this.names.node(spot.key), left = spot.place.x * this.view.k + this.view.x, top = this.nameTop(spot);
    pen.font = this.fontOf(isBold);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.lineJoin = "round";
    pen.lineWidth = isBold ? 5 : 3;
    pen.strokeStyle = this.colours.surface!;
    pen.fillStyle = this.colours.text!;
    if (hasGround) pen.strokeText(name, left, top);
    pen.fillText(name, left, top);
  }
  private nameLine(line: Line): void {
    const { pen } = this, { ax, ay, bx, by, mx, my } = this.course(line);
    const name = this.names.edge(line.predicate);
    pen.font = `10px ${this.font}`;
    if (line.from === line.to || this.width(pen, name) > Math.hypot(bx - ax, by - ay) - 24) return;
    let turn = Math.atan2(by - ay, bx - ax);
    if (Math.abs(turn) > Math.PI / 2) turn += Math.PI; // never upside down
    pen.save();
    pen.translate(mx, my);
    pen.rotate(turn);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = this.colours.surface!;
    pen.fillStyle = this.colours["text-muted"]!;
    pen.strokeText(name, 0, 0);
    pen.fillText(name, 0, 0);
    pen.restore();
  }
  private width(pen: CanvasRenderingContext2D, text: string): number {
    const key = `${pen.font}\n${text}`;
    let found = this.widths.get(key);
    if (found === undefined) { found = pen.measureText(text).width; this.widths.set(key, found); }
    return found;
  }
}
