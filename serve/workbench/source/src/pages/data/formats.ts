/** Which syntax and which compression a file has, by its name. */
export const FORMATS = [
  ["text/turtle", "Turtle"], ["application/n-triples", "N-Triples"], ["application/n-quads", "N-Quads"], ["application/trig", "TriG"],
  ["application/rdf+xml", "RDF/XML"], ["application/ld+json", "JSON-LD"],
] as const;
export const ENDINGS: Record<string, string> = {
  ttl: "text/turtle", n3: "text/turtle", nt: "application/n-triples", nq: "application/n-quads", trig: "application/trig",
  rdf: "application/rdf+xml", owl: "application/rdf+xml", xml: "application/rdf+xml", jsonld: "application/ld+json", json: "application/ld+json",
};
const CODINGS: Record<string, string> = { gz: "gzip", zst: "zstd" };
const OTHERS = new Set(["zip", "bz2", "xz", "7z", "rar", "tar", "tgz"]);

export interface Kind { type: string | null; coding: string | null; fault: string | null }

export function kindOf(name: string): Kind {
  const parts = name.toLowerCase().split(".");
  const last = parts.at(-1) ?? "";
  if (parts.length > 1 && OTHERS.has(last)) return { type: null, coding: null, fault: `Unpack it first: .${last} is not read. Compressed with gzip (.gz) or Zstandard (.zst) it is.` };
  const coding = CODINGS[last] ?? null;
  const ending = (coding ? parts.at(-2) : last) ?? "";
  return { type: ENDINGS[ending] ?? null, coding, fault: null };
}
/** Whether files of this syntax name the graphs of their statements. */
export const carriesGraphs = (type: string | null) => type === "application/n-quads" || type === "application/trig";

const LINE_MAX = 300;
const READ_MAX = 64 << 20;
export interface Excerpt { line: number; column: number; lines: { number: number; text: string }[] }

/** Unpacks a file piece by piece. Browsers know gzip; for Zstandard a decoder is loaded. */
async function unpacked(file: Blob, coding: string | null): Promise<ReadableStream<Uint8Array>> {
  if (coding === null) return file.stream();
  if (coding === "gzip") return file.stream().pipeThrough(new DecompressionStream("gzip"));
  const { Decompress } = await import("fzstd");
  let decoder: InstanceType<typeof Decompress>;
  return file.stream().pipeThrough(new TransformStream<Uint8Array, Uint8Array>({
    start(out) { decoder = new Decompress((piece) => out.enqueue(piece)); },
    transform(piece) { decoder.push(piece); },
    flush() { decoder.push(new Uint8Array(), true); },
  }));
}

/** The lines around one of a file; null where the line is far behind. */
export async function excerptOf(file: Blob, coding: string | null, line: number, column: number): Promise<Excerpt | null> {
  const plain = await unpacked(file, coding);
  const reader = plain.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  const lines: Excerpt["lines"] = [];
  let number = 1, rest = "", read = 0;
  const keep = (text: string) => {
    if (number >= line - 2 && number <= line + 2) {
      const from = number === line ? Math.max(0, column - LINE_MAX / 2) : 0; // a long line is shown around its column
      lines.push({ number, text: `${from > 0 ? "… " : ""}${text.slice(from, from + LINE_MAX)}${text.length > from + LINE_MAX ? " …" : ""}` });
    }
    number++;
  };
  try {
    while (number <= line + 2 && read < READ_MAX) {
      const { value, done } = await reader.read();
      if (done) { if (rest) keep(rest); break; }
      read += value.length;
      const parts = (rest + value).split("\n");
      rest = parts.pop()!;
      for (const text of parts) if (number <= line + 2) keep(text);
    }
  } catch { /* a damaged file: what was read is shown */ } finally { void reader.cancel().catch(() => undefined); }
  return lines.some((one) => one.number === line) ? { line, column, lines } : null;
}
