/**
 * Heavy messages: what one is, and their bytes, made without holding them several times.
 *
 * @module
 */
import type { Campaign } from "./campaign.ts";
import type { Engine } from "./engine.ts";
import type { Peer } from "./peer.ts";

/** What a heavy message is sent with. */
export interface Setting {
  readonly campaign: Campaign;
  readonly engine: Engine;
  /** Sends the message. */
  readonly attacker: Peer;
}

/** One kind of heavy message. */
export interface Heavy {
  readonly name: string;
  /** Longest wait of another worker. Default: 100 ms. */
  readonly maxMs?: number;
  /** Sends it; returns what was sent and what else was broken. */
  act(setting: Setting): Promise<{ done: string; broken?: string[] }>;
}

const encoder = new TextEncoder();

/** A text of three parts, the middle one repeated. */
export function repeated(head: string, unit: string, times: number, tail: string): Uint8Array {
  const [first, middle, last] = [head, unit, tail].map((text) => encoder.encode(text));
  const bytes = new Uint8Array(first!.length + middle!.length * times + last!.length);
  bytes.set(first!);
  const body = bytes.subarray(first!.length, bytes.length - last!.length);
  body.set(middle!);
  // Doubling copies what is there, up to the length.
  for (let done = middle!.length; done > 0 && done < body.length; done *= 2) {
    body.copyWithin(done, 0, Math.min(done, body.length - done));
  }
  bytes.set(last!, bytes.length - last!.length);
  return bytes;
}

/** Several byte strings as one. */
export function joined(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const all = parts.map((part) => typeof part === "string" ? encoder.encode(part) : part);
  const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of all) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Nested arrays, `depth` deep; not closed if `isOpen`. */
export function nested(depth: number, isOpen = false): Uint8Array {
  return isOpen
    ? repeated("", "[", depth, "")
    : joined(repeated("", "[", depth, ""), repeated("", "]", depth, ""));
}

/** JSON as programs write it: a list of records, of about so many bytes. */
export function honestJson(bytes: number): Uint8Array {
  const record = '{"sku":"A-1001","price":12.99,"tags":["new","red"],"stock":{"left":7,"max":90}}';
  return repeated("[", `${record},`, Math.floor(bytes / (record.length + 1)), `${record}]`);
}

/** A list of values that depend on their index. */
export function list(count: number, item: (i: number) => string): string {
  return `[${Array.from({ length: count }, (_, i) => item(i)).join(",")}]`;
}
