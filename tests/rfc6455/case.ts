/**
 * One conversation by the rules of RFC 6455: what a client sends, and all that comes back.
 *
 * The server is an echo: a message returns as it came. A case that does not end the connection is ended
 * by the client with 1000, and has to be answered with 1000, so that every case also shows that
 * nothing was left over. Every frame has a mask of its own.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  bytes,
  type Carrier,
  Port,
  type RecordedConnection,
} from "../contracts/connection_setup.ts";
import { encodeFrame, type FrameShape, OP, type RawWsClient } from "../fakes/raw_ws_client.ts";
import { Random } from "../fakes/random.ts";
import { PATIENCE_MS } from "../fakes/until.ts";

/** A frame as the server sends it. */
export interface Reply {
  readonly opcode: number;
  readonly payload: Uint8Array;
}

/** One conversation. */
export interface Case {
  /** Begins with the number of the case or the section. */
  readonly name: string;
  /** Each is one write of its own. */
  readonly send: readonly Uint8Array[];
  /** All that comes back before the server's close frame, in order. */
  readonly back: readonly Reply[];
  /** The code of that close frame; `null`: it has none. Left out: the connection stays open. */
  readonly ends?: number | null;
}

/** A server that fails to answer is detected by then. */
const random = new Random(6455);

/** One frame with a mask that no other has. */
export function frame(opcode: number, payload: Content = "", shape: FrameShape = {}): Uint8Array {
  const mask = Uint8Array.from({ length: 4 }, () => random.below(256));
  return encodeFrame(opcode, contentOf(payload), { mask, ...shape });
}

/** What a frame carries: text in UTF-8, or bytes. */
export type Content = string | Uint8Array;

/** A whole text message. */
export function text(content: Content): Uint8Array {
  return frame(OP.text, content);
}

/** A whole binary message. */
export function binary(content: Content): Uint8Array {
  return frame(OP.binary, content);
}

/** A ping. */
export function ping(content: Content = ""): Uint8Array {
  return frame(OP.ping, content);
}

/** A close frame. */
export function close(code: number, reason: Content = ""): Uint8Array {
  return frame(OP.close, joined([Uint8Array.of(code >> 8, code & 255), contentOf(reason)]));
}

/** One message in frames, one for each part. */
export function fragments(opcode: number, parts: readonly Content[]): Uint8Array[] {
  return parts.map((part, i) => {
    return frame(i === 0 ? opcode : OP.more, part, { fin: i === parts.length - 1 });
  });
}

/** What comes back for a text. */
export function echo(content: Content): Reply {
  return { opcode: OP.text, payload: contentOf(content) };
}

/** What comes back for a binary message. */
export function echoBinary(content: Content): Reply {
  return { opcode: OP.binary, payload: contentOf(content) };
}

/** What comes back for a ping. */
export function pong(content: Content = ""): Reply {
  return { opcode: OP.pong, payload: contentOf(content) };
}

/** Everything in writes of so many bytes. */
export function chopped(parts: readonly Uint8Array[], size = 1): Uint8Array[] {
  const all = joined(parts);
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, i) => all.subarray(i * size, (i + 1) * size));
}

/** Everything in one write. */
export function together(parts: readonly Uint8Array[]): Uint8Array[] {
  return [joined(parts)];
}

/** Bytes as they are written in hexadecimal. */
export function hex(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** One after the other. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Runs one conversation on a new connection. */
export async function play(carrier: Carrier, { send, back, ends }: Case): Promise<void> {
  await using port = new Port(carrier, { silenceMs: PATIENCE_MS });
  const { client, recorded } = await port.open();
  echoOn(recorded);

  const sending = (async () => {
    for (const part of send) await client.write(part);
    if (ends === undefined) await client.write(close(1000));
  })();
  const heard = await listenToEnd(client);
  await sending;

  const code = ends === undefined ? 1000 : ends;
  const closeFrame = code === null ? new Uint8Array() : Uint8Array.of(code >> 8, code & 255);
  const expected = [...back, { opcode: OP.close, payload: closeFrame }].map(shown);
  // A read that ends behind a header is answered with an unsolicited pong.
  const unsolicited = shown(pong());
  const isSaid = (frame: string): boolean =>
    frame !== unsolicited || expected.includes(unsolicited);
  assert.deepEqual(heard.map(shown).filter(isSaid), expected);
  assert.equal((await recorded.end()).code, code ?? 1005);
}

/** Sends every message back as it came. */
export function echoOn(recorded: RecordedConnection): void {
  recorded.onText = (message) => recorded.connection.send(message);
  recorded.onBinary = (message) => recorded.connection.sendBinary(message);
}

/** All frames until the server has ended its half, but its pings; a close frame keeps its code only. */
export async function listenToEnd(client: RawWsClient): Promise<Reply[]> {
  const heard: Reply[] = [];
  for (;;) {
    const next = await client.next();
    if (!next) return heard;
    const { opcode, payload } = next;
    if (opcode === OP.ping) continue; // The server's own care for a slow test.
    heard.push({ opcode, payload: opcode === OP.close ? payload.subarray(0, 2) : payload });
  }
}

/** Short enough that a difference can be read, and still another for other payloads. */
function shown({ opcode, payload }: Reply): string {
  let sum = 0;
  for (const byte of payload) sum = Math.imul(sum, 31) + byte | 0;
  const start = [...payload.subarray(0, 16)].map((byte) => byte.toString(16)).join(" ");
  return `opcode ${opcode}, ${payload.length} bytes: ${start} (${sum})`;
}

function contentOf(content: Content): Uint8Array {
  return typeof content === "string" ? bytes(content) : content;
}
