/** WKT and GeoJSON literals of GeoSPARQL as GeoJSON geometries, longitude first. */
import { isGeometry, type Term } from "../../api/terms";

export interface Geometry { type: string; coordinates?: unknown; geometries?: Geometry[] }
const LATITUDE_FIRST = /\/EPSG\/0\/4326$|EPSG::4326$/;
const KNOWN = /CRS84$|\/EPSG\/0\/4326$|EPSG::4326$/;

/** Null for what is no geometry in degrees, or is empty. */
export function geometryOf(term: Term | undefined): Geometry | null {
  if (!isGeometry(term) || term?.type !== "literal") return null;
  try { return term.datatype!.endsWith("geoJSONLiteral") ? JSON.parse(term.value) as Geometry : fromWkt(term.value); } catch { return null; }
}

const TYPES: Record<string, string> = { POINT: "Point", LINESTRING: "LineString", POLYGON: "Polygon", MULTIPOINT: "MultiPoint", MULTILINESTRING: "MultiLineString", MULTIPOLYGON: "MultiPolygon", GEOMETRYCOLLECTION: "GeometryCollection" };

function fromWkt(text: string): Geometry | null {
  const crs = /^\s*<([^>]*)>/.exec(text);
  if (crs && !KNOWN.test(crs[1]!)) return null;
  const flip = crs !== null && LATITUDE_FIRST.test(crs[1]!);
  const words = (crs ? text.slice(crs[0].length) : text).match(/[A-Za-z]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[(),]/g) ?? [];
  let at = 0;
  const point = (): number[] => {
    const found: number[] = [];
    while (at < words.length && !/^[(),]$/.test(words[at]!)) found.push(Number(words[at++]));
    const [x, y] = found;
    if (x === undefined || y === undefined || found.some(Number.isNaN)) throw new Error("no point");
    return flip ? [y, x] : [x, y];
  };
  const list = <T,>(item: () => T): T[] => {
    if (words[at++] !== "(") throw new Error("no list");
    const found = [item()];
    while (words[at] === ",") { at++; found.push(item()); }
    if (words[at++] !== ")") throw new Error("no end");
    return found;
  };
  const loosePoint = () => words[at] === "(" ? list(point)[0]! : point();
  const geometry = (): Geometry => {
    const name = words[at++]?.toUpperCase() ?? "";
    const type = TYPES[name];
    if (!type) throw new Error(`no geometry ${name}`);
    while (/^(Z|M|ZM)$/i.test(words[at] ?? "")) at++;
    if (/^EMPTY$/i.test(words[at] ?? "")) throw new Error("empty");
    switch (name) {
      case "POINT": return { type, coordinates: list(point)[0] };
      case "LINESTRING": return { type, coordinates: list(point) };
      case "MULTIPOINT": return { type, coordinates: list(loosePoint) };
      case "POLYGON": case "MULTILINESTRING": return { type, coordinates: list(() => list(point)) };
      case "MULTIPOLYGON": return { type, coordinates: list(() => list(() => list(point))) };
      default: return { type, geometries: list(geometry) };
    }
  };
  return geometry();
}
