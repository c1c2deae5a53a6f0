/** The state that a query is asked of: the present, or a past one by a slider over the log's indexes, or by an index, a time or a name. */
import { useEffect, useRef, useState } from "preact/hooks";
import { momentOf, readNamedStates, readSpan, readState, type NamedState } from "../../api/history";
import { useAsked } from "../../ui/asked";
import { Button, Input } from "../../ui/controls";
import { StateNames } from "../../ui/state-names";
import { Fault } from "../../ui/states";
import { countOf, timeOf } from "../service/figures";

const SETTLED_MS = 400; // after the last move of the slider the query runs

interface Props {
  /** A log index, a time or a name; null: the present. */
  asOf: string | null;
  /** The newest log index that answers have told of. */
  newestSeen: number;
  isUpdate: boolean;
  onPick: (asOf: string | null) => void;
  /** Called a moment after the last choice. */
  onSettled: () => void;
}

export function AsOf({ asOf, newestSeen, isUpdate, onPick, onSettled }: Props) {
  const span = useAsked(readSpan, []);
  const named = useAsked(readNamedStates, []); // only suggested, so its error is not shown
  // Its error is not shown: the answer of the query says the same.
  const state = useAsked(async (signal) => {
    if (asOf === null) return null;
    await settled(signal);
    return readState(asOf, signal);
  }, [asOf]);
  const settling = useRef(0);
  useEffect(() => () => clearTimeout(settling.current), []);
  const [oldest, newest] = [span.value?.oldest ?? 0, Math.max(span.value?.newest ?? 0, newestSeen)];
  const index = asOf === null ? newest : /^\d+$/.test(asOf) ? Number(asOf) : state.value?.index ?? newest;
  const pick = (to: string | null) => {
    if (to === asOf) return;
    onPick(to);
    clearTimeout(settling.current);
    settling.current = setTimeout(onSettled, SETTLED_MS);
  };
  const told = asOf === null ? "Now" : state.isLoading ? "…" : state.value
    ? `${state.value.index === Number(asOf) ? "Made" : `Last change: index ${countOf(state.value.index)},`} ${timeOf(state.value.timestamp)}${state.value.author ? ` by ${state.value.author}` : ""}` : "";
  return (
    <div class="as-of" role="group" aria-label="State that is queried">
      <span class="small">As of</span>
      <input type="range" class="grow" aria-label="Log index" aria-valuetext={asOf === null ? "now" : `index ${index}${told && told !== "…" ? `, ${told}` : ""}`}
        min={oldest} max={newest} value={index} disabled={span.value === null || isUpdate}
        onInput={(event) => { const to = Number(event.currentTarget.value); pick(to >= newest ? null : String(to)); }} />
      <MomentInput asOf={asOf} states={named.value} disabled={isUpdate} onPick={pick} />
      <Button size="small" disabled={asOf === null} onClick={() => pick(null)}>Now</Button>
      <span class="as-of-told small muted" role="status">{isUpdate ? "An update changes the present: nothing can be changed in the past." : told}</span>
      {span.error ? <Fault error={span.error} again={span.again} /> : null}
    </div>
  );
}

function MomentInput({ asOf, states, disabled, onPick }: { asOf: string | null; states: readonly NamedState[] | null; disabled: boolean; onPick: (asOf: string | null) => void }) {
  const [text, setText] = useState(asOf ?? "");
  useEffect(() => setText(asOf ?? ""), [asOf]);
  return (
    <>
      <Input small class="mono" list="queried-states" value={text} placeholder="now" disabled={disabled} aria-label="Log index, time or name" title="A log index, a name, or a time such as 2026-11-27 08:00"
        onInput={(event) => setText(event.currentTarget.value)} onChange={(event) => onPick(momentOf(event.currentTarget.value) || null)} />
      <StateNames id="queried-states" states={states} />
    </>
  );
}

/** Returns where nobody moves on for a moment, so a slider asks for what it stops at only. */
async function settled(signal: AbortSignal): Promise<void> {
  await new Promise((done) => setTimeout(done, SETTLED_MS));
  signal.throwIfAborted();
}
