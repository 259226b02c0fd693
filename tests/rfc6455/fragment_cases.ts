/**
 * Section 5.4, fragmentation, and sizes; cases 5, 9 and 10 of the Autobahn suite.
 *
 * @module
 */
import { OP } from "../fakes/raw_ws_client.ts";
import {
  type Case,
  chopped,
  echo,
  echoBinary,
  fragments,
  frame,
  ping,
  pong,
  text,
  together,
} from "./case.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;
const FRAGMENTS = ["fragment1", "fragment2"] as const;
const WHOLE = "fragment1fragment2";
const FIVE = ["fragment1", "fragment2", "fragment3", "fragment4", "fragment5"] as const;

/** How writes are cut: frames one by one, all together, byte by byte. */
const CUTS: readonly [string, (frames: readonly Uint8Array[]) => readonly Uint8Array[]][] = [
  ["in one write", together],
  ["frame by frame", (frames) => frames],
  ["byte by byte", (frames) => chopped(frames)],
];

const FRAGMENT_ONLY: readonly Case[] = [
  {
    name: "5.1 a ping in fragments",
    send: fragments(OP.ping, FRAGMENTS),
    back: [],
    ends: 1002,
  },
  {
    name: "5.2 a pong in fragments",
    send: fragments(OP.pong, FRAGMENTS),
    back: [],
    ends: 1002,
  },
  ...inAllCuts(3, "a text in two fragments", fragments(OP.text, FRAGMENTS), [echo(WHOLE)]),
  ...inAllCuts(6, "a ping between the fragments", withPing(), [pong("ping"), echo(WHOLE)]),
  ...inAllCuts(
    9,
    "a last continuation of nothing",
    [frame(OP.more, "nothing"), text("Hello")],
    [],
    1002,
  ),
  ...inAllCuts(
    12,
    "a continuation of nothing",
    [frame(OP.more, "nothing", { fin: false }), text("Hello")],
    [],
    1002,
  ),
  {
    name: "5.15 a whole message, then a continuation of nothing",
    send: together([
      ...fragments(OP.text, FRAGMENTS),
      frame(OP.more, "nothing", { fin: false }),
      text("Hello"),
    ]),
    back: [echo(WHOLE)],
    ends: 1002,
  },
  {
    name: "5.16 a continuation of nothing, then a message in fragments, twice",
    send: Array.from({ length: 2 }, () => [
      frame(OP.more, "nothing", { fin: false }),
      ...fragments(OP.text, FRAGMENTS),
    ]).flat(),
    back: [],
    ends: 1002,
  },
  {
    name: "5.17 a last continuation of nothing, then a message in fragments, twice",
    send: Array.from({ length: 2 }, () => [
      frame(OP.more, "nothing"),
      ...fragments(OP.text, FRAGMENTS),
    ]).flat(),
    back: [],
    ends: 1002,
  },
  {
    name: "5.18 a second text where a continuation has to be",
    send: [frame(OP.text, "fragment1", { fin: false }), text("fragment2")],
    back: [],
    ends: 1002,
  },
  ...CUTS.map(([how, cut], i): Case => ({
    name: `5.${i === 0 ? 19 : 20} five fragments with two pings between them, ${how}`,
    send: cut(fiveWithPings()),
    back: [pong("pongme 1!"), pong("pongme 2!"), echo(FIVE.join(""))],
  })),
  {
    name: "section 5.4 an empty first and an empty last fragment",
    send: fragments(OP.binary, ["", "middle", "", ""]),
    back: [echoBinary("middle")],
  },
  {
    name: "section 5.4 a binary message where a continuation has to be",
    send: [frame(OP.binary, "a", { fin: false }), frame(OP.binary, "b", { fin: false })],
    back: [],
    ends: 1002,
  },
  {
    name: "section 5.4 one message in fragments behind another, texts and binaries alternating",
    send: together([
      ...fragments(OP.text, ["a", "b"]),
      ...fragments(OP.binary, ["c", "d"]),
      text("e"),
      ...fragments(OP.text, ["f", "g"]),
    ]),
    back: [echo("ab"), echoBinary("cd"), echo("e"), echo("fg")],
  },
];

/** 9: large messages, whole and in fragments, and many small ones. */
const LARGE_CASES: readonly Case[] = [
  ...[64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB].flatMap((size, i) => [
    large(`9.1.${i + 1}`, size, size, OP.text),
    large(`9.2.${i + 1}`, size, size, OP.binary),
  ]),
  ...[64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB].flatMap((part, i) => [
    large(`9.3.${i + 1}`, 4 * MIB, part, OP.text),
    large(`9.4.${i + 1}`, 4 * MIB, part, OP.binary),
  ]),
  ...[64, 256, 2_048].flatMap((size, i) => [
    chops(`9.5.${2 * i + 1}`, size, OP.text),
    chops(`9.6.${2 * i + 1}`, size, OP.binary),
  ]),
  ...[0, 16, 64, 256, KIB, 4 * KIB].flatMap((size, i) => [
    many(`9.7.${i + 1}`, size, OP.text),
    many(`9.8.${i + 1}`, size, OP.binary),
  ]),
  {
    ...large("10.1.1", 65_536, 1_300, OP.text),
    name: "10.1.1 a text of 65536 bytes in fragments of 1300",
  },
];

export const FRAGMENT_CASES: readonly Case[] = [...FRAGMENT_ONLY, ...LARGE_CASES];

function inAllCuts(
  first: number,
  what: string,
  frames: readonly Uint8Array[],
  back: Case["back"],
  ends?: number,
): Case[] {
  return CUTS.map(([how, cut], i) => ({
    name: `5.${first + i} ${what}, ${how}`,
    send: cut(frames),
    back,
    ...ends !== undefined && { ends },
  }));
}

function withPing(): Uint8Array[] {
  const [first, last] = fragments(OP.text, FRAGMENTS);
  return [first!, ping("ping"), last!];
}

function fiveWithPings(): Uint8Array[] {
  const frames = fragments(OP.text, FIVE);
  frames.splice(2, 0, ping("pongme 1!"));
  frames.splice(5, 0, ping("pongme 2!"));
  return frames;
}

function contentOf(size: number, opcode: number): Uint8Array {
  return new Uint8Array(size).fill(opcode === OP.text ? 42 : 254);
}

function large(number: string, size: number, part: number, opcode: number): Case {
  const content = contentOf(size, opcode);
  const parts = Array.from({ length: Math.ceil(size / part) }, (_, i) => {
    return content.subarray(i * part, (i + 1) * part);
  });
  const kind = opcode === OP.text ? "text" : "binary message";
  return {
    name: `${number} a ${kind} of ${size / KIB} KiB in frames of ${part} bytes`,
    send: chopped(fragments(opcode, parts), MIB),
    back: [{ opcode, payload: content }],
  };
}

function chops(number: string, size: number, opcode: number): Case {
  const payload = contentOf(256 * KIB, opcode);
  return {
    name: `${number} 256 KiB (opcode ${opcode}) in writes of ${size} bytes`,
    send: chopped([frame(opcode, payload)], size),
    back: [{ opcode, payload }],
  };
}

function many(number: string, size: number, opcode: number): Case {
  const payload = contentOf(size, opcode);
  return {
    name: `${number} 1000 messages of ${size} bytes (opcode ${opcode})`,
    send: chopped(Array.from({ length: 1_000 }, () => frame(opcode, payload)), 64 * KIB),
    back: Array.from({ length: 1_000 }, () => ({ opcode, payload })),
  };
}
