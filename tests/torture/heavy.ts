/**
 * Heavy messages: what one is, and their bytes, made without holding them several times.
 *
 * @module
 */
import type { Campaign } from "./campaign.ts";
import type { Engine } from "./engine.ts";
import { frameOf, type Peer } from "./peer.ts";

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

/** After this the engine counts as stuck, and the next message goes to a new one. */
export const STUCK_MS = 12_000;

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

/** Sends a call with this payload and waits for its end. */
export async function callWith(
  { attacker }: Setting,
  functionId: string,
  data: Uint8Array | string,
): Promise<string> {
  const id = crypto.randomUUID();
  const answer = attacker.expect(id, STUCK_MS);
  const head = `{"type":"invokefunction","invocation_id":"${id}","function_id":"${functionId}",` +
    `"timeout_ms":120000,"data":`;
  const frame = frameOf(joined(head, data, "}"));
  await attacker.write(frame);
  const message = await answer;
  const error = message?.error as { code?: string } | undefined;
  const outcome = message === undefined
    ? attacker.isOver ? `closed ${(await attacker.ended).code}` : "no answer"
    : error?.code ?? "a result";
  return `${functionId} with ${mib(frame.length)}: ${outcome}`;
}

/** Sends a message and waits until the engine has handled it. */
export async function sendWhole(
  { attacker }: Setting,
  what: string,
  text: Uint8Array,
): Promise<string> {
  await attacker.write(frameOf(text));
  await attacker.settled(STUCK_MS);
  const end = attacker.isOver ? `: closed ${(await attacker.ended).code}` : "";
  return `${what} of ${mib(text.length)}${end}`;
}

/** A number of bytes for people. */
export function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
