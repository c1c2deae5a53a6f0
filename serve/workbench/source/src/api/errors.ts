/** Errors as the service words them, and what one can do about each. */

export class ServiceError extends Error {
  constructor(
    readonly status: number, message: string,
    /** The whole body, where it is JSON: some errors have a `code`, a `report` or a `first_index`. */
    readonly body: Record<string, unknown> = {},
    readonly retryAfter: number | null = null,
  ) { super(message); }

  /** Line and column, from 1, that a syntax error names. */
  get place(): { line: number; column: number } | null {
    const found = /line (\d+),? column (\d+)/i.exec(this.message);
    return found ? { line: Number(found[1]), column: Number(found[2]) } : null;
  }
}

/** Reads the error out of an answer of either port. */
export async function errorOf(answer: Response): Promise<ServiceError> {
  const text = await answer.text().catch(() => "");
  let body: Record<string, unknown> = {};
  let message = text.slice(0, 2000) || answer.statusText || `status ${answer.status}`;
  try {
    body = JSON.parse(text) as Record<string, unknown>;
    const error = body.error;
    if (typeof error === "string") message = error;
    else if (error && typeof error === "object") {
      const { reason, root_cause: causes } = error as { reason?: string; root_cause?: { reason?: string }[] };
      message = reason ?? causes?.[0]?.reason ?? message; // as Elasticsearch words it
    }
  } catch { /* not JSON: the text is the message */ }
  const wait = Number(answer.headers.get("Retry-After"));
  return new ServiceError(answer.status, message, body, Number.isFinite(wait) && wait > 0 ? wait : null);
}

export function whatToDo(error: unknown): string | null {
  if (error instanceof TypeError) return "The service cannot be reached. Check that it runs and that your network reaches it, then try again.";
  if (!(error instanceof ServiceError)) return null;
  const again = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
  switch (error.status) {
    case 400: return error.place ? "Correct the text at this place, and send it again." : null;
    case 401: return "Sign in again: the credentials are missing, wrong or have expired.";
    case 403: return "Ask an administrator for the permission that is named here.";
    case 404: return null;
    case 406: return "Choose another format.";
    case 408: case 504: return "Send it again.";
    case 410: return typeof error.body.oldest_index === "number"
      ? `Ask for log index ${error.body.oldest_index} or later: older changes are no longer kept (history.keep).` : null;
    case 413: return "Send it in smaller parts, or raise server.max_body_bytes.";
    case 429: return `Too many failed attempts from your address.${again}`;
    case 503: return /time limit|longer than|timeout/i.test(error.message)
      ? "Narrow the query, add a LIMIT, or raise server.query_timeout_seconds."
      : /cancelled/i.test(error.message) ? null : `The service cannot do this at the moment.${again}`;
    default: return error.status >= 500 ? "The log of the service says more." : null;
  }
}
