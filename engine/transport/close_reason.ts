/**
 * What fits into a goodbye.
 *
 * @module
 */

const REASON_BYTES_MAX = 123;

/** The reason, cut between characters to the 123 bytes that a close frame can hold. */
export function shortReason(reason: string): string {
  const { read } = new TextEncoder().encodeInto(reason, new Uint8Array(REASON_BYTES_MAX));
  return reason.slice(0, read);
}
