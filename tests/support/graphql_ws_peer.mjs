// Follows one subscription with the npm package graphql-ws, and writes what it hears, a line of JSON each. When the
// connection is lost it comes back behind what it has heard. Whatever is written to its input ends the subscription.
import { createInterface } from "node:readline";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const [url, query, first] = process.argv.slice(2);
const say = (told) => process.stdout.write(`${JSON.stringify(told)}\n`);
let since = Number(first);
const client = createClient({
  url,
  webSocketImpl: WebSocket,
  connectionParams: () => ({ since }),
  retryAttempts: 1000,
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 200)),
  shouldRetry: () => true,
  on: { connected: () => say({ connected: true }) },
});
const dispose = client.subscribe(
  { query },
  {
    next: (result) => {
      since = result.extensions.index;
      say({ next: result });
    },
    error: (error) => say({ error: String(error) }),
    complete: () => {
      say({ complete: true });
      process.exit(0);
    },
  },
);
createInterface({ input: process.stdin }).on("line", () => dispose());
