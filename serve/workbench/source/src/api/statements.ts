/** Statements as N-Triples and N-Quads write them. */
import type { Term } from "./terms";

export interface Statement { subject: Term; predicate: Term; object: Term; /** null: the default graph */ graph: Term | null }

const IRI = String.raw`<([^>]*)>`;
const TERM = String.raw`(?:<[^>]*>|_:[^\s]+|"[^"\\]*(?:\\.[^"\\]*)*"(?:\^\^<[^>]*>|@[A-Za-z0-9-]+)?|<<\(.*\)>>)`;
const LINE = new RegExp(String.raw`^(${TERM})\s+(<[^>]*>)\s+(${TERM})(?:\s+(<[^>]*>|_:[^\s]+))?\s*\.\s*$`, "s");
const TRIPLE = new RegExp(String.raw`^<<\(\s*(${TERM})\s+(<[^>]*>)\s+(${TERM})\s*\)>>$`, "s");

/** One line of N-Triples 1.2 or N-Quads 1.2; null where it is something else. */
export function statementOf(line: string): Statement | null {
  const found = LINE.exec(line);
  if (!found) return null;
  return { subject: termOf(found[1]!), predicate: termOf(found[2]!), object: termOf(found[3]!), graph: found[4] === undefined ? null : termOf(found[4]) };
}

function termOf(text: string): Term {
  if (text.startsWith("<<(")) {
    const inner = TRIPLE.exec(text);
    return inner ? { type: "triple", value: { subject: termOf(inner[1]!), predicate: termOf(inner[2]!), object: termOf(inner[3]!) } } : { type: "literal", value: text };
  }
  if (text.startsWith("<")) return { type: "uri", value: unescaped(new RegExp(IRI).exec(text)![1]!) };
  if (text.startsWith("_:")) return { type: "bnode", value: text.slice(2) };
  const end = text.lastIndexOf('"');
  const value = unescaped(text.slice(1, end));
  const rest = text.slice(end + 1);
  if (rest.startsWith("@")) {
    const [language, direction] = rest.slice(1).split("--");
    return { type: "literal", value, "xml:lang": language!, ...(direction ? { "its:dir": direction } : {}) };
  }
  return rest.startsWith("^^") ? { type: "literal", value, datatype: rest.slice(3, -1) } : { type: "literal", value };
}

function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)/gs, (_, four?: string, eight?: string, one?: string) =>
    four ?? eight ? String.fromCodePoint(parseInt((four ?? eight)!, 16)) : ({ n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" } as Record<string, string>)[one!] ?? one!) : text;
}
