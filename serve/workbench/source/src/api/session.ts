/** Who is signed in, with which credentials, and what they may do. Credentials are kept for this tab only. */
import { computed, signal } from "@preact/signals";
import { errorOf } from "./errors";

export interface Config {
  version: string;
  authentication: { required: boolean; password: boolean; api_key: boolean; token: boolean; oidc: { client_id: string } | null };
  search: { port: number; address: string | null } | null;
  graphql: { enabled: boolean; playground: boolean };
  cluster: boolean;
  query_timeout_seconds: number;
  max_body_bytes: number;
  tiles: string | null;
  image_hosts: string[];
}
export interface Principal {
  name: string; provider: string; roles: string[]; permission: "none" | "read" | "write" | "admin";
  sees_everything: boolean; expires_at: number | null;
}
export type Credentials =
  | { kind: "password"; user: string; password: string }
  | { kind: "key"; key: string }
  | { kind: "token"; token: string; refresh?: string };

const KEPT = "graphdb.credentials";
export const config = signal<Config | null>(null);
export const principal = signal<Principal | null>(null);
export const credentials = signal<Credentials | null>(read());
/** Why a sign-in at the provider has failed. */
export const signInFault = signal<unknown>(null);
export const mayWrite = computed(() => principal.value?.permission === "write" || principal.value?.permission === "admin");
export const mayAdmin = computed(() => principal.value?.permission === "admin");
/** Whether the page has to ask for credentials before it can show anything. */
export const needsSignIn = computed(() => config.value !== null && config.value.authentication.required && principal.value === null);

function read(): Credentials | null {
  try { return JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Credentials | null; } catch { return null; }
}

export function headersOf(given: Credentials | null): Record<string, string> {
  switch (given?.kind) {
    case "password": {
      const bytes = new TextEncoder().encode(`${given.user}:${given.password}`);
      return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
    }
    case "key": return { "X-API-Key": given.key };
    case "token": return { Authorization: `Bearer ${given.token}` };
    default: return {};
  }
}

/** The credentials as the message `signin` of /ws takes them; null without any. */
export function membersOf(given: Credentials | null): Record<string, string> | null {
  switch (given?.kind) {
    case "password": return { user: given.user, password: given.password };
    case "key": return { api_key: given.key };
    case "token": return { token: given.token };
    default: return null;
  }
}

/** Reads the configuration, and who the kept credentials belong to. */
export async function begin(): Promise<void> {
  const answer = await fetch("/workbench/config.json", { credentials: "omit" });
  if (!answer.ok) throw await errorOf(answer);
  config.value = await answer.json() as Config;
  if (!config.value.authentication.required || credentials.value !== null) await signIn(credentials.value).catch((error) => {
    if (config.value?.authentication.required) signOut(); else throw error;
  });
}

/** Raises ServiceError where the service does not take the credentials; then nothing has changed. */
export async function signIn(given: Credentials | null): Promise<void> {
  const answer = await fetch("/whoami", { headers: headersOf(given), credentials: "omit" });
  if (!answer.ok) throw await errorOf(answer);
  principal.value = await answer.json() as Principal;
  credentials.value = given;
  if (given === null) sessionStorage.removeItem(KEPT); else sessionStorage.setItem(KEPT, JSON.stringify(given));
}

/** The same principal with newer credentials. */
export function renew(given: Credentials): void {
  credentials.value = given;
  sessionStorage.setItem(KEPT, JSON.stringify(given));
}

export function signOut(): void {
  sessionStorage.removeItem(KEPT);
  credentials.value = null;
  principal.value = null;
}
