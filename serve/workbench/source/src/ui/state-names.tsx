/** The names of states, for fields that take one: an input with this id as its `list` suggests them. */
import type { NamedState } from "../api/history";

export function StateNames({ id, states }: { id: string; states: readonly NamedState[] | null }) {
  return <datalist id={id}>{(states ?? []).filter((one) => one.kept).map((one) => <option key={one.name} value={one.name}>{`index ${one.index.toLocaleString("en")}`}</option>)}</datalist>;
}
