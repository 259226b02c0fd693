/**
 * How engines find each other: each says every two seconds that it is there.
 *
 * Engines whose protocols differ do not link, nor do those that keep state in different places,
 * since each would have a state of its own; both log one line about it.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { OtherEngine } from "./link.ts";

/** Version of what engines send to each other; those of different ones do not link. */
export const CLUSTER_PROTOCOL = 1;
/** Longest message that is read. */
const HELLO_BYTES_MAX = 8 * 1024;

/** What an engine says of itself. */
export interface Hello extends OtherEngine {
  readonly protocol: number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The bytes of a hello. */
export function encodeHello(engine: OtherEngine, protocol = CLUSTER_PROTOCOL): Uint8Array {
  const { life, name, version, log } = engine;
  const hello = { life, name, version, log, protocol };
  return encoder.encode(JSON.stringify(hello));
}

/** A hello; `undefined` for bytes that are none. */
export function readHello(data: Uint8Array): Hello | undefined {
  if (data.length > HELLO_BYTES_MAX) return undefined;
  try {
    const { life, name, version, protocol, log } = JSON.parse(decoder.decode(data)) as JsonObject;
    const isKnown = typeof life === "string" && /^[0-9a-f]{16}$/.test(life) && isText(name) &&
      isText(version) && typeof protocol === "number";
    if (!isKnown) return undefined;
    return { life, name, version, protocol, ...isText(log) && { log } };
  } catch {
    return undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= ID_CHARS_MAX;
}
