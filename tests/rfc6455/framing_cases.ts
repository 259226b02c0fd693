/**
 * Sections 5.2 to 5.5: sizes, pings, reserved bits and opcodes; cases 1 to 4 of the Autobahn suite.
 *
 * @module
 */
import { OP } from "../fakes/raw_ws_client.ts";
import {
  binary,
  type Case,
  chopped,
  close,
  type Content,
  echo,
  echoBinary,
  frame,
  ping,
  pong,
  text,
  together,
} from "./case.ts";

const SIZES = [0, 125, 126, 127, 128, 65_535, 65_536];
const BINARY = Uint8Array.of(0, 255, 254, 253, 252, 251, 0, 255);

/** 1: messages around every border of the length field. */
const SIZE_CASES: readonly Case[] = [
  ...SIZES.map((size, i) => sized(`1.1.${i + 1}`, size, OP.text)),
  { ...sized("1.1.8", 65_536, OP.text), send: chopped([text("*".repeat(65_536))], 997) },
  ...SIZES.map((size, i) => sized(`1.2.${i + 1}`, size, OP.binary)),
  { ...sized("1.2.8", 65_536, OP.binary), send: chopped([binary(filled(65_536))], 997) },
];

/** 2: pings and pongs. */
const PING_CASES: readonly Case[] = [
  { name: "2.1 a ping without payload", send: [ping()], back: [pong()] },
  { name: "2.2 a ping with text", send: [ping("Hello")], back: [pong("Hello")] },
  { name: "2.3 a ping with bytes", send: [ping(BINARY)], back: [pong(BINARY)] },
  {
    name: "2.4 a ping of 125 bytes",
    send: [ping(filled(125))],
    back: [pong(filled(125))],
  },
  { name: "2.5 a ping of 126 bytes", send: [ping(filled(126))], back: [], ends: 1002 },
  {
    name: "2.6 a ping of 125 bytes, byte by byte",
    send: chopped([ping(filled(125))]),
    back: [pong(filled(125))],
  },
  { name: "2.7 an unsolicited pong", send: [frame(OP.pong)], back: [] },
  { name: "2.8 such a pong with payload", send: [frame(OP.pong, "unsolicited")], back: [] },
  {
    name: "2.9 such a pong, then a ping",
    send: [frame(OP.pong, "unsolicited"), ping("asked")],
    back: [pong("asked")],
  },
  tenPings("2.10 ten pings", (frames) => frames),
  tenPings("2.11 ten pings, byte by byte", (frames) => chopped(frames)),
  tenPings("2.11 ten pings in one write", together),
];

/** 3: reserved bits without an extension that gives them a meaning. */
const RESERVED_CASES: readonly Case[] = [
  {
    name: "3.1 reserved bit 3",
    send: [frame(OP.text, "Hello", { reserved: 1 })],
    back: [],
    ends: 1002,
  },
  reservedBehindText("3.2 a text, then reserved bit 2", 2, together),
  reservedBehindText("3.3 a text, then reserved bits 2 and 3", 3, (frames) => frames),
  reservedBehindText("3.4 a text, then reserved bit 1, byte by byte", 4, chopped),
  {
    name: "3.5 a binary message with reserved bits 1 and 3",
    send: [frame(OP.binary, BINARY, { reserved: 5 })],
    back: [],
    ends: 1002,
  },
  {
    name: "3.6 a ping with reserved bits 1 and 2",
    send: [frame(OP.ping, "Hello", { reserved: 6 })],
    back: [],
    ends: 1002,
  },
  {
    name: "3.7 a close frame with all reserved bits",
    send: [frame(OP.close, "", { reserved: 7 })],
    back: [],
    ends: 1002,
  },
];

/** 4: opcodes without a meaning. */
const OPCODE_CASES: readonly Case[] = [[3, 4, 5, 6, 7], [11, 12, 13, 14, 15]].flatMap(
  (opcodes, kind) => {
    const [first, second, third, fourth, fifth] = opcodes.map((opcode) => ({
      opcode,
      name: `4.${kind + 1}.${(opcode - 2) % 8} opcode ${opcode}`,
    }));
    return [
      { name: first!.name, send: [frame(first!.opcode)], back: [], ends: 1002 },
      {
        name: `${second!.name} with payload`,
        send: [frame(second!.opcode, "reserved")],
        back: [],
        ends: 1002,
      },
      opcodeBehindText(third!, "", together),
      opcodeBehindText(fourth!, "reserved", (frames) => frames),
      opcodeBehindText(fifth!, "reserved", chopped),
    ];
  },
);

/** 5.1 and 5.2 of the RFC itself. */
const SECTION_CASES: readonly Case[] = [
  {
    name: "section 5.1 a text without a mask",
    send: [frame(OP.text, "Hello", { masked: false })],
    back: [],
    ends: 1002,
  },
  {
    name: "section 5.1 a ping without a mask, between fragments",
    send: [frame(OP.text, "Hel", { fin: false }), frame(OP.ping, "", { masked: false })],
    back: [],
    ends: 1002,
  },
  {
    name: "section 5.1 a close frame without a mask",
    send: [frame(OP.close, "", { masked: false })],
    back: [],
    ends: 1002,
  },
  {
    name: "section 5.2 a length that could be written shorter is taken as it is",
    send: [Uint8Array.of(0x81, 0xfe, 0, 2, 0, 0, 0, 0, 104, 105)],
    back: [echo("hi")],
  },
  {
    name: "section 5.2 a length of 64 bits with the highest set",
    send: [Uint8Array.of(0x81, 0xff, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)],
    back: [],
    ends: 1009,
  },
  {
    name: "section 5.5 a ping whose length is written in 16 bits",
    send: [Uint8Array.of(0x89, 0xfe, 0, 2, 0, 0, 0, 0, 104, 105)],
    back: [],
    ends: 1002,
  },
  {
    name: "section 5.5.1 a close frame of 126 bytes",
    send: [close(1000, filled(124, 120))],
    back: [],
    ends: 1002,
  },
];

export const FRAMING_CASES: readonly Case[] = [
  ...SIZE_CASES,
  ...PING_CASES,
  ...RESERVED_CASES,
  ...OPCODE_CASES,
  ...SECTION_CASES,
];

function sized(number: string, size: number, opcode: number): Case {
  if (opcode === OP.text) {
    const content = "*".repeat(size);
    return {
      name: `${number} a text of ${size} bytes`,
      send: [text(content)],
      back: [echo(content)],
    };
  }
  const content = filled(size);
  const name = `${number} a binary message of ${size} bytes`;
  return { name, send: [binary(content)], back: [echoBinary(content)] };
}

function filled(size: number, byte = 254): Uint8Array {
  return new Uint8Array(size).fill(byte);
}

type Cut = (frames: readonly Uint8Array[]) => readonly Uint8Array[];

function tenPings(name: string, cut: Cut): Case {
  const contents = Array.from({ length: 10 }, (_, i) => `payload-${i}`);
  return { name, send: cut(contents.map(ping)), back: contents.map(pong) };
}

function reservedBehindText(name: string, reserved: number, cut: Cut): Case {
  const frames = [text("Hello"), frame(OP.text, "Hello", { reserved }), ping()];
  return { name, send: cut(frames), back: [echo("Hello")], ends: 1002 };
}

function opcodeBehindText(
  { opcode, name }: { readonly opcode: number; readonly name: string },
  payload: Content,
  cut: Cut,
): Case {
  const frames = [text("Hello"), frame(opcode, payload), ping()];
  return { name: `${name} behind a text`, send: cut(frames), back: [echo("Hello")], ends: 1002 };
}
