/** Requests to ports 7001 and 9200, with the credentials of whoever is signed in. Errors are `ServiceError`s. */
import { ServiceError, errorOf } from "./errors";
import { idempotencyKey } from "./keys";
import { config, credentials, headersOf, signOut } from "./session";

type Options = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };

async function send(url: string, options: Options): Promise<Response> {
  // "omit": a 401 must not open the browser's own window for passwords.
  const answer = await fetch(url, { ...options, credentials: "omit", headers: { ...headersOf(credentials.value), ...options.headers } });
  if (answer.ok) return answer;
  const error = await errorOf(answer);
  if (error.status === 401 && config.value?.authentication.required) signOut();
  throw error;
}

/** A request to port 7001. */
export function graph(path: string, options: Options = {}): Promise<Response> { return send(path, options); }

export async function graphJson<T>(path: string, options: Options = {}): Promise<T> {
  return await (await graph(path, { ...options, headers: { Accept: "application/json", ...options.headers } })).json() as T;
}

/** A write: each call has a key of its own, so a browser that sends it again changes nothing twice. */
export function write(path: string, method: "POST" | "PUT" | "DELETE", json?: unknown): Promise<Response> {
  const headers: Record<string, string> = { "Idempotency-Key": idempotencyKey() };
  if (json === undefined) return graph(path, { method, headers });
  return graph(path, { method, body: JSON.stringify(json), headers: { ...headers, "Content-Type": "application/json" } });
}

/** Where port 9200 is for this browser; null where it is switched off. */
export function searchAddress(): string | null {
  const search = config.value?.search;
  if (!search) return null;
  return `${location.protocol}//${search.address ?? `${location.hostname}:${search.port}`}`;
}

/** A request to port 9200, whose bodies are JSON. */
export async function search<T>(path: string, options: Options & { json?: unknown } = {}): Promise<T> {
  const address = searchAddress();
  if (address === null) throw new ServiceError(503, "The search port is switched off (search.enabled).");
  const { json, ...rest } = options;
  if (json !== undefined) {
    rest.body = JSON.stringify(json);
    rest.method ??= "POST";
    rest.headers = { "Content-Type": "application/json", ...rest.headers };
  }
  return await (await send(address + path, rest)).json() as T;
}
