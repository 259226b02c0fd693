/**
 * Sections 5.5.1 and 7: how a connection ends; cases 7 of the Autobahn suite.
 *
 * @module
 */
import { OP } from "../fakes/raw_ws_client.ts";
import { type Case, close, echo, fragments, frame, hex, ping, text, together } from "./case.ts";

const LARGE = "*".repeat(256 * 1_024);
/** Codes a close frame may have: those of the RFC, of its registry, and the private ranges. */
const VALID_CODES = [
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011],
  ...[1012, 1013, 1014, 3000, 3999, 4000, 4999],
];
/** Unassigned codes, and those that must not be sent. */
const INVALID_CODES = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999];
/** Beyond what the RFC speaks of. */
const UNKNOWN_CODES = [5000, 65_535];

const ORDER_CASES: readonly Case[] = [
  {
    name: "7.1.1 a message, then a close frame",
    send: [text("Hello World!"), close(1000)],
    back: [echo("Hello World!")],
    ends: 1000,
  },
  {
    name: "7.1.2 two close frames: the second is not answered",
    send: together([close(1000), close(1001)]),
    back: [],
    ends: 1000,
  },
  {
    name: "7.1.3 a ping behind the close frame is not answered",
    send: together([close(1000), ping("late")]),
    back: [],
    ends: 1000,
  },
  {
    name: "7.1.4 a text behind the close frame is not answered",
    send: together([close(1000), text("late")]),
    back: [],
    ends: 1000,
  },
  {
    name: "7.1.5 a close frame between fragments ends the message, too",
    send: together([
      frame(OP.text, "fragment1", { fin: false }),
      close(1000),
      frame(OP.more, "fragment2"),
    ]),
    back: [],
    ends: 1000,
  },
  {
    name: "7.1.6 a large message, a close frame, and a ping",
    send: together([text(LARGE), close(1000), ping("late")]),
    back: [echo(LARGE)],
    ends: 1000,
  },
  {
    name: "section 7.1.7 what follows a broken rule is not looked at",
    send: together([frame(3), text("late"), close(1000)]),
    back: [],
    ends: 1002,
  },
  {
    name: "section 7.1.7 noise behind the close frame changes nothing",
    send: [together([close(4321), hex("ffffffffffffffffffffffffff00")])[0]!, hex("00ff00ff")],
    back: [],
    ends: 4321,
  },
];

const PAYLOAD_CASES: readonly Case[] = [
  { name: "7.3.1 a close frame without a code", send: [frame(OP.close)], back: [], ends: null },
  {
    name: "7.3.2 a close frame of one byte",
    send: [frame(OP.close, hex("03"))],
    back: [],
    ends: 1002,
  },
  { name: "7.3.3 a close frame with a code", send: [close(1000)], back: [], ends: 1000 },
  {
    name: "7.3.4 a close frame with a code and a reason",
    send: [close(1000, "Hello World!")],
    back: [],
    ends: 1000,
  },
  {
    name: "7.3.5 the longest reason there can be",
    send: [close(1000, "*".repeat(123))],
    back: [],
    ends: 1000,
  },
  {
    name: "7.3.6 a reason that is one byte too long",
    send: [close(1000, "*".repeat(124))],
    back: [],
    ends: 1002,
  },
  {
    name: "7.5.1 a reason that is not UTF-8",
    send: [close(1000, hex("cebae1bdb9cf83cebcceb5eda080656469746564"))],
    back: [],
    ends: 1007,
  },
  {
    name: "section 5.5.1 a reason with characters of several bytes",
    send: [close(1000, "ü😀".repeat(20))],
    back: [],
    ends: 1000,
  },
  {
    name: "section 5.5.1 a reason that ends amid a character",
    send: [close(1000, hex("e282"))],
    back: [],
    ends: 1007,
  },
  {
    name: "section 5.5.1 a close frame in fragments",
    send: fragments(OP.close, [hex("03e8"), ""]),
    back: [],
    ends: 1002,
  },
];

export const CLOSE_CASES: readonly Case[] = [
  ...ORDER_CASES,
  ...PAYLOAD_CASES,
  ...VALID_CODES.map((code, i): Case => ({
    name: `7.7.${i + 1} a close frame with code ${code}`,
    send: [close(code)],
    back: [],
    ends: code,
  })),
  ...INVALID_CODES.map((code, i) => refusedCode(`7.9.${i + 1}`, code)),
  ...UNKNOWN_CODES.map((code, i) => refusedCode(`7.13.${i + 1}`, code)),
];

function refusedCode(number: string, code: number): Case {
  const name = `${number} a close frame with code ${code}, which may not be sent`;
  return { name, send: [close(code)], back: [], ends: 1002 };
}
