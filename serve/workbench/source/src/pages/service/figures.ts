/** Numbers and times as people read them. */
const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytesOf(count: number): string {
  let at = 0, value = count;
  while (value >= 1000 && at < UNITS.length - 1) { value /= 1000; at++; }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[at]}`;
}
export function secondsOf(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toPrecision(seconds < 0.01 ? 2 : 3)} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}
export function timeOf(text: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}
export const plural = (count: number, word: string) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
export const countOf = (count: number) => count.toLocaleString("en");
