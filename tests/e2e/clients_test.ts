/**
 * WebSocket clients of other makes against the raw listener: Deno's, Node's (undici), Chromium's,
 * the npm package `ws`, and Python's `websockets`.
 *
 * Each sends messages of every kind of size, as text and as bytes, keeps 100 in flight, and ends a
 * connection and has one closed by the server; clients that can also send fragments and pings.
 *
 * @module
 */
import assert from "node:assert/strict";
import WebSocketOfWs from "ws";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import type { Json } from "../../mod.ts";
import { Port } from "../contracts/connection_setup.ts";
import { chromiumHere } from "../console/console_browser.ts";
import { HeadlessBrowser } from "../console/headless_browser.ts";
import { findNode, findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const hasNode = await findNode("part of tests/e2e/clients_test.ts");
const hasPython = await findPython("part of tests/e2e/clients_test.ts");

/** What a client with the interface of browsers does, and what it has seen of the ends. */
const TALK = `async (url) => {
  const open = () => new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => resolve(socket);
    socket.onerror = () => reject(new Error("no connection"));
  });
  const next = (socket) => new Promise((resolve) => socket.onmessage = ({ data }) => resolve(data));
  const ended = (socket) => new Promise((resolve) => {
    socket.onclose = ({ code, reason, wasClean }) => resolve({ code, reason, wasClean });
  });
  const socket = await open();
  for (const size of [0, 1, 125, 126, 4_096, 65_535, 65_536, 70_000, 1_048_576]) {
    for (const text of ["x".repeat(size), "ü".repeat(size / 2)]) {
      socket.send(text);
      if (await next(socket) !== text) throw new Error("a text of " + size + " is another");
    }
    const bytes = new Uint8Array(size).fill(254);
    socket.send(bytes);
    const back = new Uint8Array(await next(socket));
    if (back.length !== size || back.some((byte) => byte !== 254)) {
      throw new Error("a message of " + size + " bytes is another");
    }
  }
  const heard = [];
  const all = new Promise((resolve) => socket.onmessage = ({ data }) => {
    if (heard.push(data) === 100) resolve();
  });
  const sent = Array.from({ length: 100 }, (_, i) => i + "x".repeat(i * 40));
  for (const text of sent) socket.send(text);
  await all;
  if (heard.join() !== sent.join()) throw new Error("100 in flight came in another order");
  const mine = ended(socket);
  socket.close(4001, "done ü");
  const other = await open();
  const theirs = ended(other);
  other.send("end me");
  return [await mine, await theirs];
}`;

const SEEN = [
  { code: 4001, reason: "done ü", wasClean: true },
  { code: 4002, reason: "as you asked", wasClean: true },
];

/** A port that echoes messages, and closes a connection on request. */
class EchoPort implements AsyncDisposable {
  readonly port: Port;
  readonly url: string;

  constructor() {
    this.port = new Port({ listen: listenRaw }, {}, () => (connection) => {
      const ends: { code: number; reason: string }[] = [];
      this.ends.push(ends);
      return {
        text() {},
        textBytes(memory, start, end) {
          if (
            end - start === 6 && new TextDecoder().decode(memory.subarray(start, end)) === "end me"
          ) {
            connection.close(4002, "as you asked");
          } else connection.forward(memory, 0, memory, start, end);
        },
        binary: (bytes) => connection.sendBinary(bytes),
        drained() {},
        suspected() {},
        closed: (code, reason) => void ends.push({ code, reason }),
      };
    });
    this.url = `ws://127.0.0.1:${this.port.listener.port}/`;
  }

  /** How each connection ended, in the order they opened. */
  readonly ends: { code: number; reason: string }[][] = [];

  [Symbol.asyncDispose](): Promise<void> {
    return this.port[Symbol.asyncDispose]();
  }

  /** Claims that a talk by {@linkcode TALK} went as it has to, at both ends. */
  async check(seen: Json): Promise<void> {
    assert.deepEqual(seen, SEEN);
    const isOver = (): boolean => this.ends.every((ends) => ends.length > 0);
    await until(isOver, "both connections are closed at this end, too");
    assert.deepEqual(this.ends, SEEN.map(({ code, reason }) => [{ code, reason }]));
    assert.deepEqual(this.port.cuts, []);
  }
}

Deno.test("Deno's own client and the raw listener understand each other", async () => {
  await using echo = new EchoPort();
  const talk = new Function(`return ${TALK}`)() as (url: string) => Promise<Json>;

  await echo.check(await talk(echo.url));
});

Deno.test({
  name: "Node's own client (undici) and the raw listener understand each other",
  ignore: !hasNode,
  async fn() {
    await using echo = new EchoPort();
    const code = `(${TALK})(process.argv[1]).then((seen) => console.log(JSON.stringify(seen)))`;

    const { stdout, stderr } = await new Deno.Command("node", {
      args: ["--experimental-websocket", "-e", code, echo.url],
    }).output();

    const text = new TextDecoder().decode(stdout);
    assert.notEqual(text, "", new TextDecoder().decode(stderr));
    await echo.check(JSON.parse(text));
  },
});

Deno.test({
  name: "Chromium's client and the raw listener understand each other",
  ignore: chromiumHere === undefined,
  sanitizeOps: false, // Those of the driver's connection to the browser.
  sanitizeResources: false,
  async fn() {
    await using echo = new EchoPort();
    await using browser = await HeadlessBrowser.start();
    // From a place of its own, since Chromium lets no other page reach this machine.
    await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
      return new Response("<!doctype html>", { headers: { "content-type": "text/html" } });
    });
    await using open = await browser.open(`http://127.0.0.1:${server.addr.port}/`);

    await echo.check(await open.page.evaluate(`(${TALK})(${JSON.stringify(echo.url)})`) as Json);
  },
});

Deno.test("the npm package ws and the raw listener understand each other, with fragments and pings", async () => {
  await using echo = new EchoPort();
  const socket = new WebSocketOfWs(echo.url);
  const heard: string[] = [];
  socket.on("message", (data: Uint8Array, isBinary: boolean) => {
    heard.push(isBinary ? `${data.length} bytes` : String(data));
  });
  socket.on("pong", (data: Uint8Array) => void heard.push(`pong ${data}`));
  await new Promise((resolve) => socket.once("open", resolve));

  for (const [i, part] of ["a", "ü", "", "😀"].entries()) {
    socket.send(part, { fin: i === 3 });
    if (i === 1) socket.ping("amid");
  }
  await until(() => heard.length === 2, "the first two are back");
  for (let i = 0; i < 300; i++) socket.send(new Uint8Array(1_000), { fin: i === 299 });
  await until(() => heard.length === 3, "the large one is back");
  const closed = new Promise((resolve) =>
    socket.once("close", (code: number, reason: Uint8Array) => resolve(`${code} ${reason}`))
  );
  socket.close(4001, "done");

  assert.deepEqual(heard, ["pong amid", "aü😀", "300000 bytes"]);
  assert.equal(await closed, "4001 done");
  assert.deepEqual(echo.ends, [[{ code: 4001, reason: "done" }]]);
});

const PYTHON = `
import asyncio, sys
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

async def main(url):
    async with connect(url, max_size=None) as connection:
        for size in [0, 1, 125, 126, 4096, 65535, 65536, 70000, 1048576]:
            for message in ["x" * size, "ü" * (size // 2), b"\\xfe" * size]:
                await connection.send(message)
                assert await connection.recv() == message, size
        async def parts():
            for part in ["a", "ü", "", "😀"]:
                yield part
        await connection.send(parts())
        assert await connection.recv() == "aü😀"
        await (await connection.ping(b"still there?"))
        sent = [f"{i}" + "x" * (i * 40) for i in range(100)]
        for text in sent:
            await connection.send(text)
        assert [await connection.recv() for _ in sent] == sent
        await connection.close(4001, "done ü")
    async with connect(url) as connection:
        await connection.send("end me")
        try:
            await connection.recv()
        except ConnectionClosed as closed:
            print(closed.rcvd.code, closed.rcvd.reason, closed.rcvd_then_sent)

asyncio.run(main(sys.argv[1]))
`;

Deno.test({
  name: "Python's websockets and the raw listener understand each other, with fragments and pings",
  ignore: !hasPython,
  async fn() {
    await using echo = new EchoPort();

    const { stdout, stderr } = await new Deno.Command("python3", {
      args: ["-c", PYTHON, echo.url],
      env: { ...PYTHON_ENV, PYTHONIOENCODING: "utf-8" },
    }).output();

    const said = new TextDecoder().decode(stdout).trim();
    assert.equal(said, "4002 as you asked True", new TextDecoder().decode(stderr));
    await echo.check(SEEN);
  },
});
