/** A body sent to /data with its progress, which `fetch` does not tell. */
import { ServiceError } from "./errors";
import { idempotencyKey } from "./keys";
import { credentials, headersOf } from "./session";
import type { Confirmation } from "./sparql";

export class Cancelled extends Error {}
export interface Sending { done: Promise<Confirmation>; cancel: () => void }

/** onProgress: bytes that have left, of how many. A request that is cancelled before its end stores nothing. */
export function upload(path: string, method: "POST" | "PUT", body: Blob, headers: Record<string, string>, onProgress: (sent: number) => void): Sending {
  const request = new XMLHttpRequest();
  const done = new Promise<Confirmation>((resolve, reject) => {
    request.open(method, path);
    const all = { ...headersOf(credentials.value), Accept: "application/json", "Idempotency-Key": idempotencyKey(), ...headers };
    for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onabort = () => reject(new Cancelled("cancelled"));
    request.onerror = () => reject(new TypeError("the connection has ended before the answer"));
    request.onload = () => {
      let found: Record<string, unknown> = {};
      try { found = JSON.parse(request.responseText) as Record<string, unknown>; } catch { /* the text is the message */ }
      if (request.status >= 200 && request.status < 300) resolve(found as unknown as Confirmation);
      else reject(new ServiceError(request.status, String(found.error ?? (request.responseText || `status ${request.status}`)), found));
    };
    request.send(body);
  });
  return { done, cancel: () => request.abort() };
}
