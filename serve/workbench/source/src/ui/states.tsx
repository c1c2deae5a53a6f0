/** What a page shows while it has nothing else to show: empty, loading, an error that says what to do. */
import type { ComponentChildren } from "preact";
import { ServiceError, whatToDo } from "../api/errors";
import { Button } from "./controls";
import { Icon, type IconName } from "./icons";

export function Empty(props: { icon?: IconName; title: string; children?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <div class="state">
      {props.icon && <span class="symbol"><Icon name={props.icon} size={20} /></span>}
      <h2>{props.title}</h2>
      {props.children && <p>{props.children}</p>}
      {props.actions && <div class="actions">{props.actions}</div>}
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return <div class="state" role="status"><span class="spinner large" /><p>{what} …</p></div>;
}

/** An error as the service words it, and below it what one can do about it. */
export function Fault({ error, again }: { error: unknown; again?: () => void }) {
  const advice = whatToDo(error);
  return (
    <div class="notice bad" role="alert">
      <Icon name="error" />
      <div class="grow stack tight">
        <span class="what">{error instanceof ServiceError || error instanceof Error ? error.message : String(error)}</span>
        {advice && <span class="small">{advice}</span>}
        {again && <span><Button size="small" icon="refresh" onClick={again}>Try again</Button></span>}
      </div>
    </div>
  );
}

export function Notice(props: { kind?: "info" | "warn" | "good" | "bad"; children: ComponentChildren }) {
  const icon = ({ info: "info", warn: "warning", good: "check", bad: "error" } as const)[props.kind ?? "info"];
  return <div class={`notice ${props.kind ?? ""}`}><Icon name={icon} /><div class="grow">{props.children}</div></div>;
}
