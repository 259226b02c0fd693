/**
 * Heads of requests: what they say, and what is refused.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  CHUNKED,
  endOfHead,
  HEAD_BYTES_MAX,
  HEADERS_MAX,
  HeadReader,
  mayBeHead,
  readHead,
  TARGET_CHARS_MAX,
} from "./head.ts";

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** Reads a head of these lines. */
function read(...lines: string[]) {
  return readHead(bytesOf(`${lines.join("\r\n")}\r\n\r\n`));
}

Deno.test("readHead() reads a whole request", () => {
  const head = read(
    "POST /a/b?c=1 HTTP/1.1",
    "Host: localhost:3111",
    "X-Twice:  one ",
    "content-length: 12",
    "x-twice:\ttwo",
    "X-Empty:",
    "x-latin: caf\xe9",
  );

  assert.ok(!("problem" in head));
  const { headers, ...others } = head;
  assert.deepEqual(headers.plain, {
    host: "localhost:3111",
    "x-twice": "one, two",
    "content-length": "12",
    "x-empty": "",
    "x-latin": "caf\xe9",
  });
  assert.deepEqual(JSON.parse(headers.json), headers.plain);
  assert.deepEqual(others, {
    method: "POST",
    target: "/a/b?c=1",
    bodyBytes: 12,
    isOld: false,
    keepsAlive: true,
  });
});

for (
  const [lines, expected] of [
    [["GET http://a:1/b?c HTTP/1.1", "host: a"], { target: "/b?c" }],
    [["OPTIONS * HTTP/1.1", "host: a"], { target: "*" }],
    [["GET / HTTP/1.1", "host: a", "connection: close"], { keepsAlive: false }],
    [["GET / HTTP/1.1", "host: a", "connection: x, Close"], { keepsAlive: false }],
    [["GET / HTTP/1.0"], { keepsAlive: false, isOld: true }],
    [["GET / HTTP/1.0", "connection: Keep-Alive"], { keepsAlive: true }],
    [["POST / HTTP/1.1", "host: a", "transfer-encoding: Chunked"], { bodyBytes: CHUNKED }],
    [["GET / HTTP/1.1", "host: a", "constructor: b"], {}],
  ] as [string[], object][]
) {
  Deno.test(`readHead() of ${lines.join(" | ")} says ${JSON.stringify(expected)}`, () => {
    const head = read(...lines);

    assert.ok(!("problem" in head));
    assert.deepEqual({ ...head, ...expected }, head);
  });
}

const HOST = "host: a";
for (
  const [lines, status] of [
    [["GET /"], 400],
    [["GET  / HTTP/1.1", HOST], 400],
    [["G\xe9T / HTTP/1.1", HOST], 400],
    [["GET /\x01 HTTP/1.1", HOST], 400],
    [["GET / HTTP/2.0", HOST], 505],
    [["GET / HTTP/1.1"], 400],
    [["GET / HTTP/1.1", HOST, HOST], 400],
    [["GET / HTTP/1.1", "host: a/b"], 400],
    [["GET / HTTP/1.1", HOST, "no colon"], 400],
    [["GET / HTTP/1.1", HOST, "a : b"], 400],
    [["GET / HTTP/1.1", HOST, " folded: b"], 400],
    [["GET / HTTP/1.1", HOST, "a: b\nc: d"], 400],
    [["GET / HTTP/1.1", HOST, "a: b\rc: d"], 400],
    [["GET / HTTP/1.1", HOST, "a: b\0"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: -1"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: 1, 1"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: 1", "content-length: 1"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: 0x10"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: 9999999999999999"], 400],
    [["POST / HTTP/1.1", HOST, "content-length: 1", "transfer-encoding: chunked"], 400],
    [["POST / HTTP/1.0", HOST, "transfer-encoding: chunked"], 400],
    [["POST / HTTP/1.1", HOST, "transfer-encoding: gzip, chunked"], 501],
    [["POST / HTTP/1.1", HOST, "transfer-encoding: identity"], 501],
    [["POST / HTTP/1.1", HOST, "transfer-encoding: chunked", "transfer-encoding: x"], 400],
    [[`GET /${"a".repeat(TARGET_CHARS_MAX)} HTTP/1.1`, HOST], 414],
    [["GET / HTTP/1.1", HOST, ...Array<string>(HEADERS_MAX).fill("a: b")], 431],
  ] as [string[], number][]
) {
  Deno.test(`readHead() refuses ${JSON.stringify(lines).slice(0, 90)} with ${status}`, () => {
    const head = read(...lines);

    assert.ok("problem" in head);
    assert.equal(head.status, status);
  });
}

Deno.test("readHead() takes as many headers and characters as it says", () => {
  const target = `/${"a".repeat(TARGET_CHARS_MAX - 1)}`;
  const more = Array.from({ length: HEADERS_MAX - 1 }, (_, i) => `a${i}: b`);

  const head = read(`GET ${target} HTTP/1.1`, HOST, ...more);

  assert.ok(!("problem" in head));
  assert.equal(head.target, target);
  assert.equal(Object.keys(head.headers.plain).length, HEADERS_MAX);
});

/** Reads heads of one connection after one another, each with bytes of a body behind it. */
function readAll(reader: HeadReader, ...texts: string[]) {
  return texts.map((text) => {
    const bytes = bytesOf(`..${text}{}`);
    const end = reader.endOfSame(bytes, 2, bytes.length);
    const head = reader.read(bytes, 2, bytes.length - 2);
    assert.ok(!("problem" in head));
    return { ...head, isFound: end === bytes.length - 2 };
  });
}

Deno.test("HeadReader finds a head that equals the last one, if all of it is there", () => {
  const reader = new HeadReader();
  const text = "POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n";

  const [first, second] = readAll(reader, text, text);

  assert.deepEqual([first!.isFound, second!.isFound], [false, true]);
  assert.deepEqual({ ...second, isFound: false }, first);
  const bytes = bytesOf(text);
  for (let end = 0; end < bytes.length; end++) assert.equal(reader.endOfSame(bytes, 0, end), -1);
  for (let at = 0; at < bytes.length; at++) {
    assert.equal(reader.endOfSame(bytes.with(at, bytes[at]! ^ 1), 0, bytes.length), -1, `${at}`);
  }
});

Deno.test("HeadReader shares headers among equal ones only, and reads each first line", () => {
  const host = "host: a\r\nconnection: x\r\n\r\n";
  const reader = new HeadReader();

  const [first, same, old, other] = readAll(
    reader,
    `GET /1 HTTP/1.1\r\n${host}`,
    `PUT /2?b HTTP/1.1\r\n${host}`,
    `GET /3 HTTP/1.0\r\n${host}`,
    `GET /3 HTTP/1.1\r\n${host.replace("a", "b")}`,
  );

  assert.equal(same!.headers, first!.headers);
  assert.deepEqual([same!.method, same!.target], ["PUT", "/2?b"]);
  assert.deepEqual([first!.keepsAlive, old!.keepsAlive], [true, false]);
  assert.equal(other!.headers.json, '{"host":"b","connection":"x"}');
});

Deno.test("HeadReader reads the body of each version anew, though the headers are the same", () => {
  const reader = new HeadReader();
  const section = "host: a\r\ntransfer-encoding: chunked\r\n\r\n";
  const [first] = readAll(reader, `POST / HTTP/1.1\r\n${section}`);
  const old = bytesOf(`POST / HTTP/1.0\r\n${section}`);

  const head = reader.read(old, 0, old.length);

  assert.equal(first!.bodyBytes, CHUNKED);
  assert.ok("problem" in head && head.status === 400);
});

Deno.test("HeadReader keeps no head that is refused or long, nor any after forget()", () => {
  const reader = new HeadReader();
  const text = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
  const long = `GET /${"a".repeat(2_048)} HTTP/1.1\r\nhost: a\r\n\r\n`;

  assert.deepEqual(readAll(reader, long, long).map(({ isFound }) => isFound), [false, false]);
  readAll(reader, text);
  const bad = bytesOf("GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n");
  for (let i = 0; i < 2; i++) {
    assert.equal(reader.endOfSame(bad, 0, bad.length), -1);
    assert.ok("problem" in reader.read(bad, 0, bad.length));
  }
  assert.deepEqual(readAll(reader, text, text).map(({ isFound }) => isFound), [false, true]);
  reader.forget();
  assert.deepEqual(readAll(reader, text).map(({ isFound }) => isFound), [false]);
});

Deno.test("endOfHead() finds the empty line wherever the search begins before it", () => {
  const bytes = bytesOf("GET / HTTP/1.1\r\na: b\r\n\r\nrest");

  for (let from = 0; from <= 20; from++) {
    assert.equal(endOfHead(bytes, from, bytes.length), 24);
    for (let end = 0; end < 24; end++) assert.equal(endOfHead(bytes, 0, end), -1);
  }
});

Deno.test("mayBeHead() refuses other protocols at their first bytes", () => {
  for (const text of ["G", "GET", "GET / HTTP/1.1\r\n", "PROPFIND /"]) {
    assert.equal(mayBeHead(bytesOf(text)), true, text);
  }
  for (const text of ["\x16\x03\x01", "GET\0", "{", "\xef\xbb\xbfGET /", "a".repeat(40)]) {
    assert.equal(mayBeHead(bytesOf(text)), false, text);
  }
});

Deno.test("readHead() reads random bytes without throwing", () => {
  let seed = 7;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647);
  const parts = ["GET / HTTP/1.1\r\n", "host: a\r\n", "\r\n", ":", " ", "\0", "\xff", "a", "\n"];
  for (let i = 0; i < 3_000; i++) {
    const text = Array.from({ length: random() % 12 }, () => parts[random() % parts.length]);

    readHead(bytesOf(text.join("").slice(0, HEAD_BYTES_MAX)));
  }
});
