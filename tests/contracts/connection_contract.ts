/**
 * What every `Listen` and its lines hold, whatever carries them.
 *
 * A listener that cannot hold a claim names it and says why; what it does not name is tested.
 *
 * @module
 */
import assert from "node:assert/strict";
import { BOUND_CLAIMS } from "./connection_bounds.ts";
import type { Carrier } from "./connection_setup.ts";
import { END_CLAIMS } from "./connection_ends.ts";
import { MESSAGE_CLAIMS } from "./connection_messages.ts";
import { PAGE_CLAIMS } from "./connection_pages.ts";

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
