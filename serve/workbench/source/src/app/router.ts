/** Where the page is: `#/name?key=value`. Nothing of it is sent to the service, and a link can be shared. */
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => { hash.value = location.hash; });

export const place = computed(() => {
  const [path = "", search = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { page: path.split("/")[0] || "query", path, parameters: new URLSearchParams(search) };
});

export function href(page: string, parameters: Record<string, string | undefined> = {}): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return `#/${page}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(page: string, parameters: Record<string, string | undefined> = {}, replace = false): void {
  const to = href(page, parameters);
  if (replace) { history.replaceState(null, "", to); hash.value = to; } else location.hash = to;
}

/** The links from anything to the pages that show it. */
export const linkTo = {
  resource: (iri: string) => href("explore", { iri }),
  query: (text: string, view?: string) => href("query", { query: text, view, run: "1" }),
};
