/** How much an update may remove: asked of the data before it is applied. */
import { quickRows } from "../../api/vocabulary";
import { tokens } from "../../ui/sparql-language";

export const ASK_FROM = 100; // matches or triples, from which an update needs a yes

export interface Loss { what: string; count: number | null }

/** What each operation of an update may remove; count null where that is not known. Operations that only add are left out. */
export async function losses(text: string): Promise<Loss[]> {
  const all = tokens(text).filter((token) => token.kind !== "comment");
  const prologue = all.flatMap((token, position) => /^(PREFIX|BASE)$/i.test(token.text)
    ? [text.slice(token.from, all[position + (/^PREFIX$/i.test(token.text) ? 2 : 1)]?.to ?? token.to)] : []).join("\n");
  const found: Loss[] = [];
  const group = (from: number) => { // the text of the braces that open at or after a token
    const start = all.findIndex((token, position) => position >= from && token.text === "{");
    let depth = 0;
    for (let position = start; position < all.length && start >= 0; position++) {
      if (all[position]!.text === "{") depth++;
      else if (all[position]!.text === "}" && --depth === 0) return { text: text.slice(all[start]!.from, all[position]!.to), end: position };
    }
    return null;
  };
  for (let position = 0; position < all.length; position++) {
    const word = all[position]!.text.toUpperCase();
    if (all[position]!.kind !== "keyword") continue;
    if (word === "CLEAR" || word === "DROP") {
      const rest = all.slice(position + 1).filter((token) => !/^SILENT$/i.test(token.text));
      const [kind, name] = [rest[0]?.text.toUpperCase() ?? "", rest[1]?.text ?? ""];
      const pattern = kind === "GRAPH" ? `GRAPH ${name} { ?s ?p ?o }` : kind === "DEFAULT" ? "?s ?p ?o" : kind === "NAMED" ? "GRAPH ?g { ?s ?p ?o }"
        : "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }";
      found.push({ what: kind === "GRAPH" ? `the graph ${name}` : kind === "DEFAULT" ? "the default graph" : kind === "NAMED" ? "all named graphs" : "all graphs", count: await count(prologue, pattern) });
    } else if (word === "DELETE") {
      const next = all[position + 1]?.text.toUpperCase();
      if (next === "DATA") {
        const data = group(position);
        found.push({ what: "the triples that are named", count: data ? tokens(data.text).filter((token) => token.text === ".").length + 1 : null });
        position = data?.end ?? position;
        continue;
      }
      let at = position + 1;
      if (next !== "WHERE") at = (group(position)?.end ?? position) + 1;
      if (all[at]?.text.toUpperCase() === "INSERT") at = (group(at)?.end ?? at) + 1;
      while (/^(USING|NAMED)$/i.test(all[at]?.text ?? "") || all[at]?.kind === "iri" || all[at]?.kind === "prefixed") at++;
      const where = group(at);
      const before = all[position - 2];
      const pattern = where && /^WITH$/i.test(before?.text ?? "") ? `GRAPH ${all[position - 1]!.text} ${where.text}` : where?.text.slice(1, -1);
      found.push({ what: "what the pattern matches", count: pattern === undefined ? null : await count(prologue, pattern) });
      position = where?.end ?? position;
    } else if (word === "MOVE" || word === "COPY") found.push({ what: "what the target graph holds", count: null });
  }
  return found;
}

async function count(prologue: string, pattern: string): Promise<number | null> {
  try {
    const rows = await quickRows(`${prologue}\nSELECT (COUNT(*) AS ?n) WHERE { ${pattern} }`);
    const term = rows[0]?.n;
    return term?.type === "literal" ? Number(term.value) : null;
  } catch { return null; }
}
