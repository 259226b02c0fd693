/**
 * Secrets of a console, and secrets made of others.
 *
 * @module
 */
import type { Store } from "../../engine/ports/store.ts";
import { randomHex } from "./trace_ids.ts";

const PLACE = ["console", "secret"];

/** Another secret made of one, about which it says nothing: 32 hexadecimal digits. */
export async function derive(secret: string, purpose: string): Promise<string> {
  const bytes = new TextEncoder().encode(`${purpose} ${secret}`);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 32);
}

/**
 * The secret of an engine's console, kept in its store: a page that is open while the engine
 * restarts has a token that still holds.
 */
export async function keptSecret(store: Pick<Store, "write">): Promise<string> {
  const fresh = randomHex(32);
  try {
    const [written] = await store.write([[PLACE, (old) => old ?? fresh]]);
    const kept = written?.new?.value;
    return typeof kept === "string" ? kept : fresh;
  } catch {
    return fresh; // The disk refuses: pages have to be opened anew after a restart, no more.
  }
}
