/** A list of triples. */
import type { Term } from "../api/terms";
import { TermView } from "./term";

export default function GraphView({ triples }: { triples: { subject: Term; predicate: Term; object: Term }[]; onOpen?: (iri: string) => void }) {
  return <div class="triples"><ul>{triples.slice(0, 500).map((one, at) => <li key={at}><TermView term={one.subject} /> <TermView term={one.predicate} /> <TermView term={one.object} /></li>)}</ul></div>;
}
