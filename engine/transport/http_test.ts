import assert from "node:assert/strict";
import {
  checkUpgrade,
  readHead,
  refusalResponse,
  type RequestHead,
  responseBytes,
  UPGRADE_HEAD_BYTES_MAX,
  wantsUpgrade,
} from "./http.ts";

const UPGRADE = {
  "Host": "127.0.0.1",
  "Upgrade": "websocket",
  "Connection": "keep-alive, Upgrade",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

Deno.test("a head is partial until its last byte, and says where frames begin", () => {
  const text = request({});
  for (let cut = 0; cut < text.length; cut++) {
    assert.equal(readHead(bytes(text.slice(0, cut))).state, "partial", `cut at ${cut}`);
  }

  const head = whole(text + "\u0081frames");

  assert.equal(head.bytes, text.length);
  assert.deepEqual([head.method, head.target, head.version], ["GET", "/", "HTTP/1.1"]);
});

Deno.test("what is no HTTP is refused at once or when its head ends", () => {
  const refused = [
    "\u0016\u0003\u0001",
    "hello\r\n",
    "GET /\r\n\r\n",
    "GET / HTTP/2\r\n\r\n",
    "GET  / HTTP/1.1\r\n\r\n",
    "GET /a b HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    "GET / HTTP/1.1\r\nspace : before\r\n\r\n",
    "GET / HTTP/1.1\r\nfolded: a\r\n b\r\n\r\n",
    "GET / HTTP/1.1\r\nzero: \u0000\r\n\r\n",
    "GET / HTTP/1.1\r\nbare: a\nb: c\r\n\r\n",
    "\r\n\r\n",
  ];
  for (const text of refused) {
    const found = readHead(bytes(text));
    assert.ok(found.state === "refused" && found.answer.status === 400, JSON.stringify(text));
  }
});

Deno.test("a head may have so many bytes and no more", () => {
  const line = "x-long: ";
  const fill = UPGRADE_HEAD_BYTES_MAX - request({}).length - line.length - 2;
  const longest = request({ "x-long": "a".repeat(fill) });
  assert.equal(longest.length, UPGRADE_HEAD_BYTES_MAX);

  assert.equal(readHead(bytes(longest)).state, "whole");
  const found = readHead(bytes(request({ "x-long": "a".repeat(fill + 1) })));
  assert.ok(found.state === "refused" && found.answer.status === 431);
});

Deno.test("random bytes are partial, refused or a head, and never an error", () => {
  let state = 3;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 2_000; round++) {
    const text = bytes(request({}));
    for (let i = random(8); i >= 0; i--) text[random(text.length)] = random(256);

    const found = readHead(text);
    if (found.state === "whole") checkUpgrade(found.head, "127.0.0.1");
  }
});

Deno.test("an upgrade is accepted with the key's answer of RFC 6455 and nothing chosen", () => {
  const wanted = checkUpgrade(
    whole(request({ "Sec-WebSocket-Protocol": "chat" }, "/otel?a=b%20c")),
    "::1",
  );

  assert.ok("accepted" in wanted);
  const answer = new TextDecoder().decode(wanted.accepted);
  assert.match(answer, /^HTTP\/1\.1 101 /);
  assert.match(answer, /\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
  assert.match(answer, /\r\n\r\n$/);
  assert.doesNotMatch(answer, /protocol:/i);
  assert.equal(wanted.upgrade.path, "/otel");
  assert.equal(wanted.upgrade.query.get("a"), "b c");
  assert.equal(wanted.upgrade.headers.get("sec-websocket-protocol"), "chat");
  assert.equal(wanted.upgrade.address, "::1");
});

Deno.test("batches are taken up where workers connect and offer them, among others or alone", () => {
  for (
    const [offered, path, isBatching] of [
      ["engine.batch.v1", "/", true],
      ["chat, engine.batch.v1", "/?token=x", true],
      ["engine.batch.v2", "/", false],
      ["engine.batch.v1", "/otel", false],
    ] as const
  ) {
    const wanted = checkUpgrade(whole(request({ "Sec-WebSocket-Protocol": offered }, path)), "::1");

    assert.ok("accepted" in wanted);
    assert.equal(wanted.isBatching, isBatching, `${offered} ${path}`);
    const answer = new TextDecoder().decode(wanted.accepted);
    assert.equal(answer.includes("\r\nSec-WebSocket-Protocol: engine.batch.v1\r\n"), isBatching);
    assert.match(answer, /[^\n]\r\n\r\n$/);
  }
});

Deno.test("a path keeps its slashes, and a whole URL is a path, too", () => {
  const paths = ["//evil/x", "http://other/otel"].map((target) => {
    const wanted = checkUpgrade(whole(request({}, target)), "::1");
    return "upgrade" in wanted && wanted.upgrade.path;
  });

  assert.deepEqual(paths, ["//evil/x", "/otel"]);
});

Deno.test("what lacks a part of an upgrade is answered with what it lacks", () => {
  const cases: [Record<string, string | undefined>, number, RegExp][] = [
    [{ Upgrade: undefined }, 426, /no page here/],
    [{ Upgrade: "h2c" }, 426, /no page here/],
    [{ Host: undefined }, 400, /Host/],
    [{ Connection: "close" }, 400, /Connection/],
    [{ "Sec-WebSocket-Version": "8" }, 426, /version 13/],
    [{ "Sec-WebSocket-Version": undefined }, 426, /version 13/],
    [{ "Sec-WebSocket-Key": undefined }, 400, /Sec-WebSocket-Key/],
    [{ "Sec-WebSocket-Key": "short" }, 400, /Sec-WebSocket-Key/],
    [{ "Content-Length": "5" }, 400, /body/],
    [{ "Transfer-Encoding": "chunked" }, 400, /body/],
  ];
  for (const [headers, status, message] of cases) {
    const answer = checkUpgrade(whole(request(headers)), "::1");
    assert.ok("status" in answer, JSON.stringify(headers));
    assert.equal(answer.status, status);
    assert.match(answer.message, message);
  }
  const post = checkUpgrade(whole(request({}).replace("GET", "POST")), "::1");
  assert.ok("status" in post && post.status === 400);
});

Deno.test("an answer says how long it is and that nothing follows", () => {
  const answer = responseBytes({ status: 401, message: "Grüße", headers: { "www-x": "y" } });

  const [head, body] = new TextDecoder().decode(answer).split("\r\n\r\n");
  assert.equal(body, "Grüße\n");
  assert.deepEqual(head!.split("\r\n"), [
    "HTTP/1.1 401 Unauthorized",
    "content-type: text/plain; charset=utf-8",
    "www-x: y",
    "content-length: 8",
    "connection: close",
  ]);
});

function request(headers: Record<string, string | undefined>, target = "/"): string {
  const lines = Object.entries({ ...UPGRADE, ...headers })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

function whole(text: string): RequestHead {
  const found = readHead(bytes(text));
  assert.ok(found.state === "whole", JSON.stringify(found));
  return found.head;
}

function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

Deno.test("a missing token is answered with how to send one, another refusal as it is", () => {
  const forbidden = { status: 403, message: "Not you" };

  assert.deepEqual(refusalResponse({ status: 401, message: "Who?" }), {
    status: 401,
    message: "Who?",
    headers: { "www-authenticate": "Bearer" },
  });
  assert.equal(refusalResponse(forbidden), forbidden);
});

Deno.test("an upgrade is asked for in any case and among others", () => {
  assert.equal(wantsUpgrade(new Headers({ upgrade: "h2c, WebSocket" })), true);
  assert.equal(wantsUpgrade(new Headers({ upgrade: "h2c" })), false);
  assert.equal(wantsUpgrade(new Headers()), false);
});
