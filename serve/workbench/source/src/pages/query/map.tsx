/** The answer on a map: each geometry of a row, named by the first other columns. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { isGeometry, type Row } from "../../api/terms";
import { labels, loadLabels, shown } from "../../api/vocabulary";
import { go } from "../../app/router";
import MapView, { type Shape } from "../../ui/map";
import { PictureMenu } from "../../ui/picture-menu";
import { Empty, Notice } from "../../ui/states";
import { geometryOf } from "./geometry";
import type { Answer } from "./results";
import { tab } from "./store";

const SHAPES_MAX = 5_000;

export default function AnswerMap({ answer }: { answer: Answer }) {
  const box = useRef<HTMLDivElement>(null);
  const known = labels.value;
  useEffect(() => { void loadLabels(answer.rows.slice(0, 400).flatMap((row) => answer.vars.flatMap((name) => row[name]?.type === "uri" ? [(row[name] as { value: string }).value] : []))); }, [answer.rows]);
  const { shapes, left } = useMemo(() => shapesOf(answer), [answer, known]);
  if (!shapes.length) return <Empty icon="map" title="Nothing to put on the map">The geometries are empty, or in a coordinate system other than CRS84 and EPSG:4326.</Empty>;
  return (
    <div class="mapview" ref={box}>
      <div class="chartbar"><span class="muted">{shapes.length.toLocaleString("en")} geometries</span><span class="grow" />
        <PictureMenu drawing={() => box.current?.querySelector<SVGSVGElement>(".leaflet-overlay-pane svg") ?? null} name={tab.value.name} /></div>
      {left > 0 && <div class="rnote"><Notice kind="warn">{left.toLocaleString("en")} more geometries are not drawn.</Notice></div>}
      <MapView shapes={shapes} label="Map of the answer" />
    </div>
  );
}

function textOf(row: Row, name: string): string {
  const term = row[name];
  if (!term || term.type === "triple") return "";
  return labels.value.get(term.value) ?? (term.type === "uri" ? shown(term.value) : term.value);
}

function shapesOf(answer: Answer): { shapes: Shape[]; left: number } {
  const shapes: Shape[] = [];
  let left = 0;
  for (const row of answer.rows) for (const name of answer.vars) {
    if (!isGeometry(row[name])) continue;
    const geometry = geometryOf(row[name]);
    if (!geometry) continue;
    if (shapes.length >= SHAPES_MAX) { left++; continue; }
    const others = answer.vars.filter((one) => row[one] && !isGeometry(row[one]));
    const resource = others.map((one) => row[one]).find((term) => term?.type === "uri");
    const title = others.map((one) => textOf(row, one)).find(Boolean) ?? name;
    shapes.push({
      geometry, title, lines: others.slice(1).map((one) => `${one}: ${textOf(row, one)}`),
      ...(resource?.type === "uri" ? { onOpen: () => go("explore", { iri: resource.value }) } : {}),
    });
  }
  return { shapes, left };
}
