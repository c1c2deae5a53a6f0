/** A new key for the header Idempotency-Key. `crypto.randomUUID` does not exist on pages of plain HTTP. */
export function idempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `"${[...bytes].map((one) => one.toString(16).padStart(2, "0")).join("")}"`;
}
