/**
 * The contract of every `Listen` and its connections.
 *
 * A listener that cannot hold a claim names it with the reason; all others are tested.
 *
 * @module
 */
import assert from "node:assert/strict";
import { BOUND_CLAIMS } from "./connection_bounds.ts";
import { END_CLAIMS } from "./connection_ends.ts";
import { MESSAGE_CLAIMS, PAGE_CLAIMS } from "./connection_messages.ts";
import type { Carrier } from "./connection_setup.ts";

const CLAIMS = [...MESSAGE_CLAIMS, ...END_CLAIMS, ...BOUND_CLAIMS, ...PAGE_CLAIMS];

/** Exceptions of a listener. */
export interface ContractOptions {
  /** Claims it cannot hold, by name, each with the reason. */
  readonly skips: Readonly<Record<string, string>>;
  /** Why resources that a test leaves open are not checked. Default: they are checked. */
  readonly leaves?: string;
}

/** Registers a test for each claim. */
export function testConnection(
  name: string,
  carrier: Carrier,
  { skips, leaves }: ContractOptions,
): void {
  const known = new Set(CLAIMS.map((claim) => claim.name));
  for (const skipped of Object.keys(skips)) assert.ok(known.has(skipped), `no claim: ${skipped}`);

  for (const claim of CLAIMS) {
    const reason = skips[claim.name];
    Deno.test({
      name: `${name}: ${claim.name}` + (reason === undefined ? "" : ` (not here: ${reason})`),
      ignore: reason !== undefined,
      ...leaves !== undefined && { sanitizeOps: false, sanitizeResources: false },
      fn: () => claim.run(carrier),
    });
  }
}

const SILENT_END = "Deno ends such a connection without a close frame";
const NO_MASK = "Deno's WebSocket takes frames without a mask";

/** Claims by name, each with its reason. */
export const SERVE_SKIPS: Readonly<Record<string, string>> = {
  "a message of 64 MiB passes in one frame":
    "Deno drops a connection at a frame of 64 MiB and more",
  "a frame that claims to be huge is closed with 1009": SILENT_END,
  "text that is not UTF-8 is closed with 1007": SILENT_END,
  "a reserved bit is closed with 1002": SILENT_END,
  "an unknown opcode is closed with 1002": SILENT_END,
  "a continuation of nothing is closed with 1002": SILENT_END,
  "a text amid fragments is closed with 1002": SILENT_END,
  "a ping of 126 bytes is closed with 1002": SILENT_END,
  "a ping in fragments is closed with 1002": SILENT_END,
  "a close frame with half a code is closed with 1002": SILENT_END,
  "a frame without a mask ends the connection": NO_MASK,
  "a frame without a mask is closed with 1002": NO_MASK,
  "a header without its payload gets an empty pong: Nagle's delay waits for an acknowledgement":
    "Deno does not show that there is a header",
  "what connections hold of the memory budget is returned with them":
    "Deno keeps incomplete messages itself",
  "an upgrade whose head stalls is closed": "Deno.serve has no limit for it",
  "pause() holds the peer back until resume()": "Deno reads ahead whatever is done with it",
};
