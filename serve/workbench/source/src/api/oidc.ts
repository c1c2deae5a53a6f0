/** Signing in at the provider: the code flow with PKCE (RFC 7636). The page goes there, and comes back with a code. */
import { errorOf } from "./errors";
import { credentials, renew, signIn } from "./session";

const KEPT = "graphdb.sign-in";
interface Begun { state: string; verifier: string; hash: string }
interface Granted { access_token: string; refresh_token: string | null; expires_in: number | null }

const encoded = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const random = () => encoded(crypto.getRandomValues(new Uint8Array(32)));
const home = () => `${location.origin}/`;

/** Leaves the page for the provider's. */
export async function beginSignIn(): Promise<void> {
  const answer = await fetch("/workbench/sign-in", { credentials: "omit" });
  if (!answer.ok) throw await errorOf(answer);
  const told = await answer.json() as { authorization_endpoint: string | null; client_id: string; scope: string };
  if (!told.authorization_endpoint) throw new Error("The provider does not say where one signs in.");
  const begun: Begun = { state: random(), verifier: random(), hash: location.hash };
  sessionStorage.setItem(KEPT, JSON.stringify(begun));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier)));
  const to = new URL(told.authorization_endpoint);
  for (const [name, value] of Object.entries({
    response_type: "code", client_id: told.client_id, redirect_uri: home(), scope: told.scope, state: begun.state,
    code_challenge: encoded(digest), code_challenge_method: "S256",
  })) to.searchParams.set(name, value);
  location.assign(to);
}

/** Whether the page has just come back from the provider. */
export function hasComeBack(): boolean {
  const found = new URLSearchParams(location.search);
  return found.has("state") && (found.has("code") || found.has("error"));
}

/** Hands the code in, and signs in. Raises ServiceError, Error. */
export async function finishSignIn(): Promise<void> {
  const found = new URLSearchParams(location.search);
  const begun = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Begun | null;
  sessionStorage.removeItem(KEPT);
  history.replaceState(null, "", `/${begun?.hash ?? ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
  if (found.has("error")) throw new Error(`The provider refuses: ${found.get("error_description") ?? found.get("error")}`);
  if (begun === null || begun.state !== found.get("state")) throw new Error("This sign-in was not begun here. Sign in again.");
  await granted({ code: found.get("code")!, code_verifier: begun.verifier, redirect_uri: home() }, (made) => signIn(made));
}

async function granted(body: Record<string, string>, take: (made: { kind: "token"; token: string; refresh?: string }) => Promise<void> | void): Promise<void> {
  const answer = await fetch("/workbench/sign-in", { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, credentials: "omit" });
  if (!answer.ok) throw await errorOf(answer);
  const { access_token: token, refresh_token: refresh, expires_in: seconds } = await answer.json() as Granted;
  await take({ kind: "token", token, ...(refresh ? { refresh } : {}) });
  if (refresh && seconds) setTimeout(() => void refreshed(refresh), Math.max(5, seconds * 0.8) * 1000);
}

/** Newer credentials before the old ones expire; where that fails, the next request asks to sign in. */
async function refreshed(refresh: string): Promise<void> {
  const own = credentials.peek();
  if (own?.kind === "token" && own.refresh === refresh) await granted({ refresh_token: refresh }, renew).catch(() => undefined);
}
