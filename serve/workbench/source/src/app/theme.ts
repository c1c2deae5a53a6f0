/** Light or dark: as the system has it, until somebody chooses. */
import { effect, signal } from "@preact/signals";

const KEPT = "graphdb.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const kept = localStorage.getItem(KEPT);
export const theme = signal<"light" | "dark">(kept === "dark" || kept === "light" ? kept : system.matches ? "dark" : "light");

system.addEventListener("change", () => { if (!localStorage.getItem(KEPT)) theme.value = system.matches ? "dark" : "light"; });
effect(() => { document.documentElement.dataset.theme = theme.value; });

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEPT, theme.value);
}
/** A colour of the theme, for what draws on a canvas. */
export function colour(name: string): string { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }
/** The word that style sheets made by scripts carry, by the Content-Security-Policy. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "";
