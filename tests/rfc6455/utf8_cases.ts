/**
 * Sections 5.6 and 8.1: texts are UTF-8 by RFC 3629; cases 6 of the Autobahn suite.
 *
 * @module
 */
import { OP } from "../fakes/raw_ws_client.ts";
import { type Case, chopped, echo, fragments, frame, hex, text } from "./case.ts";

const KOSME = "cebae1bdb9cf83cebcceb5";
const MIXED = "Hello-µ@ßöäüàá-UTF-8!!";
/** Valid, then a surrogate, then valid again. */
const BROKEN = `${KOSME}eda080656469746564`;

/** Autobahn's group, its texts in hexadecimal. */
type Group = readonly [number: string, what: string, texts: readonly string[]];

const VALID: readonly Group[] = [
  ["6.5", "a character of two to four bytes", [
    "68656c6c6f24776f726c64",
    "68656c6c6fc2a2776f726c64",
    "68656c6c6fe282ac776f726c64",
    "68656c6c6ff0a4ada2776f726c64",
    KOSME,
  ]],
  ["6.7", "the first character of each length", ["00", "c280", "e0a080", "f0908080"]],
  ["6.9", "the last character of each length", ["7f", "dfbf", "efbfbf", "f48fbfbf"]],
  ["6.11", "a border of the ranges", ["ed9fbf", "ee8080", "efbfbd", "f48fbfbf"]],
  ["6.22", "a code point that is no character", nonCharacters()],
  ["6.23", "a special code point", [
    ...["efbfb9", "efbfba", "efbfbb", "efbfbc", "efbfbd", "efbfbe", "efbfbf"],
  ]],
  ["section 5.6", "a byte order mark is kept", ["efbbbf", "efbbbf68690a", "6869efbbbf"]],
];

const INVALID: readonly Group[] = [
  ["6.8", "the first of five or six bytes", ["f888808080", "fc8480808080"]],
  ["6.10", "the last of more than there is", ["f7bfbfbf", "fbbfbfbfbf", "fdbfbfbfbfbf"]],
  ["6.11.5", "the first beyond Unicode", ["f4908080"]],
  ["6.12", "continuations of nothing", [
    ...["80", "bf", "80bf", "80bf80", "80bf80bf", "80bf80bf80", "80bf80bf80bf"],
    range(0x80, 0xbf),
  ]],
  ["6.13", "lonely first bytes, each with a space", [
    ...[[0xc0, 0xdf], [0xe0, 0xef], [0xf0, 0xf7], [0xf8, 0xfb], [0xfc, 0xfd]].map(
      ([from, to]) => range(from!, to!).replaceAll(/../g, "$&20"),
    ),
  ]],
  ["6.14", "without the last continuation", [
    ...["c0", "e080", "f08080", "f8808080", "fc80808080"],
    ...["df", "efbf", "f7bfbf", "fbbfbfbf", "fdbfbfbfbf"],
  ]],
  ["6.15", "incomplete sequences, one behind the other", [
    "c0e080f08080f8808080fc80808080dfefbff7bfbffbbfbfbffdbfbfbfbf",
  ]],
  ["6.16", "bytes that never occur", ["fe", "ff", "fefeffff"]],
  ["6.17", "a slash, written too long", [
    ...["c0af", "e080af", "f08080af", "f8808080af", "fc80808080af"],
  ]],
  ["6.18", "the last of each length, written too long", [
    ...["c1bf", "e09fbf", "f08fbfbf", "f887bfbfbf", "fc83bfbfbfbf"],
  ]],
  ["6.19", "a zero, written too long", [
    ...["c080", "e08080", "f0808080", "f880808080", "fc8080808080"],
  ]],
  ["6.20", "half a surrogate pair", [
    ...["eda080", "edadbf", "edae80", "edafbf", "edb080", "edbe80", "edbfbf"],
  ]],
  ["6.21", "a surrogate pair", [
    ...["eda080edb080", "eda080edbfbf", "edadbfedb080", "edadbfedbfbf"],
    ...["edae80edb080", "edae80edbfbf", "edafbfedb080", "edafbfedbfbf"],
  ]],
];

const FRAGMENTED: readonly Case[] = [
  { name: "6.1.1 an empty text", send: [text("")], back: [echo("")] },
  { name: "6.1.2 three empty fragments", send: fragments(OP.text, ["", "", ""]), back: [echo("")] },
  {
    name: "6.1.3 an empty first and last fragment",
    send: fragments(OP.text, ["", "middle frame payload", ""]),
    back: [echo("middle frame payload")],
  },
  { name: "6.2.1 characters of several lengths", send: [text(MIXED)], back: [echo(MIXED)] },
  {
    name: "6.2.2 fragments cut between characters",
    send: fragments(OP.text, ["Hello-µ@ßöä", "üàá-UTF-8!!"]),
    back: [echo(MIXED)],
  },
  {
    name: "6.2.3 fragments of one byte",
    send: fragments(OP.text, bytesOf(new TextEncoder().encode(MIXED))),
    back: [echo(MIXED)],
  },
  {
    name: "6.2.4 fragments of one byte, all characters long",
    send: fragments(OP.text, bytesOf(hex(KOSME))),
    back: [echo(hex(KOSME))],
  },
  { name: "6.3.1 a surrogate amid a text", send: [text(hex(BROKEN))], back: [], ends: 1007 },
  {
    name: "6.3.2 a surrogate amid a text, in fragments of one byte",
    send: fragments(OP.text, bytesOf(hex(BROKEN))),
    back: [],
    ends: 1007,
  },
  {
    name: "6.4.1 fails at the bad fragment, though the message goes on",
    send: [
      frame(OP.text, hex(KOSME), { fin: false }),
      frame(OP.more, hex("f4908080"), { fin: false }),
    ],
    back: [],
    ends: 1007,
  },
  {
    name: "6.4.2 fails at the byte that makes it bad, also when the character is cut there",
    send: [
      frame(OP.text, hex(`${KOSME}f4`), { fin: false }),
      frame(OP.more, hex("90"), { fin: false }),
    ],
    back: [],
    ends: 1007,
  },
  {
    name: "6.4.3 a bad character in one frame, in three writes",
    send: cut(text(hex(`${KOSME}f4908080656469746564`)), [17, 21]),
    back: [],
    ends: 1007,
  },
  {
    name: "6.4.4 a bad character in one frame, byte by byte",
    send: chopped([text(hex(`${KOSME}f4908080656469746564`))]),
    back: [],
    ends: 1007,
  },
  {
    name: "section 8.1 half a character at the end of the last fragment",
    send: fragments(OP.text, ["a", hex("c3"), ""]),
    back: [],
    ends: 1007,
  },
  {
    name: "section 8.1 a binary message may hold anything",
    send: fragments(OP.binary, [hex("ff"), hex("eda080")]),
    back: [{ opcode: OP.binary, payload: hex("ffeda080") }],
  },
];

export const UTF8_CASES: readonly Case[] = [
  ...FRAGMENTED,
  ...prefixes(),
  ...VALID.flatMap(([number, what, texts]) => groupOf(number, what, texts, true)),
  ...INVALID.flatMap(([number, what, texts]) => groupOf(number, what, texts, false)),
];

/** A text alone, amid ASCII, and cut into fragments of one byte: all have to come to the same. */
function groupOf(
  number: string,
  what: string,
  texts: readonly string[],
  isValid: boolean,
): Case[] {
  return texts.flatMap((digits, i) => {
    const name = `${number}.${i + 1} ${what}: ${digits.slice(0, 24)}`;
    const amid = hex(`6162636465${digits}66676869`);
    const alone = hex(digits);
    const end = isValid ? {} : { ends: 1007 };
    return [
      { name, send: [text(alone)], back: isValid ? [echo(alone)] : [], ...end },
      { name: `${name} amid ASCII`, send: [text(amid)], back: isValid ? [echo(amid)] : [], ...end },
      {
        name: `${name} in fragments`,
        send: fragments(OP.text, bytesOf(alone)),
        back: isValid ? [echo(alone)] : [],
        ...end,
      },
    ];
  });
}

/** 6.6: every start of a text whose characters have several bytes. */
function prefixes(): Case[] {
  const whole = hex(KOSME);
  const ends = new Set([2, 5, 7, 9, 11]);
  return bytesOf(whole).map((_, i) => {
    const start = whole.subarray(0, i + 1);
    const isValid = ends.has(start.length);
    return {
      name: `6.6.${i + 1} the first ${i + 1} bytes of a text`,
      send: [text(start)],
      back: isValid ? [echo(start)] : [],
      ...!isValid && { ends: 1007 },
    };
  });
}

function nonCharacters(): string[] {
  const planes = Array.from({ length: 17 }, (_, plane) => plane * 0x10000);
  return planes.flatMap((plane) => [plane + 0xfffe, plane + 0xffff]).map((point) => {
    return Array.from(
      new TextEncoder().encode(String.fromCodePoint(point)),
      (byte) => byte.toString(16),
    ).join("");
  });
}

function range(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, i) => (from + i).toString(16)).join("");
}

function bytesOf(whole: Uint8Array): Uint8Array[] {
  return Array.from(whole, (_, i) => whole.subarray(i, i + 1));
}

function cut(whole: Uint8Array, at: readonly [number, number]): Uint8Array[] {
  return [whole.subarray(0, at[0]), whole.subarray(...at), whole.subarray(at[1])];
}
