/** A form for one value of a property, and the updates that it makes. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ServiceError } from "../../api/errors";
import { update } from "../../api/sparql";
import { written, XSD, type Term } from "../../api/terms";
import { Button, Input, Select } from "../../ui/controls";
import { findingsOf } from "./checks";

const KINDS = [["text", "Text"], ["language", "Text in a language"], ["iri", "IRI"], ["integer", "Integer"], ["decimal", "Decimal"], ["date", "Date"],
  ["dateTime", "Date and time"], ["boolean", "Boolean"], ["other", "Other datatype"]] as const;
type Kind = typeof KINDS[number][0];

function kindOf(term: Term | undefined): Kind {
  if (term?.type === "uri") return "iri";
  if (term?.type !== "literal") return "text";
  if (term["xml:lang"]) return "language";
  const name = term.datatype?.startsWith(XSD) ? term.datatype.slice(XSD.length) : term.datatype;
  return name === undefined || name === "string" ? "text" : ["integer", "decimal", "date", "dateTime", "boolean"].includes(name) ? name as Kind : "other";
}

function termOf(kind: Kind, value: string, detail: string): Term | string {
  switch (kind) {
    case "iri": return /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|^`\\]*$/.test(value) ? { type: "uri", value } : "An IRI begins with a scheme, such as https:, and has no spaces.";
    case "language": return /^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$/.test(detail) ? { type: "literal", value, "xml:lang": detail } : "Give a language, such as en or pt-BR.";
    case "text": return { type: "literal", value };
    case "boolean": return { type: "literal", value: value === "true" ? "true" : "false", datatype: `${XSD}boolean` };
    case "other": return /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*$/.test(detail) ? { type: "literal", value, datatype: detail } : "Give the IRI of the datatype.";
    default: return { type: "literal", value: value.trim(), datatype: XSD + kind };
  }
}

const inGraph = (graph: string | null, triple: string) => graph === null ? `{ ${triple} }` : `{ GRAPH ${written({ type: "uri", value: graph })} { ${triple} } }`;
function tripleOf(subject: string, predicate: string, object: Term) { return `${written({ type: "uri", value: subject })} ${written({ type: "uri", value: predicate })} ${written(object)}`; }

/** Replaces one value, adds one (`before` is null) or takes one out (`after` is null). False where it is not there any more. */
export async function changeValue(subject: string, predicate: string, graph: string | null, before: Term | null, after: Term | null): Promise<boolean> {
  const old = before && inGraph(graph, tripleOf(subject, predicate, before)), made = after && inGraph(graph, tripleOf(subject, predicate, after));
  const text = old === null ? `INSERT DATA ${made}` : `DELETE ${old} ${made === null ? "" : `INSERT ${made} `}WHERE ${old}`;
  const { affected_triples: affected } = await update(text);
  return affected > 0 || (before !== null && after !== null && written(before) === written(after));
}

export function ValueForm(props: {
  subject: string; predicate?: string; graph: string | null; value?: Term; label: string;
  onDone: (changed: { predicate: string; before: Term | null; after: Term; wasThere: boolean }) => void; onCancel: () => void;
}) {
  const { value } = props;
  const [kind, setKind] = useState<Kind>(kindOf(value));
  const [text, setText] = useState(value?.type === "uri" || value?.type === "literal" ? value.value : "");
  const [detail, setDetail] = useState(value?.type === "literal" ? value["xml:lang"] ?? value.datatype ?? "" : "");
  const [predicate, setPredicate] = useState(props.predicate ?? "");
  const [faults, setFaults] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => { form.current?.querySelector<HTMLElement>(".first")?.focus(); }, []);
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const term = termOf(kind, text, detail.trim());
    if (typeof term === "string") { setFaults([term]); return; }
    const by = props.predicate ?? predicate.trim();
    if (typeof termOf("iri", by, "") === "string") { setFaults(["The property is an IRI, such as http://www.w3.org/2000/01/rdf-schema#label."]); return; }
    setBusy(true);
    setFaults([]);
    try {
      const wasThere = await changeValue(props.subject, by, props.graph, value ?? null, term);
      props.onDone({ predicate: by, before: value ?? null, after: term, wasThere });
    } catch (error) {
      const found = error instanceof ServiceError ? findingsOf(error.body.report, props.subject) : [];
      setFaults(found.length ? [...new Set(found.filter((one) => one.severity === "violation").map((one) => one.path === by || one.path === null ? one.message : `${one.path}: ${one.message}`))] : [(error as Error).message]);
      setBusy(false);
    }
  };
  const wrong = faults.length > 0;
  return (
    <form ref={form} class="value-form" aria-label={props.label} onSubmit={save} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); props.onCancel(); } }}>
      {props.predicate === undefined && <Input class="first" required placeholder="IRI of the property" aria-label="Property" list="known-predicates" value={predicate} onInput={(event) => setPredicate(event.currentTarget.value)} />}
      <div class="row nowrap value-line">
        <Select aria-label="Kind of value" value={kind} options={KINDS} onPick={(one) => { setKind(one as Kind); setDetail(""); }} />
        {kind === "boolean" ? <Select aria-label="Value" value={text === "true" ? "true" : "false"} options={["true", "false"]} onPick={setText} />
          : text.length > 80 || text.includes("\n") ? <textarea class={`input grow ${props.predicate === undefined ? "" : "first"}`} rows={4} aria-label="Value" aria-invalid={wrong} value={text} onInput={(event) => setText(event.currentTarget.value)} />
            : <Input class={`grow ${props.predicate === undefined ? "" : "first"}`} aria-label="Value" aria-invalid={wrong} aria-describedby={wrong ? "value-faults" : undefined} type={kind === "date" ? "date" : "text"} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
        {kind === "language" && <Input class="short" aria-label="Language" placeholder="en" value={detail} onInput={(event) => setDetail(event.currentTarget.value)} />}
      </div>
      {kind === "other" && <Input aria-label="Datatype" placeholder="IRI of the datatype" value={detail} onInput={(event) => setDetail(event.currentTarget.value)} />}
      {wrong && <div id="value-faults" class="faults" role="alert">{faults.slice(0, 5).map((one) => <div key={one}>{one}</div>)}</div>}
      <div class="row tight"><Button size="small" kind="primary" type="submit" disabled={busy}>{busy ? "Saving …" : "Save"}</Button><Button size="small" onClick={props.onCancel}>Cancel</Button></div>
    </form>
  );
}
