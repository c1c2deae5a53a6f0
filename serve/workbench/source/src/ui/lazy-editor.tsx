/** The editor, loaded when it is first shown. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { EditorProps } from "./editor";
import { Loading } from "./states";

export function Editor(props: EditorProps) {
  const [Loaded, setLoaded] = useState<ComponentType<EditorProps> | null>(null);
  useEffect(() => { void import("./editor").then((module) => setLoaded(() => module.default)); }, []);
  return Loaded ? <Loaded {...props} /> : <div class="editor"><Loading what="Loading the editor" /></div>;
}

/** The same as a field of a form. */
export function FieldEditor({ rows = 6, ...props }: EditorProps & { rows?: number }) {
  return <div class="field-editor" style={{ height: `${rows * 21 + 22}px` }}><Editor {...props} /></div>;
}
