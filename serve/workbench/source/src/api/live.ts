/** One live query on /ws: it follows the log, and connects again without a gap. See docs/live.md. */
import { credentials, membersOf } from "./session";

export type Action = "CREATE" | "UPDATE" | "DELETE";
export type LiveRecord = { id: string } & Record<string, unknown>;
export interface Change { action: Action; result: LiveRecord; index: number }
export type LiveState =
  | { kind: "connecting" }
  | { kind: "following"; index: number }
  | { kind: "waiting"; seconds: number; reason: string }
  | { kind: "ended"; code: string; reason: string };

interface Message { id: unknown; result?: unknown; index?: number; action?: Action; error?: { code: string; message: string } }

const LONGEST_WAIT_S = 30;
/** Errors that pass by themselves: the same subscription is asked again. */
const PASSING = new Set(["unavailable", "internal"]);

export class LiveQuery {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private stopped = false;
  private subscription = "";

  /** since: the log index from which changes are told; null: from now on. */
  constructor(
    private readonly statement: string, private since: number | null,
    private readonly onState: (state: LiveState) => void, private readonly onChange: (change: Change) => void,
  ) { this.connect(); }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private connect(): void {
    this.onState({ kind: "connecting" });
    const address = new URL("/ws", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.socket = new WebSocket(address);
    this.subscription = "";
    socket.onopen = () => {
      const members = membersOf(credentials.value);
      if (members) this.say(socket, "signin", members);
      // Changes of the last index may be told only in part when a connection ends, so they are told again.
      this.say(socket, "query", this.statement, ...(this.since === null ? [] : [{ since: this.since }]));
    };
    socket.onmessage = ({ data }) => { if (!this.stopped) this.hear(JSON.parse(String(data)) as Message); };
    socket.onclose = ({ reason }) => { if (socket === this.socket) this.again(reason || "the connection has ended"); };
  }

  private say(socket: WebSocket, method: string, ...params: unknown[]): void {
    socket.send(JSON.stringify({ id: method, method, params }));
  }

  private hear(message: Message): void {
    if (message.error) {
      if (PASSING.has(message.error.code)) {
        this.again(message.error.message);
      } else {
        this.stop();
        this.onState({ kind: "ended", code: message.error.code, reason: message.error.message });
      }
    } else if (message.id === "query") {
      this.failures = 0;
      this.subscription = String(message.result);
      this.since ??= message.index ?? null;
      this.onState({ kind: "following", index: message.index ?? 0 });
    } else if (message.action && message.id === this.subscription) {
      const index = message.index ?? 0;
      if (index > this.newest) { this.since = Math.max(this.since ?? 0, this.newest); this.newest = index; }
      this.onChange({ action: message.action, result: message.result as LiveRecord, index });
    }
  }
  /** The index of the last change. `since` stays before it until a newer one has come. */
  private newest = 0;

  private again(reason: string): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    if (this.stopped) return;
    const seconds = Math.min(LONGEST_WAIT_S, 2 ** this.failures++);
    this.onState({ kind: "waiting", seconds, reason });
    this.timer = setTimeout(() => this.connect(), seconds * 1000);
  }
}
