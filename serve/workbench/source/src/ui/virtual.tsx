/** A table of any number of rows, of which only the visible ones are in the document. Rows have one height. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

export interface Column {
  id: string;
  name: ComponentChildren;
  width?: number;
  numeric?: boolean;
  /** What a filter looks in, and what is sorted without `compare`. */
  text: (row: number) => string;
  /** A number where the cell is one, so it is sorted as one. */
  number?: (row: number) => number | null;
  cell: (row: number) => ComponentChildren;
}
export interface Sorting { column: string; down: boolean }

const ROW = 30;
const HEAD = 34;
const EXTRA = 8; // rows above and below the visible ones
const MIN_WIDTH = 64;

/** The rows that the filters leave, in the order of the sorting. */
export function arrange(count: number, columns: readonly Column[], filters: Readonly<Record<string, string>>, sorting: Sorting | null): Int32Array {
  const wanted = columns.flatMap((column) => {
    const text = filters[column.id]?.trim().toLowerCase();
    return text ? [[column, text] as const] : [];
  });
  const kept: number[] = [];
  for (let row = 0; row < count; row++) if (wanted.every(([column, text]) => column.text(row).toLowerCase().includes(text))) kept.push(row);
  const order = Int32Array.from(kept);
  const by = sorting && columns.find((column) => column.id === sorting.column);
  if (!by) return order;
  const texts = new Map<number, string>();
  const numbers = new Map<number, number>();
  for (const row of order) {
    const number = by.number?.(row) ?? null;
    if (number !== null && !Number.isNaN(number)) numbers.set(row, number); else texts.set(row, by.text(row).toLowerCase());
  }
  const sign = sorting.down ? -1 : 1;
  return order.sort((one, other) => {
    const [a, b] = [numbers.get(one), numbers.get(other)];
    if (a !== undefined && b !== undefined) return sign * (a - b) || one - other;
    if (a !== undefined || b !== undefined) return sign * (a !== undefined ? -1 : 1);
    const [s, t] = [texts.get(one)!, texts.get(other)!];
    return s === t ? one - other : sign * (s < t ? -1 : 1);
  });
}

export function VirtualTable(props: { label: string; columns: readonly Column[]; count: number; filters?: boolean; empty?: ComponentChildren; onOrder?: (order: Int32Array) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ width: 800, height: 400 });
  const [widths, setWidths] = useState<Record<string, number>>({});
  const [filters, setFilters] = useState<Record<string, string>>({});
  const [sorting, setSorting] = useState<Sorting | null>(null);

  useEffect(() => {
    const own = box.current!;
    const observer = new ResizeObserver(() => setSize({ width: own.clientWidth, height: own.clientHeight }));
    observer.observe(own);
    return () => observer.disconnect();
  }, []);

  const order = useMemo(() => arrange(props.count, props.columns, filters, sorting), [props.count, props.columns, filters, sorting]);
  useEffect(() => { props.onOrder?.(order); }, [order]);

  const numberWidth = Math.max(44, 20 + String(props.count).length * 8);
  const free = size.width - numberWidth - 2;
  const even = Math.max(props.columns.length > 6 ? 160 : 140, Math.floor(free / Math.max(1, props.columns.length)));
  const widthOf = (column: Column) => widths[column.id] ?? column.width ?? even;
  const template = `${numberWidth}px ${props.columns.map((column) => `${widthOf(column)}px`).join(" ")}`;
  const total = numberWidth + props.columns.reduce((sum, column) => sum + widthOf(column), 0);
  const head = HEAD + (props.filters ? 34 : 0);

  const first = Math.max(0, Math.floor(top / ROW) - EXTRA);
  const last = Math.min(order.length, Math.ceil((top + size.height) / ROW) + EXTRA);
  const visible: number[] = [];
  for (let at = first; at < last; at++) visible.push(at);

  const sortBy = (id: string) => setSorting(sorting?.column !== id ? { column: id, down: false } : sorting.down ? null : { column: id, down: true });
  const drag = (column: Column) => (event: PointerEvent) => {
    event.preventDefault();
    const from = event.clientX;
    const was = widthOf(column);
    const move = (moved: PointerEvent) => setWidths((known) => ({ ...known, [column.id]: Math.max(MIN_WIDTH, was + moved.clientX - from) }));
    const end = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  };
  const nudge = (column: Column) => (event: KeyboardEvent) => {
    const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setWidths((known) => ({ ...known, [column.id]: Math.max(MIN_WIDTH, widthOf(column) + by) }));
  };

  return (
    <div class="vtable" ref={box} tabIndex={0} role="table" aria-label={props.label} aria-rowcount={order.length + 1} aria-colcount={props.columns.length + 1}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="vhead" role="rowgroup" style={{ width: total, height: head }}>
        <div class="vrow" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, height: head }}>
          <div class="vcell number" role="columnheader"><span class="visually-hidden">Row</span></div>
          {props.columns.map((column) => (
            <div key={column.id} class={`vcell head${column.numeric ? " numeric" : ""}`} role="columnheader"
              aria-sort={sorting?.column === column.id ? (sorting.down ? "descending" : "ascending") : "none"}>
              <button type="button" class="vsort" onClick={() => sortBy(column.id)}>
                <span class="truncate">{column.name}</span>
                {sorting?.column === column.id && <Icon name={sorting.down ? "down" : "up"} size={12} />}
              </button>
              {props.filters && <input class="vfilter" placeholder="Filter" aria-label={`Filter ${column.id}`} value={filters[column.id] ?? ""}
                onInput={(event) => { const text = event.currentTarget.value; setFilters((known) => ({ ...known, [column.id]: text })); }} />}
              <span class="vresize" role="separator" aria-orientation="vertical" aria-label={`Width of ${column.id}`} aria-valuenow={Math.round(widthOf(column))} tabIndex={0}
                onPointerDown={drag(column)} onKeyDown={nudge(column)} />
            </div>
          ))}
        </div>
      </div>
      <div class="vbody" role="rowgroup" style={{ height: order.length * ROW, width: total }}>
        {visible.map((at) => {
          const row = order[at]!;
          return (
            <div key={row} class="vrow" role="row" aria-rowindex={at + 2} style={{ gridTemplateColumns: template, transform: `translateY(${at * ROW}px)`, height: ROW }}>
              <div class="vcell number" role="rowheader">{row + 1}</div>
              {props.columns.map((column) => <div key={column.id} class={`vcell${column.numeric ? " numeric" : ""}`} role="cell">{column.cell(row)}</div>)}
            </div>
          );
        })}
      </div>
      {order.length === 0 && <div class="vempty">{props.empty ?? (props.count ? "No row fits the filters." : "No rows.")}</div>}
    </div>
  );
}
