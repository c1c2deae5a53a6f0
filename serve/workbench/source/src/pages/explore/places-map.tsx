/** Where a resource is, on the map; Leaflet is loaded with it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Term } from "../../api/terms";
import type MapView from "../../ui/map";
import { geometryOf } from "../query/geometry";

export function PlacesMap({ geometries, name }: { geometries: readonly Term[]; name: string }) {
  const [Found, setFound] = useState<typeof MapView | null>(null);
  useEffect(() => { import("../../ui/map").then((module) => setFound(() => module.default), () => {}); }, []); // the coordinates are there as text
  const shapes = useMemo(() => geometries.flatMap((term) => {
    const geometry = geometryOf(term);
    return geometry ? [{ geometry, title: name, lines: [] }] : [];
  }), [geometries, name]);
  return Found && shapes.length ? <div class="places-map"><Found shapes={shapes} label={`Where ${name} is`} /></div> : null;
}
