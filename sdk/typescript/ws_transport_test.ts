import assert from "node:assert/strict";
import { serveSilence, serveSockets, upgrade } from "../../tests/fakes/socket_server.ts";
import { BATCH_PROTOCOL } from "./wire/protocol.ts";
import { testTransport } from "../../tests/contracts/transport_contract.ts";
import { makeWsDial, wsDial, type WsTimes } from "./ws_transport.ts";

testTransport("wsDial", wsDial);

const TIMES: WsTimes = { openMs: 10_000, pingMs: 20_000, silenceMs: 60_000, closeMs: 1_000 };

/** How a line ends that nobody closes. */
function endOf(url: string, times: Partial<WsTimes>): Promise<string> {
  return new Promise((resolve) => {
    makeWsDial({ ...TIMES, ...times })(url, {
      opened() {},
      text() {},
      binary() {},
      closed: (code, reason) => resolve(`${code} ${reason}`),
    }, {});
  });
}

Deno.test("wsDial gives up an upgrade that is not answered", async () => {
  await using server = serveSilence("before");

  assert.equal(await endOf(server.url, { openMs: 20 }), "1006 no answer within 20 ms");
});

Deno.test("wsDial ends a line from which nothing comes any more", async () => {
  await using server = serveSilence("after");

  const end = await endOf(server.url, { pingMs: 10, silenceMs: 50 });

  assert.equal(end, "1006 nothing heard for 50 ms");
});

Deno.test("wsDial does not wait long for a peer that does not answer a close", async () => {
  await using server = serveSilence("after");

  const end = await new Promise<number>((resolve) => {
    const line = makeWsDial({ ...TIMES, closeMs: 20 })(server.url, {
      opened: () => line.close(),
      text() {},
      binary() {},
      closed: (code) => resolve(code),
    }, {});
  });

  assert.equal(end, 1006);
});

Deno.test("wsDial keeps a quiet line whose peer answers pings", async () => {
  await using server = serveSockets();
  const ended: string[] = [];
  let isOpen = false;
  const line = makeWsDial({ ...TIMES, pingMs: 10, silenceMs: 200 })(server.url, {
    opened: () => isOpen = true,
    text() {},
    binary() {},
    closed: (code, reason) => ended.push(`${code} ${reason}`),
  }, {});

  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(isOpen);
  assert.deepEqual(ended, []);

  line.close();
  while (ended.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

Deno.test("wsDial reports an address it cannot use, and never throws", async () => {
  assert.match(await endOf("ws://127.0.0.1:1/ space", {}), /^1006 ./);
  assert.match(await endOf("no address", {}), /^1006 ./);
});

/** A line to a server that tells what came, frame by frame. */
async function openTo(
  { protocol, batch, enough, opened }: {
    protocol?: string;
    batch?: boolean;
    /** Frames to wait for. */
    enough: number;
    opened?: (socket: WebSocket) => void;
  },
) {
  const frames: (string | ArrayBuffer)[] = [];
  const texts: string[] = [];
  const full = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const server = serveSockets({
    ...protocol !== undefined && { protocol },
    ...opened && { opened },
    message: (_socket, data) => {
      if (frames.push(data) === enough) full.resolve();
    },
  });
  const line = wsDial(server.url, {
    opened: ready.resolve,
    text: (message) => void texts.push(message),
    binary() {},
    closed: () => closed.resolve(),
  }, { ...batch !== undefined && { batch } });
  await ready.promise;
  return {
    frames,
    texts,
    line,
    server,
    full: full.promise,
    async [Symbol.asyncDispose]() {
      line.close();
      await closed.promise;
      await server[Symbol.asyncDispose]();
    },
  };
}

Deno.test("wsDial joins the messages of a turn where the server takes batches", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch: true, enough: 2 });

  for (const text of ["1", "2", "3"]) peer.line.send(text);
  assert.ok(peer.line.queuedBytes! >= 3);
  await new Promise((resolve) => setTimeout(resolve));
  peer.line.send("4");
  await peer.full;

  assert.deepEqual(peer.frames, ["1\n2\n3", "4"]);
});

Deno.test("wsDial takes batches apart, but only where it agreed to them", async () => {
  const opened = (socket: WebSocket) => socket.send("\n1\n\n2\n");
  for (const batch of [true, false]) {
    await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch, enough: 1, opened });
    while (peer.texts.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));

    assert.deepEqual(peer.texts, batch ? ["1", "2"] : ["\n1\n\n2\n"]);
  }
});

Deno.test("wsDial sends one message a frame to a server that takes no batches", async () => {
  await using peer = await openTo({ batch: true, enough: 3 });

  for (const text of ["1", "2", "3"]) peer.line.send(text);
  await peer.full;

  assert.equal(peer.server.requests[0]!.headers.get("sec-websocket-protocol"), BATCH_PROTOCOL);
  assert.deepEqual(peer.frames, ["1", "2", "3"]);
});

Deno.test("wsDial offers batches to nobody unless it is told to", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, enough: 2 });

  for (const text of ["1", "2"]) peer.line.send(text);
  await peer.full;

  assert.equal(peer.server.requests[0]!.headers.get("sec-websocket-protocol"), null);
  assert.deepEqual(peer.frames, ["1", "2"]);
});

Deno.test("wsDial keeps the order of text and bytes in a batch", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch: true, enough: 3 });

  for (const message of ["1", "2", new Uint8Array([3]), "4"]) peer.line.send(message);
  await peer.full;

  const shown = peer.frames.map((frame) =>
    typeof frame === "string" ? frame : [...new Uint8Array(frame)]
  );
  assert.deepEqual(shown, ["1\n2", [3], "4"]);
});

Deno.test("wsDial sends what was said before close(), with batches and without", async () => {
  for (const protocol of [BATCH_PROTOCOL, "other"]) {
    await using peer = await openTo({ protocol, batch: true, enough: 1 });

    for (const text of ["1", "2"]) peer.line.send(text);
    peer.line.close();
    await peer.full;

    assert.equal(peer.frames[0], protocol === BATCH_PROTOCOL ? "1\n2" : "1");
  }
});

Deno.test("wsDial gives a line up whose server selects what was not offered", async () => {
  await using server = serveSilence("after", "other.v1");

  assert.match(await endOf(server.url, {}), /^1006 .*subprotocol/);
});

Deno.test("wsDial writes what a turn has to say in one go, also frame by frame", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const line = makeWsDial({ ...TIMES, closeMs: 1 })(`ws://127.0.0.1:${port}`, {
    opened: opened.resolve,
    text() {},
    binary() {},
    closed: () => closed.resolve(),
  }, { batch: true });
  using peer = await listener.accept();
  await upgrade(peer);
  await opened.promise;

  for (let i = 0; i < 50; i++) line.send("x".repeat(94));
  const buffer = new Uint8Array(64 * 1024);
  const count = await peer.read(buffer);

  assert.equal(count, 50 * 100); // Head and mask of a frame take 6 bytes.
  line.close();
  await closed.promise;
});
