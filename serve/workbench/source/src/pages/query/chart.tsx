/** The answer as a chart: a sensible one by the types of its columns, and every choice can be changed. */
import * as Plot from "@observablehq/plot";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isNumeric, isTemporal, type Row } from "../../api/terms";
import { labels, loadLabels, loadVocabulary, prefixes, shown } from "../../api/vocabulary";
import { colour, theme } from "../../app/theme";
import { Field, Select } from "../../ui/controls";
import { PictureMenu } from "../../ui/picture-menu";
import { Empty, Notice } from "../../ui/states";
import { tab } from "./store";
import type { Answer } from "./results";

type Kind = "bar" | "line" | "scatter" | "histogram" | "heat" | "time";
type Type = "number" | "time" | "text";
interface Choice { kind: Kind; x: string; y: string; series: string }
const KINDS: [Kind, string][] = [["bar", "Bars"], ["line", "Line"], ["time", "Time series"], ["scatter", "Scatter"], ["histogram", "Histogram"], ["heat", "Heat map"]];
const BARS_MAX = 60;
const POINTS_MAX = 20_000;
const NONE = "";

export function typeOf(answer: Answer, name: string): Type {
  const sample = answer.rows.slice(0, 500).flatMap((row) => row[name] ?? []);
  if (!sample.length) return "text";
  if (sample.every(isTemporal)) return "time";
  return sample.every(isNumeric) ? "number" : "text";
}

/** A year or a time first makes a time series, a text bars, two numbers a scatter plot, one number a histogram. */
export function choose(answer: Answer): Choice {
  const types = new Map(answer.vars.map((name) => [name, typeOf(answer, name)]));
  const of = (type: Type) => answer.vars.filter((name) => types.get(name) === type);
  const [times, numbers, texts] = [of("time"), of("number"), of("text")];
  const years = numbers.filter((name) => /year|jahr|date/i.test(name));
  if (times.length && numbers.length) return { kind: "time", x: times[0]!, y: numbers[0]!, series: few(answer, texts) };
  const measures = numbers.filter((name) => !years.includes(name));
  if (years.length && measures.length) return { kind: texts.length && !few(answer, texts) ? "scatter" : "line", x: years[0]!, y: measures[0]!, series: few(answer, texts) };
  if (texts.length >= 2 && numbers.length === 1 && answer.rows.length > 12) return { kind: "heat", x: texts[0]!, y: texts[1]!, series: numbers[0]! };
  if (texts.length && numbers.length) return { kind: "bar", x: texts[0]!, y: numbers[0]!, series: NONE };
  if (numbers.length >= 2) return { kind: "scatter", x: numbers[0]!, y: numbers[1]!, series: NONE };
  if (numbers.length) return { kind: "histogram", x: numbers[0]!, y: NONE, series: NONE };
  return { kind: "bar", x: texts[0] ?? answer.vars[0]!, y: NONE, series: NONE };
}

/** A column with few different values, by which rows can be coloured. */
function few(answer: Answer, names: readonly string[]): string {
  return names.find((name) => { const size = new Set(answer.rows.map((row) => textOf(row, name))).size; return size > 1 && size <= 8 && size < answer.rows.length / 2; }) ?? NONE;
}

function textOf(row: Row, name: string): string {
  const term = row[name];
  if (!term || term.type === "triple") return "";
  return (labels.value.get(term.value) ?? (term.type === "uri" ? shown(term.value) : term.value)).slice(0, 60);
}
function valueOf(row: Row, name: string, type: Type): number | Date | string | null {
  const term = row[name];
  if (!term || term.type === "triple") return null;
  if (type === "number") return Number(term.value);
  if (type === "time") { const date = new Date(/^-?\d{4,}$/.test(term.value) ? `${term.value}-01-01` : term.value.replace(/^(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)$/, "$1")); return Number.isNaN(date.getTime()) ? null : date; }
  return textOf(row, name);
}

export default function Chart({ answer }: { answer: Answer }) {
  const [choice, setChoice] = useState(() => choose(answer));
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => { if (!answer.vars.includes(choice.x)) setChoice(choose(answer)); }, [answer.vars.join(" ")]);
  useEffect(() => {
    const iris = answer.rows.slice(0, 400).flatMap((row) => answer.vars.flatMap((name) => row[name]?.type === "uri" ? [(row[name] as { value: string }).value] : []));
    void loadVocabulary().then(() => loadLabels(iris));
  }, [answer.rows]);
  useEffect(() => {
    const observer = new ResizeObserver(() => setSize({ width: box.current!.clientWidth, height: box.current!.clientHeight }));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const drawn = useMemo(() => size.width > 0 ? draw(answer, choice, size) : null, [answer, choice, size, theme.value, labels.value, prefixes.value]);
  useEffect(() => { if (drawn) box.current!.replaceChildren(...(drawn.figure ? [drawn.figure] : [])); }, [drawn]);
  const series = choice.series && choice.kind !== "heat" ? seriesOf(answer, choice.series) : [];
  const options = answer.vars.map((name) => [name, name] as const);
  const optional = [[NONE, choice.kind === "bar" || choice.kind === "histogram" ? "number of rows" : "none"] as const, ...options];
  const set = (changed: Partial<Choice>) => setChoice({ ...choice, ...changed });
  return (
    <div class="chart">
      <div class="chartbar">
        <Field label="Chart">{(id) => <Select small id={id} value={choice.kind} options={KINDS} onPick={(kind) => set({ kind: kind as Kind })} />}</Field>
        <Field label={choice.kind === "histogram" ? "Values" : "Across"}>{(id) => <Select small id={id} value={choice.x} options={options} onPick={(x) => set({ x })} />}</Field>
        {choice.kind !== "histogram" && <Field label={choice.kind === "heat" ? "Down" : "Up"}>{(id) => <Select small id={id} value={choice.y} options={optional} onPick={(y) => set({ y })} />}</Field>}
        <Field label={choice.kind === "heat" ? "Colour by value" : "Colour"}>{(id) => <Select small id={id} value={choice.series} options={[[NONE, "one colour"], ...options]} onPick={(series) => set({ series })} />}</Field>
        <span class="grow" />
        <PictureMenu drawing={() => box.current?.querySelector<SVGSVGElement>("svg[role=img], svg") ?? null} name={tab.value.name} />
      </div>
      {drawn?.note && <div class="rnote"><Notice>{drawn.note}</Notice></div>}
      {drawn && !drawn.figure && <Empty icon="chart" title="Nothing to draw">These columns have no values that this chart shows. Choose others above.</Empty>}
      {drawn?.figure && series.length > 1 && <div class="legend">{series.map((one, at) => <span key={one}><i style={{ background: `var(--series-${(at % 8) + 1})` }} />{one}</span>)}</div>}
      <div class="drawing" ref={box} />
    </div>
  );
}

function seriesOf(answer: Answer, name: string): string[] { return [...new Set(answer.rows.map((row) => textOf(row, name)))].sort().slice(0, 40); }

interface Point { x: number | Date | string; y: number | string; s: string; v: number }

function draw(answer: Answer, choice: Choice, size: { width: number; height: number }): { figure: SVGElement | null; note: string | null } {
  const { kind } = choice;
  const categorical = kind === "bar" || kind === "heat";
  const typeX = categorical ? "text" : typeOf(answer, choice.x);
  const typeY = kind === "heat" ? "text" : choice.y ? typeOf(answer, choice.y) : "number";
  let points: Point[] = answer.rows.flatMap((row) => {
    const x = valueOf(row, choice.x, typeX);
    const y = choice.y === NONE ? 1 : valueOf(row, choice.y, typeY);
    const given = kind === "heat" && choice.series ? valueOf(row, choice.series, "number") : 1;
    return x === null || y === null || y instanceof Date || (typeof y === "number" && Number.isNaN(y)) ? [] : [{ x, y, s: choice.series ? textOf(row, choice.series) : "", v: Number(given) }];
  });
  let note: string | null = null;
  if (kind !== "histogram" && kind !== "heat") points = points.filter((one) => typeof one.y === "number" || kind === "scatter");
  if (kind === "bar") {
    const sums = new Map<string, number>();
    for (const one of points) sums.set(String(one.x), (sums.get(String(one.x)) ?? 0) + Number(one.y));
    if (sums.size > BARS_MAX) {
      const kept = new Set([...sums].sort((one, other) => other[1] - one[1]).slice(0, BARS_MAX).map(([name]) => name));
      points = points.filter((one) => kept.has(String(one.x)));
      note = `The ${BARS_MAX} largest of ${sums.size.toLocaleString("en")} bars are shown.`;
    }
  } else if (kind !== "histogram" && points.length > POINTS_MAX) {
    note = `The first ${POINTS_MAX.toLocaleString("en")} of ${points.length.toLocaleString("en")} rows are drawn.`;
    points = points.slice(0, POINTS_MAX);
  }
  if (kind === "line" || kind === "time") points.sort((one, other) => Number(one.x) - Number(other.x));
  if (!points.length) return { figure: null, note };
  const stroke = choice.series && kind !== "heat" ? "s" : colour("series-1");
  const years = typeX === "number" && points.every((one) => Number.isInteger(one.x) && Number(one.x) > 500 && Number(one.x) < 2200);
  const widest = Math.max(...points.map((one) => String(kind === "heat" ? one.y : one.x).length));
  const upright = kind === "bar" && size.width / new Set(points.map((one) => one.x)).size > Math.min(140, widest * 7.4);
  const x = { label: choice.x, ...(years ? { tickFormat: "d" } : {}), ...(typeX === "number" && !years ? { nice: true } : {}) };
  const marks: Plot.Markish[] =
    kind === "bar" ? upright
      ? [Plot.barY(points, Plot.groupX({ y: "sum" }, { x: "x", y: "y", fill: stroke, sort: { x: "-y" }, tip: true, rx2: 3 } as Plot.BarYOptions)), Plot.ruleY([0])]
      : [Plot.barX(points, Plot.groupY({ x: "sum" }, { y: "x", x: "y", fill: stroke, sort: { y: "-x" }, tip: true } as Plot.BarXOptions)), Plot.ruleX([0])]
    : kind === "histogram" ? [Plot.rectY(points, Plot.binX({ y: "count" }, { x: "x", fill: stroke, tip: true } as never)), Plot.ruleY([0])]
    : kind === "heat" ? [Plot.cell(points, Plot.group({ fill: "sum" }, { x: "x", y: "y", fill: "v", tip: true, inset: 0.5 } as Plot.CellOptions))]
    : kind === "scatter" ? [Plot.dot(points, { x: "x", y: "y", fill: stroke, r: points.length > 2000 ? 2 : 4, fillOpacity: 0.75, tip: true })]
    : [Plot.lineY(points, { x: "x", y: "y", stroke, strokeWidth: 2, tip: true }), ...(points.length < 200 ? [Plot.dotY(points, { x: "x", y: "y", fill: stroke, r: 3 })] : [])];
  const left = kind === "heat" || (kind === "bar" && !upright) ? Math.min(220, 24 + widest * 6.6) : 64;
  const made = Plot.plot({
    width: Math.max(320, size.width), height: Math.max(220, size.height - 24), marginLeft: left, marginBottom: kind === "heat" ? 100 : 44, marginTop: 28, marginRight: 24,
    style: { background: "transparent", color: colour("text"), fontFamily: "inherit", fontSize: "12px" },
    x: kind === "bar" && !upright ? { label: choice.y || "rows", grid: true } : kind === "heat" ? { label: null, tickRotate: -40 } : x,
    y: kind === "bar" && !upright ? { label: null } : kind === "heat" ? { label: null } : { label: kind === "histogram" ? "rows" : choice.y || "rows", grid: true, ...(kind === "bar" ? { zero: true } : {}) },
    color: kind !== "heat" && choice.series ? { domain: seriesOf(answer, choice.series), range: Array.from({ length: 8 }, (_, at) => colour(`series-${at + 1}`)) } : kind === "heat" ? { scheme: theme.value === "dark" ? "viridis" : "blues" } : { legend: false, range: Array.from({ length: 8 }, (_, at) => colour(`series-${at + 1}`)) },
    marks,
  }) as SVGElement;
  // Plot brings a style sheet with each drawing, which the policy of the page does not let in: ours has its rules.
  made.querySelectorAll("style").forEach((one) => one.remove());
  made.setAttribute("role", "img");
  // The drawing has one name. Those that the library gives to its groups are not permitted without a role.
  for (const part of made.querySelectorAll<SVGElement>("[aria-label]")) { part.dataset.part = part.getAttribute("aria-label")!; part.removeAttribute("aria-label"); }
  made.setAttribute("aria-label", `${KINDS.find(([id]) => id === kind)![1]} of ${choice.y || "rows"} by ${choice.x}`);
  return { figure: made, note };
}
