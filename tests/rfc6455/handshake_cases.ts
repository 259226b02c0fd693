/**
 * Section 4: the request that opens a connection, and its answer.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytes, type Carrier, Port } from "../contracts/connection_setup.ts";
import { OP } from "../fakes/raw_ws_client.ts";
import { chopped, close, echoOn, joined, listenToEnd, text } from "./case.ts";

/** One request, and what has to come back. */
export interface HandshakeCase {
  /** Begins with the section. */
  readonly name: string;
  /** The head, without the empty line behind it. */
  readonly head: readonly string[];
  readonly status: number;
  /** What the head of the answer has to contain. */
  readonly answer?: RegExp;
  /** What it must not contain. */
  readonly silent?: RegExp;
}

const REQUEST = "GET / HTTP/1.1";
const HOST = "Host: localhost";
const UPGRADE = "Upgrade: websocket";
const CONNECTION = "Connection: Upgrade";
const VERSION = "Sec-WebSocket-Version: 13";
/** The example of section 1.3, and its answer. */
const KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = /\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=(\r\n|$)/i;
const HEADERS = [HOST, UPGRADE, CONNECTION, VERSION, KEY];

const OPENED: readonly HandshakeCase[] = [
  opens("section 1.3 the example of the RFC", [REQUEST, ...HEADERS]),
  opens("section 4.1 names and tokens in any case", [
    ...[REQUEST, "HOST:localhost", "upgrade: WebSocket", "CONNECTION:uPGRADE"],
    ...["sec-websocket-VERSION: 13", KEY.replace("Sec", "SEC")],
  ]),
  opens("section 4.1 Upgrade among other tokens of Connection", [
    ...[REQUEST, HOST, UPGRADE, "Connection: keep-alive, Upgrade", VERSION, KEY],
  ]),
  opens("section 4.1 Connection in two headers", [
    ...[REQUEST, HOST, UPGRADE, "Connection: keep-alive", CONNECTION, VERSION, KEY],
  ]),
  opens("section 4.1 blanks around values", [
    REQUEST,
    ...HEADERS.map((recorded) => `${recorded} \t `),
  ]),
  opens("section 4.1 a target with a query", ["GET /?a=b%20c&d HTTP/1.1", ...HEADERS]),
  opens("section 4.1 a target with two slashes", ["GET //x HTTP/1.1", ...HEADERS]),
  opens("section 4.1 an absolute target", ["GET http://localhost/ HTTP/1.1", ...HEADERS]),
  opens("section 4.1 a large cookie", [REQUEST, ...HEADERS, `Cookie: a=${"x".repeat(8_000)}`]),
  {
    ...opens("section 4.2.2 unknown subprotocols are left out of the answer", [
      ...[REQUEST, ...HEADERS, "Sec-WebSocket-Protocol: chat, superchat"],
    ]),
    silent: /sec-websocket-protocol/i,
  },
  {
    ...opens("section 9.1 extensions are left out of the answer", [
      ...[REQUEST, ...HEADERS],
      "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-other",
    ]),
    silent: /sec-websocket-extensions/i,
  },
];

const REFUSED: readonly HandshakeCase[] = [
  refused("section 4.1 another method", 400, ["POST / HTTP/1.1", ...HEADERS]),
  refused("section 4.1 HTTP/1.0", 400, ["GET / HTTP/1.0", ...HEADERS]),
  refused("section 4.1 no Host", 400, [
    REQUEST,
    ...HEADERS.filter((recorded) => recorded !== HOST),
  ]),
  refused("section 4.1 no Upgrade", 426, [
    REQUEST,
    ...HEADERS.filter((recorded) => recorded !== UPGRADE),
  ]),
  refused("section 4.1 an Upgrade to something else", 426, [
    ...[REQUEST, HOST, "Upgrade: h2c", CONNECTION, VERSION, KEY],
  ]),
  refused("section 4.1 no Connection", 400, [REQUEST, HOST, UPGRADE, VERSION, KEY]),
  refused("section 4.1 a Connection without Upgrade", 400, [
    ...[REQUEST, HOST, UPGRADE, "Connection: keep-alive", VERSION, KEY],
  ]),
  refused("section 4.1 a Connection with a word that holds Upgrade", 400, [
    ...[REQUEST, HOST, UPGRADE, "Connection: Upgraded", VERSION, KEY],
  ]),
  refused("section 4.1 no key", 400, [REQUEST, HOST, UPGRADE, CONNECTION, VERSION]),
  ...["dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZQ", "not base64 at all!!!==", ""].map((key) =>
    refused(`section 4.1 a key that is not 16 bytes: ${key || "empty"}`, 400, [
      ...[REQUEST, HOST, UPGRADE, CONNECTION, VERSION, `Sec-WebSocket-Key: ${key}`],
    ])
  ),
  refused("section 4.1 two keys", 400, [REQUEST, ...HEADERS, KEY]),
  refused("section 4.2.1 a body", 400, [REQUEST, ...HEADERS, "Content-Length: 5"]),
  refused("section 4.2.1 a body in chunks", 400, [
    REQUEST,
    ...HEADERS,
    "Transfer-Encoding: chunked",
  ]),
  ...["8", "12", "14", "13, 8", "thirteen"].map((version): HandshakeCase => ({
    ...refused(`section 4.4 version ${version}`, 426, [
      ...[REQUEST, HOST, UPGRADE, CONNECTION, `Sec-WebSocket-Version: ${version}`, KEY],
    ]),
    answer: /\r\nsec-websocket-version: 13(\r\n|$)/i,
  })),
  {
    ...refused("section 4.4 no version", 426, [REQUEST, HOST, UPGRADE, CONNECTION, KEY]),
    answer: /\r\nsec-websocket-version: 13(\r\n|$)/i,
  },
  refused("section 4.2.1 a header that goes on in the next connection", 400, [
    ...[REQUEST, ...HEADERS, "X-Folded: a", " b"],
  ]),
  refused("section 4.2.1 a header without a name", 400, [REQUEST, ...HEADERS, ": nothing"]),
  refused("section 4.2.1 a blank before the colon", 400, [REQUEST, ...HEADERS, "X-Odd : 1"]),
  refused("section 4.2.1 a zero in a header", 400, [REQUEST, ...HEADERS, "X-Odd: \0"]),
  refused("section 4.2.1 a connection that is no request", 400, ["GET /", ...HEADERS]),
  refused("section 4.2.1 a target with a blank", 400, ["GET / x HTTP/1.1", ...HEADERS]),
  refused("section 4.2.1 a target that is no path", 400, ["GET nowhere HTTP/1.1", ...HEADERS]),
  refused("section 4.2.1 HTTP/2", 400, ["PRI * HTTP/2.0", ...HEADERS]),
  refused("section 4.2.1 a head that does not end", 431, [
    ...[REQUEST, ...HEADERS, `X-Long: ${"x".repeat(20_000)}`],
  ]),
];

export const HANDSHAKE_CASES: readonly HandshakeCase[] = [...OPENED, ...REFUSED];

/** Sends a head, whole and byte by byte, and checks the answer; an open connection is used. */
export async function shake(carrier: Carrier, wanted: HandshakeCase): Promise<void> {
  await using port = new Port(carrier);
  const whole = bytes(`${wanted.head.join("\r\n")}\r\n\r\n`);
  const hello = text("hello");
  // Bytes that stand right behind the head belong to the connection.
  const ways = [[joined([whole, hello])], [...chopped([whole], 7), hello]];

  for (const writes of ways) {
    using client = await port.send(writes);

    assert.equal(client.status, wanted.status, client.head);
    if (wanted.answer) assert.match(client.head, wanted.answer);
    if (wanted.silent) assert.doesNotMatch(client.head, wanted.silent);
    if (wanted.status !== 101) {
      assert.match(client.head, /\r\nconnection: close(\r\n|$)/i);
      continue;
    }
    echoOn(port.connections.at(-1)!);
    await client.write(text("again"));
    await client.write(close(1000));
    const heard = await listenToEnd(client); // The first text may have come before the echo.
    assert.deepEqual(heard.slice(-2).map(({ opcode }) => opcode), [OP.text, OP.close]);
    assert.deepEqual(port.connections.at(-1)!.texts, ["hello", "again"]);
  }
  assert.equal(port.connections.length, wanted.status === 101 ? ways.length : 0);
}

function opens(name: string, head: readonly string[]): HandshakeCase {
  return { name, head, status: 101, answer: ACCEPT };
}

function refused(name: string, status: number, head: readonly string[]): HandshakeCase {
  return { name, head, status };
}
