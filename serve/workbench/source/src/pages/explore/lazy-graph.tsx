/** The drawn graph, loaded when it is first needed. */
import { useEffect, useState } from "preact/hooks";
import type GraphView from "../../ui/graph";
import { Fault, Loading } from "../../ui/states";

type View = typeof GraphView;

export function LazyGraph(props: Parameters<View>[0]) {
  const [found, setFound] = useState<View | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { import("../../ui/graph").then((module) => setFound(() => module.default), setError); }, []);
  if (error) return <Fault error={error} again={() => location.reload()} />;
  if (!found) return <Loading what="Loading the graph" />;
  const Found = found;
  return <Found {...props} />;
}
