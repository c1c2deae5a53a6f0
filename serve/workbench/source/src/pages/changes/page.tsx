/** Changes: the difference of two states, of everything, a graph or a resource; without a state to begin from, the last changes. */
import { useState } from "preact/hooks";
import { differencePath, momentOf, readNamedStates, type About, type Difference, type NamedState } from "../../api/history";
import { graphJson } from "../../api/service";
import { go, href, place } from "../../app/router";
import { useAsked } from "../../ui/asked";
import { Button, Field, Input, Menu, MenuItem, Select } from "../../ui/controls";
import { toast } from "../../ui/dialog";
import { downloadFrom } from "../../ui/download";
import { StateNames } from "../../ui/state-names";
import { Empty, Fault, Loading } from "../../ui/states";
import { countOf } from "../service/figures";
import { Amount, ChangeHistory, ChangedLines } from "./entries";
import { NamedStates } from "./named-states";

type Kind = "all" | "default" | "graph" | "resource";
const KINDS = [["all", "Everything"], ["default", "The default graph"], ["graph", "A graph"], ["resource", "A resource"]] as const;
const FORMATS = [["RDF Patch", "application/rdf-patch", "rdfp"], ["N-Quads with + and −", "text/x-diff", "diff"]] as const;
const SHOWN = 100; // lines at first

interface Asked { about: About; from: string | null; to: string | null }

/** What the address asks for. */
function askedOf(parameters: URLSearchParams): Asked {
  const names = ["resource", "graph", "default"] as const;
  const about = Object.fromEntries(names.filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)!]));
  return { about, from: parameters.get("from") || null, to: parameters.get("to") || null };
}
const addressed = ({ about, from, to }: Asked) => ({ ...about, from: from ?? undefined, to: to ?? undefined });

export default function ChangesPage() {
  const asked = askedOf(place.value.parameters);
  const { about, from, to } = asked;
  const key = JSON.stringify(asked);
  const named = useAsked(readNamedStates, []);
  return (
    <div class="page">
      <div class="title"><div class="grow"><h1>Changes</h1><p class="muted">Who changed what and when, and the difference of two states.</p></div></div>
      <Choice key={key} asked={asked} states={named.value} />
      {from !== null ? <Compared key={key} about={about} from={from} to={to} /> : (
        <section class="card">
          <header><h2>Last changes</h2></header>
          <ChangeHistory about={about} links={({ index }, oldest) => <>
            {index > oldest && <a href={href("changes", { ...about, from: String(index - 1) })} title={`The difference of the state before index ${countOf(index)} and the present`}>Difference to now</a>}
          </>} />
        </section>
      )}
      <NamedStates read={named} compareTo={(name) => href("changes", addressed({ about, from: name, to: null }))} />
    </div>
  );
}

function Choice({ asked, states }: { asked: Asked; states: readonly NamedState[] | null }) {
  const { about } = asked;
  const [kind, setKind] = useState<Kind>(about.resource !== undefined ? "resource" : about.graph !== undefined ? "graph" : about.default !== undefined ? "default" : "all");
  const [iri, setIri] = useState(about.resource ?? about.graph ?? "");
  const [from, setFrom] = useState(asked.from ?? "");
  const [to, setTo] = useState(asked.to ?? "");
  const show = () => {
    const chosen: About = kind === "all" ? {} : kind === "default" ? { default: "" } : { [kind]: iri.trim() };
    go("changes", addressed({ about: chosen, from: momentOf(from) || null, to: momentOf(to) || null }));
  };
  return (
    <form class="card" onSubmit={(event) => { event.preventDefault(); show(); }}>
      <div class="body choice">
        <Field label="Of">{(id) => <Select id={id} value={kind} options={KINDS} onPick={(one) => setKind(one as Kind)} />}</Field>
        {(kind === "graph" || kind === "resource") && <Field label={kind === "graph" ? "IRI of the graph" : "IRI of the resource"}>{(id) => <Input id={id} required value={iri} onInput={(event) => setIri(event.currentTarget.value)} />}</Field>}
        <Field label="From" hint="A log index, a name, or a time such as 2026-11-27 08:00. Empty: the last changes.">{(id) => <Input id={id} list="named-states" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />}</Field>
        <Field label="To">{(id) => <Input id={id} placeholder="now" list="named-states" value={to} onInput={(event) => setTo(event.currentTarget.value)} />}</Field>
      </div>
      <div class="body row"><Button kind="primary" type="submit">Show</Button>{asked.from !== null && <a class="button" href={href("changes", addressed({ about, from: null, to: null }))}>Last changes</a>}</div>
      <StateNames id="named-states" states={states} />
    </form>
  );
}

function Compared({ about, from, to }: { about: About; from: string; to: string | null }) {
  const path = differencePath(about, from, to);
  const read = useAsked<Difference>((signal) => graphJson(path, { signal }), [path]);
  const found = read.value;
  const save = (type: string, ending: string) => downloadFrom(path, type, `difference-${found!.from_index}-${found!.to_index}.${ending}`)
    .catch((error: Error) => toast(error.message, "bad"));
  return (
    <section class="card" aria-busy={read.isLoading}>
      <header class="wrap">
        <h2>Difference{found && ` from index ${countOf(found.from_index)} to ${countOf(found.to_index)}`}</h2>
        {found && <>
          <Amount changed={found} />
          <a class="button small" href={href("changes", addressed({ about, from: String(found.to_index), to: String(found.from_index) }))}>Other way round</a>
          <Menu title="Download the difference" text="Download" icon="download" size="small">{(close) => FORMATS.map(([name, type, ending]) => <MenuItem key={type} onPick={() => { void save(type, ending); close(); }}>{name}</MenuItem>)}</Menu>
        </>}
      </header>
      {read.error ? <div class="body"><Fault error={read.error} again={read.again} /></div>
        : !found ? <Loading what="Comparing" />
          : found.removed.length + found.added.length + found.dropped_graphs.length + found.created_graphs.length === 0
            ? <Empty icon="check" title="No difference">The two states have the same statements.</Empty>
            : <div class="body"><ChangedLines changed={found} first={SHOWN} /></div>}
    </section>
  );
}
