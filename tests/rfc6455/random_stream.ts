/**
 * Streams of frames by chance: valid ones, such that break one rule, and such with damaged bytes.
 *
 * @module
 */
import { encodeFrame, type FrameShape, OP } from "../fakes/raw_ws_client.ts";
import type { Random } from "../fakes/random.ts";
import { joined } from "./case.ts";

/** Characters of every length, at the borders of their ranges, and those that JSON escapes. */
const CHARACTERS = [...'az09 {}"\\\n\u0000\u007f\u0080ü߿ࠀ€퟿\ue000\ufeff\ufffd\uffff𐀀😀\u{10ffff}'];
const BAD_UTF8 = [
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf5],
  [0x80],
  [0xe2, 0x28],
  [0xf0, 0x8f, 0xbf, 0xbf],
  [0xff],
];
const CODES = [1000, 1001, 1003, 1007, 1011, 1014, 3000, 4999];
const BAD_CODES = [0, 999, 1004, 1005, 1006, 1015, 2000, 5000, 65_535];
const SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 60, 124, 125, 126, 127, 128, 300, 900];
const LARGE_SIZES = [3_990, 4_000, 4_001, 65_535, 65_536, 69_000];

/** A stream; every third is valid, every third breaks a rule, every third is damaged. */
export function randomStream(random: Random): Uint8Array {
  const frames = Array.from({ length: 1 + random.below(8) }, () => anything(random)).flat();
  const kind = random.below(3);
  if (kind === 1) frames.splice(random.below(frames.length + 1), 0, ruleBreaker(random));
  return kind === 2 ? damaged(joined(frames), random) : joined(frames);
}

/** The same bytes in pieces: single ones, small ones, large ones, or all at once. */
export function randomCuts(stream: Uint8Array, random: Random): Uint8Array[] {
  const most = random.pick([1, 3, 20, 200, 5_000, 100_000]);
  const pieces: Uint8Array[] = [];
  // A long stream byte by byte shows nothing that a short one does not.
  const least = Math.ceil(stream.length / 300);
  for (let at = 0; at < stream.length;) {
    const size = Math.max(least, 1 + random.below(most));
    pieces.push(stream.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function anything(random: Random): Uint8Array[] {
  switch (random.below(8)) {
    case 0:
    case 1:
      return [frame(random, OP.text, text(random))];
    case 2:
      return [frame(random, OP.binary, noise(random))];
    case 3:
    case 4:
      return inFragments(random, OP.text, text(random));
    case 5:
      return inFragments(random, OP.binary, noise(random));
    case 6:
      return [frame(random, random.pick([OP.ping, OP.pong]), noise(random).subarray(0, 125))];
    default:
      return random.once(4) ? [closeFrame(random, random.pick(CODES))] : [];
  }
}

function inFragments(random: Random, opcode: number, payload: Uint8Array): Uint8Array[] {
  const count = 1 + random.below(5);
  const ends = Array.from({ length: count - 1 }, () => random.below(payload.length + 1));
  ends.sort((a, b) => a - b).push(payload.length);
  const parts = ends.map((end, i) => payload.subarray(i === 0 ? 0 : ends[i - 1], end));
  return parts.flatMap((part, i) => {
    const fin = i === count - 1;
    const piece = frame(random, i === 0 ? opcode : OP.more, part, { fin });
    const between = random.once(4) ? [frame(random, OP.ping, noise(random).subarray(0, 125))] : [];
    return fin ? [piece] : [piece, ...between];
  });
}

function ruleBreaker(random: Random): Uint8Array {
  switch (random.below(9)) {
    case 0:
      return frame(random, OP.text, text(random), { reserved: 1 + random.below(7) });
    case 1:
      return frame(random, random.pick([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]), noise(random));
    case 2:
      return frame(random, random.below(11), text(random), { masked: false });
    case 3:
      return frame(random, random.pick([OP.ping, OP.pong, OP.close]), noise(random), {
        fin: false,
      });
    case 4:
      return frame(random, random.pick([OP.ping, OP.pong, OP.close]), new Uint8Array(126));
    case 5:
      return frame(random, OP.more, noise(random), { fin: random.once(2) });
    case 6: {
      const bad = Uint8Array.from(random.pick(BAD_UTF8));
      const parts = [text(random), bad, text(random)].slice(random.below(3));
      return frame(random, OP.text, joined(parts), { fin: !random.once(3) });
    }
    case 7:
      return closeFrame(random, random.pick(BAD_CODES));
    default: {
      const claims = BigInt(random.pick([4_001, 65_536, 70_001, 2 ** 31, 2 ** 40])) <<
        BigInt(random.pick([0, 0, 20]));
      return frame(random, random.below(3), noise(random), { claims, fin: random.once(2) });
    }
  }
}

function damaged(stream: Uint8Array, random: Random): Uint8Array {
  const bytes = Array.from(stream);
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(bytes.length + 1);
    switch (random.below(5)) {
      case 0:
        if (at < bytes.length) bytes[at]! ^= 1 << random.below(8);
        break;
      case 1:
        bytes.splice(at, 1);
        break;
      case 2:
        bytes.splice(at, 0, random.below(256));
        break;
      case 3:
        bytes.length = at;
        break;
      default:
        bytes.splice(at, 20, ...Array.from({ length: 20 }, () => random.below(256)));
    }
  }
  return Uint8Array.from(bytes);
}

function closeFrame(random: Random, code: number): Uint8Array {
  const reason = random.once(2) ? text(random).subarray(0, 123) : new Uint8Array();
  return frame(random, OP.close, joined([Uint8Array.of(code >> 8, code & 255), reason]));
}

function frame(
  random: Random,
  opcode: number,
  payload: Uint8Array,
  shape?: FrameShape,
): Uint8Array {
  const mask = Uint8Array.from({ length: 4 }, () => random.once(8) ? 0 : random.below(256));
  return encodeFrame(opcode, payload, { mask, ...shape });
}

function size(random: Random): number {
  return random.once(40) ? random.pick(LARGE_SIZES) : random.pick(SIZES);
}

/** UTF-8 of about that size: ASCII alone, or anything. */
function text(random: Random): Uint8Array {
  const bytes = size(random);
  const from = random.once(2) ? CHARACTERS.slice(0, 6) : CHARACTERS;
  const part = Array.from({ length: Math.min(bytes, 200) }, () => random.pick(from)).join("");
  const encoded = new TextEncoder().encode(part);
  if (encoded.length === 0) return encoded;
  return joined(Array.from({ length: Math.ceil(bytes / encoded.length) }, () => encoded));
}

function noise(random: Random): Uint8Array {
  const bytes = new Uint8Array(size(random)).fill(random.below(256));
  for (let i = 0; i < Math.min(bytes.length, 50); i++) bytes[i] = random.below(256);
  return bytes;
}
