/**
 * What a stream of bytes from a client comes to, by the text of RFC 6455 alone.
 *
 * It shares no code with the engine, holds everything in memory, reads frames from their start each
 * time, and decodes UTF-8 by the table of RFC 3629, so that its mistakes are others than the
 * engine's. The server it speaks of is an echo.
 *
 * @module
 */

/** What an echo sends back. */
export interface ModelReply {
  readonly kind: "text" | "binary" | "pong";
  readonly payload: Uint8Array;
}

/** The verdict on a stream. */
export interface Verdict {
  readonly replies: readonly ModelReply[];
  /** Codes of which one is in the server's close frame, `null` for none; left out: it is open. */
  readonly ends?: readonly (number | null)[];
  /** Bytes until the frame that has begun is whole, or its header is; 0 between frames. */
  readonly missing: number;
}

/** A frame at the start of bytes. */
interface ModelFrame {
  readonly fin: boolean;
  readonly opcode: number;
  readonly payload: Uint8Array;
  /** All its bytes. */
  readonly size: number;
}

type Message = { readonly opcode: number; readonly payload: Uint8Array };

/** Reads a whole stream. */
export function judge(stream: Uint8Array, maxMessageBytes: number): Verdict {
  const replies: ModelReply[] = [];
  let message: Message | undefined;
  for (let at = 0;;) {
    const found = frameAt(stream.subarray(at), message, maxMessageBytes);
    if ("missing" in found) return { replies, missing: found.missing };
    if ("ends" in found) return { replies, ends: found.ends, missing: 0 };
    const { fin, opcode, payload, size } = found;
    at += size;
    if (opcode === 8) return { replies, ends: closeFrame(payload), missing: 0 };
    if (opcode === 9) replies.push({ kind: "pong", payload });
    if (opcode >= 8) continue;
    const whole: Message = message
      ? { opcode: message.opcode, payload: Uint8Array.of(...message.payload, ...payload) }
      : { opcode, payload };
    const state = whole.opcode === 1 ? utf8State(whole.payload) : "whole";
    if (state === "broken" || (fin && state === "cut")) {
      return { replies, ends: [1007], missing: 0 };
    }
    message = fin ? undefined : whole;
    if (fin) replies.push({ kind: whole.opcode === 1 ? "text" : "binary", payload: whole.payload });
  }
}

function frameAt(
  bytes: Uint8Array,
  message: Message | undefined,
  maxMessageBytes: number,
): ModelFrame | { missing: number } | { ends: number[] } {
  if (bytes.length < 2) return { missing: bytes.length === 0 ? 0 : 1 };
  const [first, second] = [bytes[0]!, bytes[1]!];
  const fin = first >= 128;
  const opcode = first % 16;
  const short = second % 128;
  const isControl = opcode >= 8;
  const isBroken = Math.floor(first / 16) % 8 !== 0 || second < 128 ||
    ![0, 1, 2, 8, 9, 10].includes(opcode) || (isControl && (!fin || short > 125)) ||
    (opcode === 0 && !message) || ((opcode === 1 || opcode === 2) && message !== undefined);
  if (isBroken) return { ends: [1002] };

  const header = 2 + (short === 127 ? 8 : short === 126 ? 2 : 0) + 4;
  if (bytes.length < header) return { missing: header - bytes.length };
  let length = BigInt(short);
  if (short >= 126) {
    length = 0n;
    for (const byte of bytes.subarray(2, header - 4)) length = length * 256n + BigInt(byte);
  }
  const before = isControl ? 0 : message?.payload.length ?? 0;
  if (BigInt(before) + length > BigInt(maxMessageBytes)) return { ends: [1009] };
  const size = header + Number(length);
  if (bytes.length < size) return { missing: size - bytes.length };
  const mask = bytes.subarray(header - 4, header);
  const payload = bytes.slice(header, size).map((byte, i) => byte ^ mask[i % 4]!);
  return { fin, opcode, payload, size };
}

/** Codes of the answer to a close frame. Section 7.4, and the registry of 11.7. */
function closeFrame(payload: Uint8Array): (number | null)[] {
  if (payload.length === 0) return [null];
  if (payload.length === 1) return [1002];
  const code = payload[0]! * 256 + payload[1]!;
  const isRegistered = code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code);
  const isBadCode = !isRegistered && !(code >= 3000 && code <= 4999);
  const isBadReason = utf8State(payload.subarray(2)) !== "whole";
  if (!isBadCode && !isBadReason) return [code];
  return [...isBadCode ? [1002] : [], ...isBadReason ? [1007] : []]; // Either may be seen first.
}

/** The table of RFC 3629, section 4: ranges of the bytes of one character beyond ASCII. */
const CHARACTERS: readonly (readonly (readonly [number, number])[])[] = [
  [[0xc2, 0xdf], [0x80, 0xbf]],
  [[0xe0, 0xe0], [0xa0, 0xbf], [0x80, 0xbf]],
  [[0xe1, 0xec], [0x80, 0xbf], [0x80, 0xbf]],
  [[0xed, 0xed], [0x80, 0x9f], [0x80, 0xbf]],
  [[0xee, 0xef], [0x80, 0xbf], [0x80, 0xbf]],
  [[0xf0, 0xf0], [0x90, 0xbf], [0x80, 0xbf], [0x80, 0xbf]],
  [[0xf1, 0xf3], [0x80, 0xbf], [0x80, 0xbf], [0x80, 0xbf]],
  [[0xf4, 0xf4], [0x80, 0x8f], [0x80, 0xbf], [0x80, 0xbf]],
];

/** Whether bytes are UTF-8, could become it with more of them, or cannot. */
export function utf8State(bytes: Uint8Array): "whole" | "cut" | "broken" {
  for (let at = 0; at < bytes.length;) {
    if (bytes[at]! < 0x80) {
      at++;
      continue;
    }
    const kind = CHARACTERS.find(([first]) => isIn(bytes[at]!, first!));
    if (!kind) return "broken";
    const there = bytes.subarray(at, at + kind.length);
    if (!there.every((byte, i) => isIn(byte, kind[i]!))) return "broken";
    if (there.length < kind.length) return "cut";
    at += kind.length;
  }
  return "whole";
}

function isIn(byte: number, [from, to]: readonly [number, number]): boolean {
  return byte >= from && byte <= to;
}
