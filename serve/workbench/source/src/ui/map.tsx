/** A map of geometries: Leaflet over the outline of the land, or over configured tiles. */
import L from "leaflet";
import { useEffect, useRef } from "preact/hooks";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import land from "world-atlas/land-110m.json";
import { config } from "../api/session";
import { colour, theme } from "../app/theme";
import type { Geometry } from "../pages/query/geometry";

export interface Shape { geometry: Geometry; title: string; lines: string[]; onOpen?: () => void }

export default function MapView({ shapes, label }: { shapes: Shape[]; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<L.Map | null>(null);
  useEffect(() => {
    const made = L.map(box.current!, { attributionControl: true, zoomControl: true, worldCopyJump: true, preferCanvas: false, minZoom: 1, zoomSnap: 0.25, renderer: L.svg({ padding: 0.5 }) });
    made.attributionControl.setPrefix(false);
    map.current = made;
    const tiles = config.value?.tiles;
    if (tiles) L.tileLayer(tiles, { maxZoom: 19 }).addTo(made);
    else {
      made.attributionControl.addAttribution("Land: Natural Earth");
      const topology = land as unknown as Topology<{ land: GeometryCollection }>;
      L.geoJSON(feature(topology, topology.objects.land) as GeoJSON.GeoJsonObject, { interactive: false, style: { className: "land" } }).addTo(made);
    }
    made.setView([20, 0], 1.5);
    const observer = new ResizeObserver(() => made.invalidateSize({ animate: false }));
    observer.observe(box.current!);
    return () => { observer.disconnect(); made.remove(); map.current = null; };
  }, []);
  useEffect(() => {
    const own = map.current;
    if (!own) return;
    const layer = L.featureGroup();
    const style = { color: colour("series-2"), weight: 2, fillColor: colour("series-2"), fillOpacity: 0.25 };
    for (const shape of shapes) {
      try {
        L.geoJSON(shape.geometry as GeoJSON.GeoJsonObject, {
          ...(/Point$/.test(shape.geometry.type) ? {} : { style }),
          pointToLayer: (_, place) => L.circleMarker(place, { radius: shapes.length > 500 ? 4 : 6, color: colour("surface"), weight: 1.5, fillColor: colour("series-2"), fillOpacity: 0.95 }),
        }).bindPopup(() => popup(shape)).bindTooltip(document.createTextNode(shape.title) as unknown as HTMLElement, { sticky: true }).addTo(layer);
      } catch { /* coordinates that are none */ }
    }
    layer.addTo(own);
    const bounds = layer.getBounds();
    if (bounds.isValid()) own.fitBounds(bounds.pad(0.15), { maxZoom: config.value?.tiles ? 14 : 8, animate: false });
    return () => { layer.remove(); };
  }, [shapes, theme.value]);
  return <div class="map" ref={box} role="region" aria-label={label} />;
}

/** Made of text nodes only: nothing in the data can be markup. */
function popup(shape: Shape): HTMLElement {
  const own = document.createElement("div");
  const title = document.createElement(shape.onOpen ? "button" : "b");
  title.className = "popup-title";
  title.textContent = shape.title;
  if (shape.onOpen) title.addEventListener("click", shape.onOpen);
  own.append(title);
  for (const text of shape.lines.slice(0, 8)) {
    const line = document.createElement("div");
    line.textContent = text.slice(0, 200);
    own.append(line);
  }
  return own;
}
