/** A question to the service as a part of a page: its answer, its error, and a way to ask again. A later question ends an earlier one. */
import { useEffect, useState } from "preact/hooks";

export interface Asked<T> { value: T | null; error: unknown; isLoading: boolean; again: () => void }

export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, on: readonly unknown[]): Asked<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown; isLoading: boolean }>({ value: null, error: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const aborting = new AbortController();
    setState((before) => ({ ...before, error: null, isLoading: true }));
    ask(aborting.signal).then(
      (value) => { if (!aborting.signal.aborted) setState({ value, error: null, isLoading: false }); },
      (error: unknown) => { if (!aborting.signal.aborted) setState({ value: null, error, isLoading: false }); },
    );
    return () => aborting.abort();
  }, [...on, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}
