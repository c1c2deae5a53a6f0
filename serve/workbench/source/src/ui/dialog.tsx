/** Dialogs (the browser's own, so focus and Escape are right) and toasts. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./controls";
import { Icon } from "./icons";

export function Dialog(props: {
  title: string; onClose: () => void; onSubmit?: () => void; wide?: boolean; foot?: ComponentChildren; children: ComponentChildren;
}) {
  const own = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    own.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={own} class={`dialog${props.wide ? " wide" : ""}`} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); props.onClose(); }}
      onKeyDown={(event) => event.stopPropagation()}>
      <form onSubmit={(event) => { event.preventDefault(); props.onSubmit?.(); }}>
        <div class="head"><h2 id={id}>{props.title}</h2><Button kind="quiet" icon="close" title="Close" onClick={props.onClose} /></div>
        <div class="content">{props.children}</div>
        {props.foot && <div class="foot">{props.foot}</div>}
      </form>
    </dialog>
  );
}

interface Question { title: string; text: ComponentChildren; action: string; danger: boolean; answer: (yes: boolean) => void }
const question = signal<Question | null>(null);

/** Ask before something that cannot be undone. */
export function confirm(title: string, text: ComponentChildren, action: string, danger = true): Promise<boolean> {
  return new Promise((answer) => {
    question.value = { title, text, action, danger, answer: (yes) => { question.value = null; answer(yes); } };
  });
}

export function Questions() {
  const asked = question.value;
  if (!asked) return null;
  return (
    <Dialog title={asked.title} onClose={() => asked.answer(false)} onSubmit={() => asked.answer(true)}
      foot={<><Button onClick={() => asked.answer(false)}>Cancel</Button><Button kind={asked.danger ? "danger primary" : "primary"} type="submit">{asked.action}</Button></>}>
      <div>{asked.text}</div>
    </Dialog>
  );
}

interface Toast { id: number; kind: "good" | "bad" | "info"; text: ComponentChildren }
const toasts = signal<Toast[]>([]);
let counted = 0;

/** A short message. Those about errors stay until they are closed. */
export function toast(text: ComponentChildren, kind: Toast["kind"] = "good"): void {
  const id = ++counted;
  toasts.value = [...toasts.value.slice(-3), { id, kind, text }];
  if (kind !== "bad") setTimeout(() => dismiss(id), 5000);
}
function dismiss(id: number) { toasts.value = toasts.value.filter((one) => one.id !== id); }

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.kind}`}>
          <Icon name={one.kind === "good" ? "check" : one.kind === "bad" ? "error" : "info"} />
          <div class="what">{one.text}</div>
          <Button size="small" kind="quiet" icon="close" title="Dismiss" onClick={() => dismiss(one.id)} />
        </div>
      ))}
    </div>
  );
}
