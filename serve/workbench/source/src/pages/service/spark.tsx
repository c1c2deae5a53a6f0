/** A small line over time, with its last value. */
export interface Series { name: string; values: (number | null)[]; colour: number }

const WIDTH = 300, HEIGHT = 72;

export function Spark(props: { title: string; series: readonly Series[]; write: (value: number) => string; empty: string }) {
  const all = props.series.flatMap((one) => one.values).filter((one): one is number => one !== null);
  const top = Math.max(...all, 0) || 1;
  const last = (one: Series) => one.values.findLast((value) => value !== null) ?? null;
  return (
    <figure class="spark card">
      <figcaption class="row between"><h2>{props.title}</h2><span class="small muted">{all.length > 0 && `up to ${props.write(Math.max(...all))}`}</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <line x1={0} x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} class="axis" />
        {props.series.map((one) => <path key={one.name} d={path(one.values, top)} class={`line colour-${one.colour}`} />)}
      </svg>
      {all.length === 0 ? <p class="small muted">{props.empty}</p> : (
        <ul class="row small">{props.series.map((one) => {
          const value = last(one);
          return <li key={one.name} class="row tight"><span class={`key colour-${one.colour}`} />{one.name} <b>{value === null ? "–" : props.write(value)}</b></li>;
        })}</ul>
      )}
    </figure>
  );
}

function path(values: readonly (number | null)[], top: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  let isOn = false;
  return values.map((value, at) => {
    if (value === null) { isOn = false; return ""; }
    const point = `${isOn ? "L" : "M"}${(at * step).toFixed(1)} ${(HEIGHT - 2 - value / top * (HEIGHT - 8)).toFixed(1)}`;
    isOn = true;
    return point;
  }).join("");
}
