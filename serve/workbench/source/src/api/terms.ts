/** Terms of RDF as the SPARQL results format writes them (SPARQL 1.2 with triple terms and directions). */

export type Term =
  | { type: "uri"; value: string }
  | { type: "bnode"; value: string }
  | { type: "literal"; value: string; "xml:lang"?: string; datatype?: string; "its:dir"?: string }
  | { type: "triple"; value: { subject: Term; predicate: Term; object: Term } };
export type Row = Record<string, Term | undefined>;

export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
export const RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label";
const NUMERIC = new Set(["integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
  "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"].map((name) => XSD + name));
const TEMPORAL = new Set(["date", "dateTime", "gYear", "gYearMonth", "dateTimeStamp"].map((name) => XSD + name));
export const GEOMETRIES = new Set(["wktLiteral", "geoJSONLiteral"].map((name) => `http://www.opengis.net/ont/geosparql#${name}`));

export function isNumeric(term: Term | undefined): boolean { return term?.type === "literal" && NUMERIC.has(term.datatype ?? ""); }
export function isTemporal(term: Term | undefined): boolean { return term?.type === "literal" && TEMPORAL.has(term.datatype ?? ""); }
export function isGeometry(term: Term | undefined): boolean { return term?.type === "literal" && GEOMETRIES.has(term.datatype ?? ""); }

/** The term as Turtle and SPARQL write it. */
export function written(term: Term): string {
  switch (term.type) {
    case "uri": return `<${term.value.replace(/[\u0000-\u0020<>"{}|^`\\]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)}>`;
    case "bnode": return `_:${term.value}`;
    case "triple": return `<<( ${written(term.value.subject)} ${written(term.value.predicate)} ${written(term.value.object)} )>>`;
    default: {
      const text = `"${term.value.replace(/["\\\n\r\t]/g, (one) => ({ '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[one]!)}"`;
      if (term["xml:lang"]) return `${text}@${term["xml:lang"]}${term["its:dir"] ? `--${term["its:dir"]}` : ""}`;
      return term.datatype && term.datatype !== `${XSD}string` ? `${text}^^<${term.datatype}>` : text;
    }
  }
}

/** An IRI that may be opened in a new window: of the web only, so never `javascript:`. */
export function webAddress(iri: string): string | null {
  try {
    const url = new URL(iri);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch { return null; }
}
