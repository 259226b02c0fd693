/**
 * What every `Listen` and its lines hold, whatever carries them.
 *
 * A listener that cannot hold a claim names it and says why; what it does not name is tested.
 *
 * @module
 */
import assert from "node:assert/strict";
import { BOUND_CLAIMS } from "./connection_bounds.ts";
import { END_CLAIMS } from "./connection_ends.ts";
import { MESSAGE_CLAIMS, PAGE_CLAIMS } from "./connection_messages.ts";
import type { Carrier } from "./connection_setup.ts";

const CLAIMS = [...MESSAGE_CLAIMS, ...END_CLAIMS, ...BOUND_CLAIMS, ...PAGE_CLAIMS];

/** What a listener may say about itself. */
export interface ContractOptions {
  /** Claims it cannot hold, by name, each with the reason. */
  readonly skips: Readonly<Record<string, string>>;
  /** Why what a test leaves open is not looked at; left out: it is. */
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

const SILENT_END = "Deno ends such a line without a close frame";
const NO_MASK = "Deno's WebSocket takes frames without a mask";

/** Claims by name, each with its reason. */
export const SERVE_SKIPS: Readonly<Record<string, string>> = {
  "a message of 64 MiB passes in one frame": "Deno drops a line at a frame of 64 MiB and more",
  "a frame that claims to be huge is told 1009": SILENT_END,
  "text that is not UTF-8 is told 1007": SILENT_END,
  "a reserved bit is told 1002": SILENT_END,
  "an unknown opcode is told 1002": SILENT_END,
  "a continuation of nothing is told 1002": SILENT_END,
  "a text amid fragments is told 1002": SILENT_END,
  "a ping of 126 bytes is told 1002": SILENT_END,
  "a ping in fragments is told 1002": SILENT_END,
  "a goodbye with half a code is told 1002": SILENT_END,
  "a frame without a mask ends the line": NO_MASK,
  "a frame without a mask is told 1002": NO_MASK,
  "a header without its payload gets an empty pong: Nagle's delay waits for a word":
    "Deno does not show that there is a header",
  "the head of an upgrade that stalls is given up": "Deno.serve has no limit for it",
  "pause() holds the peer back until resume()": "Deno reads ahead whatever is done with it",
};
