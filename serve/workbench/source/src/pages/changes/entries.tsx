/** Changes of the past: entries of the log, with the statements that they removed and added. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { readHistory, type About, type Changed, type Entry, type HistoryPage } from "../../api/history";
import { readLabels } from "../../api/neighbours";
import { statementOf, type Statement } from "../../api/statements";
import type { Term } from "../../api/terms";
import { countOf, timeOf } from "../service/figures";
import { useAsked } from "../../ui/asked";
import { Button } from "../../ui/controls";
import { toast } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Empty, Fault, Loading } from "../../ui/states";
import { TermView } from "../../ui/term";

const SHOWN = 10; // lines of one change that are shown at first
const MORE = 200; // with each click after that
const PARSED_MAX = 100_000; // characters of a line; of a longer one its beginning is shown
const CUT = 400;

type Sign = "removed" | "added";
interface Line { sign: Sign; text: string; isGraph: boolean }

function linesOf(changed: Changed): Line[] {
  const lines = (sign: Sign, texts: string[], isGraph: boolean) => texts.map((text): Line => ({ sign, text, isGraph }));
  return [...lines("removed", changed.dropped_graphs, true), ...lines("removed", changed.removed, false),
    ...lines("added", changed.created_graphs, true), ...lines("added", changed.added, false)];
}

/** The lines of one change: what it removed, then what it added. */
export function ChangedLines({ changed, first = SHOWN }: { changed: Changed; first?: number }) {
  const lines = useMemo(() => linesOf(changed), [changed]);
  const [limit, setLimit] = useState(first);
  const shown = useMemo(() => lines.slice(0, limit).map((line) => ({ line, statement: line.isGraph || line.text.length > PARSED_MAX ? null : statementOf(line.text) })), [lines, limit]);
  useEffect(() => {
    const terms = shown.flatMap(({ statement }) => statement ? [statement.subject, statement.predicate, statement.object] : []);
    void readLabels(terms.flatMap((term) => term.type === "uri" ? [term.value] : []).slice(0, 800));
  }, [shown]);
  return (
    <>
      <ul class="changed">
        {shown.map(({ line, statement }, at) => (
          <li key={at} class={line.sign}>
            <span class="sign mono" aria-hidden="true">{line.sign === "added" ? "+" : "−"}</span><span class="visually-hidden">{line.sign}: </span>
            {line.isGraph ? <span class="said"><Icon name="folder" size={12} />graph <TermView term={graphTerm(line.text)} /></span>
              : statement ? <StatementView statement={statement} />
                : <code class="said">{line.text.slice(0, CUT)}{line.text.length > CUT && "…"}</code>}
          </li>
        ))}
      </ul>
      {limit < lines.length && <Button size="small" kind="quiet" icon="down" onClick={() => setLimit(limit + MORE)}>Show {countOf(Math.min(MORE, lines.length - limit))} more of {countOf(lines.length)}</Button>}
    </>
  );
}

function graphTerm(name: string): Term { return name.startsWith("_:") ? { type: "bnode", value: name.slice(2) } : { type: "uri", value: name }; }

function StatementView({ statement }: { statement: Statement }) {
  return (
    <span class="said">
      <TermView term={statement.subject} /><TermView term={statement.predicate} /><TermView term={statement.object} />
      {statement.graph && <span class="in-graph small"><Icon name="folder" size={11} /><span class="visually-hidden">in the graph </span><TermView term={statement.graph} /></span>}
    </span>
  );
}

/** How much a change removed and added, as badges. */
export function Amount({ changed }: { changed: Changed }) {
  const [removed, added] = [changed.removed.length + changed.dropped_graphs.length, changed.added.length + changed.created_graphs.length];
  return <>{added > 0 && <span class="badge good" title="added">+{countOf(added)}</span>}{removed > 0 && <span class="badge bad" title="removed">−{countOf(removed)}</span>}</>;
}

/** The changes of some statements, the newest first. links: what one can do with an entry. */
export function ChangeHistory({ about, links }: { about: About; links: (entry: Entry, oldest: number) => ComponentChildren }) {
  const first = useAsked((signal) => readHistory(about, null, signal), [JSON.stringify(about)]);
  const [older, setOlder] = useState<HistoryPage[]>([]);
  const [busy, setBusy] = useState(false);
  useEffect(() => setOlder([]), [first.value]);
  const pages = first.value ? [first.value, ...older] : [];
  const entries = useMemo(() => joined(pages), [first.value, older]);
  if (first.error) return <div class="body"><Fault error={first.error} again={first.again} /></div>;
  if (!first.value) return <Loading what="Reading the log" />;
  const { cursor } = pages.at(-1)!;
  const oldest = first.value.oldest_index;
  const grow = async () => {
    setBusy(true);
    try {
      const next = await readHistory(about, cursor);
      setOlder((before) => [...before, next]);
    } catch (error) { toast((error as Error).message, "bad"); }
    setBusy(false);
  };
  return (
    <>
      {entries.length === 0 && cursor === null && <Empty icon="history" title="No changes">{oldest > 0 ? `Changes are kept since log index ${countOf(oldest)}.` : "The log has no change of this."}</Empty>}
      <ol class="changes" aria-label="Changes, the newest first">
        {entries.map((one) => (
          <li key={one.index} class="change">
            <div class="row">
              <time dateTime={one.timestamp} title={one.timestamp}>{timeOf(one.timestamp)}</time>
              <span class="muted small num">index {countOf(one.index)}</span>
              {one.author && <span class="badge" title="The principal, with its provider"><Icon name="user" size={12} />{one.author}</span>}
              {one.interface && <span class="badge" title="The interface by which it came">{one.interface}</span>}
              <Amount changed={one} />
              <span class="row tight links small">{links(one, oldest)}</span>
            </div>
            <ChangedLines changed={one} />
          </li>
        ))}
      </ol>
      {cursor !== null
        ? <div class="body"><Button icon="down" disabled={busy} onClick={() => void grow()}>{busy ? "Reading …" : "Older changes"}</Button></div>
        : entries.length > 0 && oldest > 0 && <p class="body muted small">Changes are kept since log index {countOf(oldest)}.</p>}
    </>
  );
}

/** The entries of pages; one that goes on from page to page is one entry. */
function joined(pages: readonly HistoryPage[]): Entry[] {
  const found: Entry[] = [];
  for (const entry of pages.flatMap((page) => page.entries)) {
    const last = found.at(-1);
    if (last?.index !== entry.index) { found.push(entry); continue; }
    found[found.length - 1] = {
      ...entry, removed: [...last.removed, ...entry.removed], added: [...last.added, ...entry.added],
      dropped_graphs: [...last.dropped_graphs, ...entry.dropped_graphs], created_graphs: [...last.created_graphs, ...entry.created_graphs],
    };
  }
  return found;
}
