/**
 * Ways to fill memory: what one is, and what several of them send.
 *
 * @module
 */
import type { Campaign, Subject } from "./campaign.ts";
import { joined } from "./heavy.ts";
import { frameOf, type Peer } from "./peer.ts";

/** After this the engine counts as stuck. */
export const STUCK_MS = 15_000;
/** Bytes of a megabyte. */
export const MB = 1_000_000;

/** One way to fill memory. */
export interface Filling {
  readonly name: string;
  /** The engine's own default instead of {@linkcode BUDGET_MIB}. */
  readonly hasDefaultBudget?: boolean;
  /** Further lines of `workers` in config.yaml. */
  readonly workers?: readonly string[];
  /** Fills it with peers that it gives to `hold`; returns what was done. */
  act(setting: Setting): Promise<string>;
}

/** What a filling works with. */
export interface Setting {
  readonly campaign: Campaign;
  readonly subject: Subject;
  /** Connects a peer that is dropped when the filling is over. */
  open(isFrozen?: boolean): Promise<Peer>;
  /** Drops something when the filling is over. */
  readonly held: DisposableStack;
}

/** Sends a large message with a fresh id many times; stops when the peer is cut. */
export async function sendOften(
  peer: Peer,
  times: number,
  head: (i: number) => string,
  body: Uint8Array,
): Promise<number> {
  let sent = 0;
  for (; sent < times && !peer.isOver; sent++) {
    await peer.write(frameOf(joined(head(sent), body, "}")));
  }
  await peer.settled(STUCK_MS);
  return sent;
}
