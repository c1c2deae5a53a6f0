/** The text format of Prometheus, as far as this page draws it. */
export type Sample = Map<string, number>;

/** Each series (a name with its labels, as written) and its value. */
export function parse(text: string): Sample {
  const found: Sample = new Map();
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const at = line.lastIndexOf(" ");
    if (at > 0) found.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return found;
}

export interface Moment { at: number; sample: Sample }

/** How much a counter grows each second; null where the service has started anew in between. */
export function rate(before: Moment, now: Moment, name: string): number | null {
  const grown = (now.sample.get(name) ?? 0) - (before.sample.get(name) ?? 0);
  const seconds = (now.at - before.at) / 1000;
  return grown < 0 || seconds <= 0 ? null : grown / seconds;
}

/** The value below which a share of the observations of a histogram were, between two moments; null without any. */
export function quantile(before: Moment, now: Moment, name: string, share: number): number | null {
  const edges: { to: number; count: number }[] = [];
  for (const [series, value] of now.sample) {
    const found = series.startsWith(`${name}_bucket{`) && /le="([^"]+)"/.exec(series);
    if (found) edges.push({ to: found[1] === "+Inf" ? Infinity : Number(found[1]), count: value - (before.sample.get(series) ?? 0) });
  }
  edges.sort((one, other) => one.to - other.to);
  const all = edges.at(-1)?.count ?? 0;
  if (all <= 0) return null;
  let from = 0, below = 0;
  for (const { to, count } of edges) {
    if (count >= share * all) return to === Infinity ? from : from + (to - from) * (share * all - below) / Math.max(1, count - below);
    from = to; below = count;
  }
  return from;
}
