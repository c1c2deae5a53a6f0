/** Buttons, fields, tabs and menus: what every page is made of. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";

type ButtonProps = Omit<JSX.HTMLAttributes<HTMLButtonElement>, "icon" | "title" | "size"> & {
  kind?: "plain" | "primary" | "quiet" | "danger" | "danger primary";
  size?: "small";
  icon?: IconName;
  /** What the button does; required where it has no text. Shown as a tooltip. */
  title?: string;
  disabled?: boolean;
  type?: "button" | "submit";
  pressed?: boolean;
  children?: ComponentChildren;
};

export function Button({ kind = "plain", size, icon, title, pressed, children, type = "button", ...rest }: ButtonProps) {
  const bare = icon !== undefined && children === undefined;
  const look = ["button", kind === "plain" ? "" : kind, size ?? "", bare ? "icon" : "", String(rest.class ?? "")].filter(Boolean).join(" ");
  return (
    <button {...rest} type={type} class={look} title={title} aria-label={bare ? title : undefined} aria-pressed={pressed}>
      {icon && <Icon name={icon} size={size ? 14 : 16} />}
      {children}
    </button>
  );
}

/** A label with its input (the child gets the id), a hint and what is wrong with it. */
export function Field(props: { label: string; hint?: ComponentChildren; fault?: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>{props.label}</label>
      {props.children(id)}
      {props.hint && <span class="hint">{props.hint}</span>}
      {props.fault && <span class="fault" role="alert">{props.fault}</span>}
    </div>
  );
}

type InputProps = JSX.InputHTMLAttributes<HTMLInputElement> & { small?: boolean };
export function Input({ small, ...rest }: InputProps) {
  return <input autocomplete="off" spellcheck={false} {...rest} class={`input${small ? " small" : ""} ${rest.class ?? ""}`} />;
}

type SelectProps = Omit<JSX.SelectHTMLAttributes<HTMLSelectElement>, "value" | "onChange"> & {
  value: string;
  options: readonly (string | readonly [value: string, text: string])[];
  onPick: (value: string) => void;
  small?: boolean;
};
export function Select({ value, options, onPick, small, ...rest }: SelectProps) {
  return (
    <select {...rest} class={`input${small ? " small" : ""}`} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
      {options.map((one) => {
        const [own, text] = typeof one === "string" ? [one, one] : one;
        return <option key={own} value={own} selected={own === value}>{text}</option>;
      })}
    </select>
  );
}

export function Check(props: { checked: boolean; onChange: (checked: boolean) => void; children: ComponentChildren; disabled?: boolean }) {
  return (
    <label class="check">
      <input type="checkbox" checked={props.checked} disabled={props.disabled} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <span>{props.children}</span>
    </label>
  );
}

export interface TabItem { id: string; text: string; icon?: IconName; count?: number }

/** A list of tabs: arrows, Home and End move between them. `panel` is the id of what they show. */
export function Tabs(props: { label: string; items: readonly TabItem[]; value: string; onPick: (id: string) => void; look?: "tabs" | "segments"; panel?: string }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const at = props.items.findIndex((one) => one.id === props.value);
    const last = props.items.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at <= 0 ? last : at - 1, Home: 0, End: last }[event.key];
    const item = to === undefined ? undefined : props.items[to];
    if (!item) return;
    event.preventDefault();
    props.onPick(item.id);
    (list.current?.children[to!] as HTMLElement | undefined)?.focus();
  };
  return (
    <div ref={list} class={props.look ?? "tabs"} role="tablist" aria-label={props.label} onKeyDown={move}>
      {props.items.map((one) => (
        <button key={one.id} type="button" role="tab" class="tab" aria-selected={one.id === props.value} aria-controls={props.panel}
          tabIndex={one.id === props.value ? 0 : -1} onClick={() => props.onPick(one.id)}>
          {one.icon && <Icon name={one.icon} size={14} />}
          {one.text}
          {one.count !== undefined && <span class="muted small">{one.count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}

/** A button that opens a menu; the child gets a function that closes it. Escape and a click elsewhere close it too. */
export function Menu(props: {
  title: string; icon?: IconName; text?: string; side?: "left" | "right"; size?: "small"; kind?: "plain" | "quiet" | "primary";
  children: (close: () => void) => ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => { if (!anchor.current?.contains(event.target as Node)) setOpen(false); };
    const items = () => [...(anchor.current?.querySelectorAll<HTMLElement>(".menu .item") ?? [])];
    items()[0]?.focus();
    const key = (event: KeyboardEvent) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        setOpen(false);
        anchor.current?.querySelector("button")?.focus();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const found = items();
        const at = found.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1);
        found[(at + found.length) % found.length]?.focus();
        event.preventDefault();
      }
    };
    document.addEventListener("pointerdown", outside);
    const own = anchor.current;
    own?.addEventListener("keydown", key);
    return () => {
      document.removeEventListener("pointerdown", outside);
      own?.removeEventListener("keydown", key);
    };
  }, [open]);
  return (
    <div class="menu-anchor" ref={anchor}>
      <Button icon={props.icon} title={props.title} size={props.size} kind={props.kind} aria-haspopup="true" aria-expanded={open} onClick={() => setOpen(!open)}>
        {props.text === undefined ? undefined : <>{props.text}<Icon name="down" size={12} /></>}
      </Button>
      {open && <div class={`menu ${props.side ?? ""}`}>{props.children(() => setOpen(false))}</div>}
    </div>
  );
}

export function MenuItem(props: { icon?: IconName; onPick?: () => void; href?: string; note?: string; children: ComponentChildren }) {
  const inside = <>{props.icon && <Icon name={props.icon} size={14} />}{props.children}{props.note && <span class="muted small">{props.note}</span>}</>;
  return props.href
    ? <a class="item" href={props.href} onClick={props.onPick}>{inside}</a>
    : <button class="item" type="button" onClick={props.onPick}>{inside}</button>;
}
