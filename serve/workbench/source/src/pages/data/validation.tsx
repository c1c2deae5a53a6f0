/** SHACL: shapes from a graph or as text, and the report as a table. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ServiceError } from "../../api/errors";
import { graphJson } from "../../api/service";
import { select, valueOf } from "../../api/sparql";
import { linkTo } from "../../app/router";
import { Button, Field, Select, Tabs } from "../../ui/controls";
import { FieldEditor } from "../../ui/lazy-editor";
import { Icon } from "../../ui/icons";
import { Empty, Fault, Loading } from "../../ui/states";
import { countOf, plural } from "../service/figures";

interface Result { focusNode: string; resultPath: string | null; severity: string; message: string | string[] | null; sourceShape: string; sourceConstraintComponent: string; value?: string }
interface Report { conforms: boolean; results: Result[]; stats: { focus_nodes_validated: number; constraints_checked: number; violations: number; warnings: number; infos: number; duration_ms: number } }

const SHOWN_MAX = 1000;
const SAMPLE = `PREFIX sh: <http://www.w3.org/ns/shacl#>
PREFIX ex: <https://example.org/>

ex:Named sh:targetSubjectsOf ex:name ;
  sh:property [ sh:path ex:name ; sh:maxCount 1 ] .
`;
const local = (iri: string) => iri.split(/[/#]/).findLast(Boolean) ?? iri;

export function Validation() {
  const [from, setFrom] = useState("graph");
  const [graphs, setGraphs] = useState<{ iri: string; hasShapes: boolean }[] | null>(null);
  const [shapes, setShapes] = useState("");
  const [text, setText] = useState(SAMPLE);
  const [target, setTarget] = useState("default");
  const [report, setReport] = useState<Report | null>(null);
  const [severity, setSeverity] = useState("all");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    select(`PREFIX sh: <http://www.w3.org/ns/shacl#>
SELECT ?g (EXISTS { GRAPH ?g { ?s sh:path|sh:property|sh:targetClass ?o } } AS ?has) WHERE { GRAPH ?g {} }`).then((found) => {
      const all = found.rows.filter((row) => row.g?.type === "uri").map((row) => ({ iri: valueOf(row.g), hasShapes: valueOf(row.has) === "true" }));
      all.sort((one, other) => Number(other.hasShapes) - Number(one.hasShapes) || (one.iri < other.iri ? -1 : 1));
      setGraphs(all);
      setShapes(all[0]?.iri ?? "");
      if (!all.some((one) => one.hasShapes)) setFrom("text");
    }, setError);
  }, []);
  const place = error instanceof ServiceError && from === "text" ? error.place : null;
  const fault = useMemo(() => place && { ...place, message: (error as ServiceError).message }, [error]);
  const validate = async () => {
    setBusy(true); setError(null); setReport(null); setSeverity("all");
    try {
      setReport(await graphJson<Report>("/shacl/validate", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...(from === "graph" ? { shapes_graph: shapes } : { shapes: text }), graph: target }),
      }));
    } catch (failure) { setError(failure); } finally { setBusy(false); }
  };
  if (graphs === null) return error !== null ? <Fault error={error} /> : <Loading what="Looking for shapes" />;
  return (
    <>
      <section class="card"><div class="body stack">
        <Tabs label="Where the shapes are" look="segments" value={from} onPick={setFrom} items={[{ id: "graph", text: "Shapes in a graph" }, { id: "text", text: "Shapes as text" }]} />
        {from === "graph" ? (graphs.length === 0 ? <p class="muted">There is no named graph. Load shapes into one, or write them as text.</p> : (
          <Field label="Graph of the shapes">{(id) => <Select id={id} value={shapes} onPick={setShapes} options={graphs.map((one) => [one.iri, `${one.iri.slice(0, 200)}${one.hasShapes ? "" : " (no shapes)"}`] as const)} />}</Field>
        )) : (
          <Field label="Shapes (Turtle)">{() => <FieldEditor label="Shapes (Turtle)" language="turtle" rows={12} value={text} onChange={setText} onRun={() => void validate()} fault={fault} />}</Field>
        )}
        <Field label="Data to validate">{(id) => <Select id={id} value={target} onPick={setTarget} options={[["default", "the default graph"], ["union", "all graphs together"], ...graphs.map((one) => [one.iri, one.iri.slice(0, 200)] as const)]} />}</Field>
        <div class="row"><Button kind="primary" icon="check" disabled={isBusy || (from === "graph" ? !shapes : !text.trim())} onClick={validate}>Validate</Button>{isBusy && <span class="row muted" role="status"><span class="spinner" />Validating …</span>}</div>
      </div></section>
      {error !== null && <Fault error={error} />}
      {report && <ReportTable report={report} severity={severity} setSeverity={setSeverity} />}
    </>
  );
}

function ReportTable({ report, severity, setSeverity }: { report: Report; severity: string; setSeverity: (one: string) => void }) {
  const { stats, results } = report;
  const found = results.filter((one) => severity === "all" || local(one.severity) === severity);
  const items = [{ id: "all", text: "All", count: results.length }, { id: "Violation", text: "Violations", count: stats.violations }, { id: "Warning", text: "Warnings", count: stats.warnings }, { id: "Info", text: "Infos", count: stats.infos }];
  return (
    <section class="card report" aria-label="Report">
      <header class="wrap"><h2>{report.conforms ? "The data conform" : "The data do not conform"}</h2><span class={`badge ${report.conforms ? "good" : "bad"}`}><Icon name={report.conforms ? "check" : "warning"} size={12} />{plural(results.length, "result")}</span>
        <span class="muted small">{plural(stats.focus_nodes_validated, "node")}, {plural(stats.constraints_checked, "constraint")}, {countOf(stats.duration_ms)} ms</span></header>
      {results.length === 0 ? <Empty icon="check" title="Nothing to mend">{stats.focus_nodes_validated === 0 ? "But the shapes have no targets in this graph: is it the right one?" : "Every node satisfies the shapes."}</Empty> : <>
        <div class="body"><Tabs label="Severity" look="segments" value={severity} onPick={setSeverity} items={items} /></div>
        <div class="table-wrap" tabIndex={0} role="region" aria-label="Results of the validation">
          <table class="table">
            <thead><tr><th>Severity</th><th>Resource</th><th>Property</th><th>Message</th><th>Constraint</th></tr></thead>
            <tbody>{found.slice(0, SHOWN_MAX).map((one, at) => (
              <tr key={at}>
                <td><span class={`badge ${{ Violation: "bad", Warning: "warn" }[local(one.severity)] ?? ""}`}>{local(one.severity)}</span></td>
                <td><Node text={one.focusNode} /></td><td title={one.resultPath ?? ""}>{one.resultPath === null ? <span class="muted">–</span> : local(one.resultPath).slice(0, 200)}</td>
                <td>{[one.message ?? ""].flat().join("; ").slice(0, 500)}</td><td class="small muted" title={one.sourceShape}>{local(one.sourceConstraintComponent).replace(/ConstraintComponent$/, "")}</td>
              </tr>
            ))}</tbody>
          </table>
        </div>
        {found.length > SHOWN_MAX && <div class="body muted small">{countOf(found.length - SHOWN_MAX)} more results are not shown.</div>}
      </>}
    </section>
  );
}

/** IRIs are links to their page; blank nodes and literals are text. */
function Node({ text }: { text: string }) {
  return /^[a-z][a-z0-9+.-]*:[^\s"]+$/i.test(text) && !text.startsWith("_:") ? <a href={linkTo.resource(text)} title={text.slice(0, 500)}>{local(text).slice(0, 200)}</a> : <>{text.slice(0, 300)}</>;
}
