/**
 * RFC 6455 as tests of a `Listen`: what the Autobahn suite's fuzzing client asks of a
 * server, and the sections it leaves out.
 *
 * Numbers such as 6.3.1 are those of the Autobahn suite; the others name sections of the RFC.
 * Where that suite lets a server choose how strict it is, the strict way is asked for. Its cases
 * 12 and 13 are about compression, which is not negotiated here.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Carrier } from "../contracts/connection_setup.ts";
import { type Case, play } from "./case.ts";
import { CLOSE_CASES } from "./close_cases.ts";
import { FRAGMENT_CASES } from "./fragment_cases.ts";
import { FRAMING_CASES } from "./framing_cases.ts";
import { HANDSHAKE_CASES, shake } from "./handshake_cases.ts";
import { UTF8_CASES } from "./utf8_cases.ts";

const CASES: readonly Case[] = [
  ...FRAMING_CASES,
  ...FRAGMENT_CASES,
  ...UTF8_CASES,
  ...CLOSE_CASES,
];

/**
 * Registers a test for each case; `otherwise` has the names of those that are left out, with the
 * reason.
 */
export function testConformance(
  name: string,
  carrier: Carrier,
  otherwise: Readonly<Record<string, string>> = {},
): void {
  const names = [...CASES, ...HANDSHAKE_CASES].map((each) => each.name);
  assert.equal(new Set(names).size, names.length, "every case has a name of its own");

  for (const each of Object.keys(otherwise)) assert.ok(names.includes(each), each);

  for (const each of HANDSHAKE_CASES) {
    const reason = otherwise[each.name];
    Deno.test({
      name: `RFC 6455, ${name}: ${each.name}${reason ? ` (not here: ${reason})` : ""}`,
      ignore: reason !== undefined,
      fn: () => shake(carrier, each),
    });
  }
  for (const each of CASES) {
    Deno.test(`RFC 6455, ${name}: ${each.name}`, () => play(carrier, each));
  }
}
