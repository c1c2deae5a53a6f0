/** One term of RDF: short, with its label, its language or datatype; links and images shown as such. */
import { config } from "../api/session";
import { isNumeric, webAddress, written, XSD, type Term } from "../api/terms";
import { labels, shown } from "../api/vocabulary";
import { linkTo } from "../app/router";
import { Icon } from "./icons";

const LONG = 400; // characters that a cell shows
const IMAGE = /\.(png|jpe?g|gif|webp|svg|avif)$/i;

/** Whether the page may show the image at an address: one of the service, or of a host that is configured. */
export function mayShowImage(iri: string): boolean {
  const address = webAddress(iri);
  if (address === null || !IMAGE.test(new URL(address).pathname)) return false;
  const { origin } = new URL(address);
  return origin === location.origin || (config.value?.image_hosts.includes(origin) ?? false);
}

export function TermView({ term, plain = false, label = true }: { term: Term | undefined; plain?: boolean; label?: boolean }) {
  if (term === undefined) return null;
  switch (term.type) {
    case "uri": {
      const name = label ? labels.value.get(term.value) : undefined;
      const text = shown(term.value);
      const address = webAddress(term.value);
      return (
        <span class="term iri" title={term.value}>
          {mayShowImage(term.value) && <img class="thumb" src={term.value} alt="" loading="lazy" />}
          {plain ? <span class="text">{name ?? text}</span> : <a class="text" href={linkTo.resource(term.value)}>{name ?? text}</a>}
          {name !== undefined && <span class="tag">{text}</span>}
          {!plain && address !== null && IMAGE.test(address) && (
            <a class="tag" href={address} target="_blank" rel="noopener noreferrer" aria-label={`Open ${address}`}><Icon name={IMAGE.test(address) ? "image" : "external"} size={12} /></a>
          )}
        </span>
      );
    }
    case "bnode": return <span class="term bnode" title={`_:${term.value}`}><span class="text">_:{term.value.slice(0, 12)}</span></span>;
    case "triple": return (
      <span class="term triple" title={written(term)}>
        <span class="tag">⟨⟨</span><TermView term={term.value.subject} plain={plain} /><TermView term={term.value.predicate} plain={plain} /><TermView term={term.value.object} plain={plain} /><span class="tag">⟩⟩</span>
      </span>
    );
    default: {
      const text = term.value.length > LONG ? `${term.value.slice(0, LONG)}…` : term.value;
      const datatype = term.datatype;
      const tag = term["xml:lang"] ?? (datatype && datatype !== `${XSD}string` && !datatype.startsWith(XSD) ? shown(datatype) : undefined);
      const address = term.value.length < 2000 && /^https?:\/\//.test(term.value) ? webAddress(term.value) : null;
      return (
        <span class={`term literal${isNumeric(term) ? " number" : ""}`} title={text + (datatype ? `\n${shown(datatype)}` : "")}>
          {address && !plain ? <a class="text" href={address} target="_blank" rel="noopener noreferrer">{text}</a> : <span class="text">{text}</span>}
          {tag && <span class="tag">{tag}</span>}
        </span>
      );
    }
  }
}
