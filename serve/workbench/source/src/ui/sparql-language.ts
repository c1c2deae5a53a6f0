/** SPARQL 1.2 as the editor colours, folds and formats it, and as completion reads it: a tokenizer.
 *
 * It takes any text, also one that is being written. What is right and wrong is said by the service.
 * Terminals are those of the recommendation, section 19.8.
 */
import { StreamLanguage, LanguageSupport, foldService, indentUnit } from "@codemirror/language";
import { tags } from "@lezer/highlight";

export type Kind = "comment" | "iri" | "prefixed" | "bnode" | "variable" | "string" | "lang" | "number" | "keyword" | "function" | "boolean"
  | "a" | "brace" | "operator" | "punctuation" | "unknown";
export interface Token { kind: Kind; text: string; from: number; to: number }

const KEYWORDS = new Set(`BASE PREFIX VERSION SELECT CONSTRUCT DESCRIBE ASK WHERE DISTINCT REDUCED FROM NAMED UNION OPTIONAL MINUS GRAPH SERVICE
SILENT FILTER BIND AS VALUES UNDEF GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET LOAD INTO TO CLEAR DROP CREATE ADD MOVE COPY INSERT DATA DELETE
WITH DEFAULT ALL USING NOT IN EXISTS SEPARATOR`.split(/\s+/));
export const FUNCTIONS = `ABS AVG BNODE BOUND CEIL COALESCE CONCAT CONTAINS COUNT DATATYPE DAY ENCODE_FOR_URI FLOOR GROUP_CONCAT HASLANG
HASLANGDIR HOURS IF IRI ISBLANK ISIRI ISLITERAL ISNUMERIC ISTRIPLE ISURI LANG LANGDIR LANGMATCHES LCASE MAX MD5 MIN MINUTES MONTH NOW OBJECT
PREDICATE RAND REGEX REPLACE ROUND SAMETERM SAMEVALUE SAMPLE SECONDS SHA1 SHA256 SHA384 SHA512 STR STRAFTER STRBEFORE STRDT STRENDS STRLANG
STRLANGDIR STRLEN STRSTARTS STRUUID SUBJECT SUBSTR SUM TIMEZONE TRIPLE TZ UCASE URI UUID YEAR`.split(/\s+/);
const FUNCTION_NAMES = new Set(FUNCTIONS);
export const KEYWORD_LIST = [...KEYWORDS].sort();

const LOCAL = String.raw`(?:[\p{L}\p{N}_:]|%[0-9A-Fa-f]{2}|\\[-_~.!$&'()*+,;=/?#@%])(?:(?:[\p{L}\p{N}\p{M}_:.\-·]|%[0-9A-Fa-f]{2}|\\[-_~.!$&'()*+,;=/?#@%])*(?:[\p{L}\p{N}\p{M}_:\-·]|%[0-9A-Fa-f]{2}|\\[-_~.!$&'()*+,;=/?#@%]))?`;
const PATTERNS: readonly (readonly [Kind, RegExp])[] = [
  ["comment", /#[^\n]*/y],
  ["operator", /<<\(|\)>>|<<|>>/y],
  ["iri", /<[^<>"{}|^`\\\u0000-\u0020]*>/y],
  ["string", /"""(?:"{0,2}(?:[^"\\]|\\.))*(?:"""|$)|'''(?:'{0,2}(?:[^'\\]|\\.))*(?:'''|$)/ys],
  ["string", /"(?:[^"\\\n\r]|\\.)*"?|'(?:[^'\\\n\r]|\\.)*'?/y],
  ["keyword", /@(?:prefix|base)\b/y], // of Turtle
  ["lang", /@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?/y],
  ["variable", /[?$][\p{L}\p{N}_][\p{L}\p{N}\p{M}_·]*/uy],
  ["bnode", /_:[\p{L}\p{N}_](?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?/uy],
  ["number", /[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+|[+-]?\d*\.\d+|[+-]?\d+/y],
  ["prefixed", new RegExp(String.raw`(?:\p{L}(?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?)?:(?:${LOCAL})?`, "uy")],
  ["brace", /\{\||\|\}|[{}()[\]]/y],
  ["operator", /\^\^|&&|\|\||!=|<=|>=|[=<>!+*/|^~?-]/y],
  ["punctuation", /[.;,]/y],
];
const WORD = /[\p{L}_][\p{L}\p{N}_]*/uy;

/** One token at a place of a text, which is not white space there. */
function at(text: string, from: number): Token {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = from;
    const found = pattern.exec(text);
    if (found && found[0]) return { kind, text: found[0], from, to: from + found[0].length };
  }
  WORD.lastIndex = from;
  const word = WORD.exec(text)?.[0];
  if (word) {
    const upper = word.toUpperCase();
    const kind = word === "a" ? "a" : upper === "TRUE" || upper === "FALSE" ? "boolean" : KEYWORDS.has(upper) ? "keyword"
      : FUNCTION_NAMES.has(upper) ? "function" : "unknown";
    return { kind, text: word, from, to: from + word.length };
  }
  return { kind: "unknown", text: text[from]!, from, to: from + 1 };
}

export function tokens(text: string): Token[] {
  const found: Token[] = [];
  for (let from = 0; from < text.length;) {
    if (/\s/.test(text[from]!)) { from++; continue; }
    const token = at(text, from);
    found.push(token);
    from = token.to;
  }
  return found;
}

const TAGS: Record<Kind, string | null> = {
  comment: "comment", iri: "url", prefixed: "namespace", bnode: "bnode", variable: "variableName", string: "string", lang: "annotation",
  number: "number", keyword: "keyword", function: "function", boolean: "bool", a: "keyword", brace: "brace", operator: "operator",
  punctuation: "punctuation", unknown: null,
};

const language = StreamLanguage.define<{ quote: string | null }>({
  name: "sparql",
  startState: () => ({ quote: null }),
  token(stream, state) {
    if (state.quote !== null) { // within a string of several lines
      const end = stream.string.indexOf(state.quote, stream.pos);
      if (end < 0) stream.skipToEnd(); else { stream.pos = end + 3; state.quote = null; }
      return "string";
    }
    if (stream.eatSpace()) return null;
    const token = at(stream.string, stream.pos);
    stream.pos = token.to;
    const quote = /^("""|''')/.exec(token.text)?.[0];
    if (quote && !(token.text.length >= 6 && token.text.endsWith(quote))) state.quote = quote;
    return TAGS[token.kind];
  },
  tokenTable: { bnode: tags.labelName, function: tags.function(tags.variableName) },
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"', "'"] } },
});

/** Folds what braces hold. */
const folding = foldService.of((state, from, to) => {
  const line = state.doc.sliceString(from, to);
  const open = line.lastIndexOf("{");
  if (open < 0 || line.indexOf("}", open) >= 0) return null;
  let depth = 0;
  for (const token of tokens(state.doc.sliceString(from + open))) {
    if (token.text === "{") depth++;
    else if (token.text === "}" && --depth === 0) return { from: from + open + 1, to: from + open + token.from };
  }
  return null;
});

export function sparql(): LanguageSupport { return new LanguageSupport(language, [folding, indentUnit.of("  ")]); }

const NEW_LINE = new Set(["SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "WHERE", "OPTIONAL", "FILTER", "BIND", "VALUES", "GRAPH", "SERVICE", "MINUS",
  "GROUP", "ORDER", "LIMIT", "OFFSET", "HAVING", "PREFIX", "BASE", "VERSION", "FROM", "INSERT", "DELETE", "WITH", "USING", "LOAD", "CLEAR", "DROP",
  "CREATE", "ADD", "MOVE", "COPY"]);

/** The same query with one triple a line, keywords in capitals, and two spaces for each level. Comments stay. */
export function format(text: string): string {
  const all = tokens(text);
  let out = "";
  let depth = 0;
  let parentheses = 0;
  let inTriple = false; // after the subject of a triple: `;` and `,` are indented further
  const lineStart = () => out === "" || out.endsWith("\n");
  const pad = () => "  ".repeat(Math.max(0, depth + (inTriple ? 1 : 0)));
  const newLine = () => { out = out.trimEnd(); if (out) out += "\n"; };
  all.forEach((token, position) => {
    const before = all[position - 1];
    const upper = token.kind === "keyword" || token.kind === "function" ? token.text.toUpperCase() : token.text;
    const between = before ? text.slice(before.to, token.from) : "";
    if (token.kind === "comment") {
      if (between.includes("\n")) newLine(); else if (!lineStart()) out += " ";
      out += (lineStart() ? pad() : "") + token.text + "\n";
      return;
    }
    if (token.text === "}" || token.text === "|}") {
      if (token.text === "|}") { out += ` ${token.text}`; return; }
      depth--;
      inTriple = false;
      newLine();
      out += pad() + token.text;
      const next = all[position + 1];
      if (!(next && /^(UNION|AS)$/i.test(next.text)) && next?.text !== "." && next?.text !== ";") out += "\n";
      return;
    }
    const starts = token.kind === "keyword" && parentheses === 0 && NEW_LINE.has(upper)
      && !(upper === "SELECT" && before?.text === "(") && !(upper === "WHERE" && /^(DELETE)$/i.test(before?.text ?? ""))
      && !(upper === "GRAPH" && /^(CLEAR|DROP|CREATE|INTO|SILENT|ADD|MOVE|COPY|TO)$/i.test(before?.text ?? ""))
      && !(upper === "FROM" && false);
    if (starts && !lineStart()) { inTriple = false; newLine(); }
    if (between.split("\n").length > 2 && lineStart() && out && !out.endsWith("\n\n")) out += "\n"; // one empty line stays
    if (lineStart()) out += pad();
    else if (!(token.kind === "punctuation" && token.text === ",") && token.text !== ")" && token.text !== "]" && before && before.text !== "("
      && before.text !== "[" && before.text !== "^^" && token.text !== "^^" && token.kind !== "lang"
      && !(token.text === "(" && (before.kind === "function" || before.kind === "prefixed" || before.kind === "iri") && between === "")
      && !((token.text === "*" || token.text === "+" || token.text === "?" || token.text === "/" || before.text === "/" || before.text === "^"
        || before.text === "!" || token.text === "|" || before.text === "|") && between === "")) out += " ";
    out += upper;
    if (token.text === "(" || token.text === "[") parentheses++;
    else if (token.text === ")" || token.text === "]") parentheses = Math.max(0, parentheses - 1);
    else if (token.text === "{") { depth++; inTriple = false; out += "\n"; }
    else if (parentheses === 0 && token.kind === "punctuation") {
      if (token.text === ".") { inTriple = false; out += "\n"; }
      else if (token.text === ";") { if (depth > 0) inTriple = true; out += "\n"; }
    } else if (parentheses === 0 && before && /^(PREFIX)$/i.test(all[position - 2]?.text ?? "") && token.kind === "iri") out += "\n";
    else if (/^BASE$/i.test(before?.text ?? "") && token.kind === "iri") out += "\n";
  });
  return out.split("\n").map((line) => line.trimEnd()).join("\n").replace(/\n{3,}/g, "\n\n").trim() + "\n";
}

/** What a text is: a query with its form, or an update. */
export function formOf(text: string): "SELECT" | "ASK" | "CONSTRUCT" | "DESCRIBE" | "UPDATE" | null {
  for (const token of tokens(text)) {
    const word = token.text.toUpperCase();
    if (token.kind !== "keyword") continue;
    if (word === "SELECT" || word === "ASK" || word === "CONSTRUCT" || word === "DESCRIBE") return word;
    if (/^(INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH)$/.test(word)) return "UPDATE";
  }
  return null;
}

/** The prefixes that a text declares. */
export function declared(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const all = tokens(text);
  all.forEach((token, position) => {
    const [name, iri] = [all[position + 1], all[position + 2]];
    if (/^PREFIX$/i.test(token.text) && name?.kind === "prefixed" && iri?.kind === "iri") found.set(name.text.slice(0, -1), iri.text.slice(1, -1));
  });
  return found;
}
