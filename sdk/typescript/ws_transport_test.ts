import assert from "node:assert/strict";
import { testTransport } from "../../tests/contracts/transport_contract.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { Random } from "../../tests/fakes/random.ts";
import { serveSilence, serveSockets, upgrade } from "../../tests/fakes/socket_server.ts";
import { registerWorker } from "./register_worker.ts";
import { Batch, makeWsDial, splitBatch, wsDial, type WsTimes } from "./ws_transport.ts";
import type { EngineError } from "./wire/errors.ts";
import { BATCH_CHARS_MAX } from "./wire/limits.ts";
import { BATCH_PROTOCOL, type Json } from "./wire/protocol.ts";

testTransport("wsDial", wsDial);

const TIMES: WsTimes = { openMs: 10_000, pingMs: 20_000, silenceMs: 60_000, closeMs: 1_000 };

/** Connects and returns the code and reason with which the connection closes. */
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

Deno.test("wsDial closes when the upgrade gets no response", async () => {
  await using server = serveSilence("before");

  assert.equal(await endOf(server.url, { openMs: 20 }), "1006 no answer within 20 ms");
});

Deno.test("wsDial closes a connection on which nothing arrives", async () => {
  await using server = serveSilence("after");

  const end = await endOf(server.url, { pingMs: 10, silenceMs: 50 });

  assert.equal(end, "1006 nothing received for 50 ms");
});

Deno.test("wsDial closes when the peer does not respond to a close frame", async () => {
  await using server = serveSilence("after");

  const end = await new Promise<number>((resolve) => {
    const transport = makeWsDial({ ...TIMES, closeMs: 20 })(server.url, {
      opened: () => transport.close(),
      text() {},
      binary() {},
      closed: (code) => resolve(code),
    }, {});
  });

  assert.equal(end, 1006);
});

Deno.test("wsDial closes with 1009 at the head of a message of over 256 MiB", async () => {
  for (const excess of [0, 1]) {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const ended = endOf(`ws://127.0.0.1:${listener.addr.port}`, { closeMs: 20 });
    using peer = await listener.accept();
    await upgrade(peer);
    const head = new DataView(new ArrayBuffer(11));
    head.setUint16(0, 0x817f);
    head.setBigUint64(2, BigInt(256 * 1024 * 1024 + excess));
    await peer.write(new Uint8Array(head.buffer));
    if (excess === 0) await peer.closeWrite(); // Or it would wait for the rest.

    const end = await ended; // Also when the peer leaves the close frame unanswered.

    assert.equal(end === "1006 Max payload size exceeded", excess > 0, end);
    if (excess === 0) continue;
    const frame = new Uint8Array(100);
    await peer.read(frame);
    const code = (frame[2]! ^ frame[6]!) << 8 | (frame[3]! ^ frame[7]!); // It is masked.
    assert.deepEqual([frame[0], code], [0x88, 1009]);
  }
});

Deno.test("wsDial keeps an idle connection whose peer responds to pings", async () => {
  await using server = serveSockets();
  const ended: string[] = [];
  let isOpen = false;
  const transport = makeWsDial({ ...TIMES, pingMs: 10, silenceMs: 200 })(server.url, {
    opened: () => isOpen = true,
    text() {},
    binary() {},
    closed: (code, reason) => ended.push(`${code} ${reason}`),
  }, {});

  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(isOpen);
  assert.deepEqual(ended, []);

  transport.close();
  while (ended.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

Deno.test("wsDial reports an invalid address and does not throw", async () => {
  assert.match(await endOf("ws://127.0.0.1:1/ space", {}), /^1006 ./);
  assert.match(await endOf("no address", {}), /^1006 ./);
});

/** Connects to a server that records the frames it receives. */
async function openTo(
  { protocol, batch, enough, opened }: {
    protocol?: string;
    batch?: boolean;
    /** Number of frames after which `full` resolves. */
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
  const transport = wsDial(server.url, {
    opened: ready.resolve,
    text: (message) => void texts.push(message),
    binary() {},
    closed: () => closed.resolve(),
  }, { ...batch !== undefined && { batch } });
  await ready.promise;
  return {
    frames,
    texts,
    transport,
    server,
    full: full.promise,
    async [Symbol.asyncDispose]() {
      transport.close();
      await closed.promise;
      await server[Symbol.asyncDispose]();
    },
  };
}

Deno.test("wsDial joins the messages of a tick if the server selects batches", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch: true, enough: 2 });

  for (const text of ["1", "2", "3"]) peer.transport.send(text);
  assert.ok(peer.transport.queuedBytes! >= 3);
  await new Promise((resolve) => setTimeout(resolve));
  peer.transport.send("4");
  await peer.full;

  assert.deepEqual(peer.frames, ["1\n2\n3", "4"]);
});

Deno.test("wsDial splits batches only if it offered them", async () => {
  const opened = (socket: WebSocket) => socket.send("\n1\n\n2\n");
  for (const batch of [true, false]) {
    await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch, enough: 1, opened });
    while (peer.texts.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));

    assert.deepEqual(peer.texts, batch ? ["1", "2"] : ["\n1\n\n2\n"]);
  }
});

Deno.test("wsDial sends one message per frame to a server without batches", async () => {
  await using peer = await openTo({ batch: true, enough: 3 });

  for (const text of ["1", "2", "3"]) peer.transport.send(text);
  await peer.full;

  assert.equal(peer.server.requests[0]!.headers.get("sec-websocket-protocol"), BATCH_PROTOCOL);
  assert.deepEqual(peer.frames, ["1", "2", "3"]);
});

Deno.test("wsDial does not offer batches by default", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, enough: 2 });

  for (const text of ["1", "2"]) peer.transport.send(text);
  await peer.full;

  assert.equal(peer.server.requests[0]!.headers.get("sec-websocket-protocol"), null);
  assert.deepEqual(peer.frames, ["1", "2"]);
});

Deno.test("wsDial keeps the order of text and bytes in a batch", async () => {
  await using peer = await openTo({ protocol: BATCH_PROTOCOL, batch: true, enough: 3 });

  for (const message of ["1", "2", new Uint8Array([3]), "4"]) peer.transport.send(message);
  await peer.full;

  const shown = peer.frames.map((frame) =>
    typeof frame === "string" ? frame : [...new Uint8Array(frame)]
  );
  assert.deepEqual(shown, ["1\n2", [3], "4"]);
});

Deno.test("wsDial sends what was sent before close(), with batches and without", async () => {
  for (const protocol of [BATCH_PROTOCOL, "other"]) {
    await using peer = await openTo({ protocol, batch: true, enough: 1 });

    for (const text of ["1", "2"]) peer.transport.send(text);
    peer.transport.close();
    await peer.full;

    assert.equal(peer.frames[0], protocol === BATCH_PROTOCOL ? "1\n2" : "1");
  }
});

Deno.test("wsDial closes when the server selects a subprotocol that was not offered", async () => {
  await using server = serveSilence("after", "other.v1");

  assert.match(await endOf(server.url, {}), /^1006 .*subprotocol/);
});

Deno.test("wsDial writes the frames of a tick at once, also without batches", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const transport = makeWsDial({ ...TIMES, closeMs: 1 })(`ws://127.0.0.1:${port}`, {
    opened: opened.resolve,
    text() {},
    binary() {},
    closed: () => closed.resolve(),
  }, { batch: true });
  using peer = await listener.accept();
  await upgrade(peer);
  await opened.promise;

  for (let i = 0; i < 50; i++) transport.send("x".repeat(94));
  const buffer = new Uint8Array(64 * 1024);
  const count = await peer.read(buffer);

  assert.equal(count, 50 * 100); // A header with its mask has 6 bytes.
  transport.close();
  await closed.promise;
});

function setup() {
  const frames: string[] = [];
  return { frames, batch: new Batch((frame) => frames.push(frame)) };
}

function split(frame: string): string[] {
  const messages: string[] = [];
  splitBatch(frame, (message) => messages.push(message));
  return messages;
}

Deno.test("Batch.flush() writes all messages as one frame, in order, once", () => {
  const { batch, frames } = setup();

  for (const text of ["{1}", "{2}", "{3}"]) batch.add(text);
  assert.deepEqual(frames, []);
  batch.flush();
  batch.flush();

  assert.deepEqual(frames, ["{1}\n{2}\n{3}"]);
  assert.equal(batch.chars, 0);
});

Deno.test("Batch.flush() writes a single message unchanged", () => {
  const { batch, frames } = setup();

  batch.add("{}");
  batch.flush();

  assert.deepEqual(frames, ["{}"]);
});

Deno.test("a frame has at most BATCH_CHARS_MAX characters, unless it is a single message", () => {
  const { batch, frames } = setup();
  const small = "x".repeat(1_000);
  const large = "y".repeat(2 * BATCH_CHARS_MAX);

  for (let i = 0; i < 200; i++) batch.add(small);
  assert.ok(batch.chars <= BATCH_CHARS_MAX);
  batch.add(large);
  batch.add(small);
  batch.flush();

  assert.equal(frames.flatMap(split).length, 202);
  assert.deepEqual(frames.filter((frame) => frame.length > BATCH_CHARS_MAX), [large]);
  assert.equal(frames.at(-1), small);
});

Deno.test("a full batch stays below 1 MiB of UTF-8", () => {
  const { batch, frames } = setup();

  for (let i = 0; i < 1_000; i++) batch.add("€".repeat(999));
  batch.flush();

  const bytes = frames.map((frame) => new TextEncoder().encode(frame).length);
  assert.ok(Math.max(...bytes) < 1024 * 1024);
});

Deno.test("splitBatch() passes each line but empty ones", () => {
  assert.deepEqual(split("a"), ["a"]);
  assert.deepEqual(split("a\nb"), ["a", "b"]);
  assert.deepEqual(split("\n\na\n\nb\n"), ["a", "b"]);
  assert.deepEqual(split(""), []);
  assert.deepEqual(split("\n"), []);
});

Deno.test("splitBatch() reverses Batch for random messages", () => {
  for (let seed = 0; seed < 200; seed++) {
    const random = new Random(seed);
    const { batch, frames } = setup();
    const texts = Array.from({ length: random.below(30) }, () => {
      return JSON.stringify({
        text: random.pick(["\n", "ä€😀", "", "x"]).repeat(random.below(5e3)),
      });
    });

    texts.forEach((text) => batch.add(text));
    batch.flush();

    assert.deepEqual(frames.flatMap(split), texts, `seed ${seed}`);
  }
});

Deno.test("no message of a worker contains a newline, whatever user code passes", async () => {
  const fake = new FakeDial();
  const onError = () => {};
  const worker = registerWorker("ws://x", { dial: fake.dial, onError, description: "a\nb" });
  const transport = fake.transport.open("w\n1");
  const nasty = { "k\ne\r\ny": "v\nw\u2028", nested: ["\n"] };
  worker.registerFunction("good::one", (payload, _metadata, context) => {
    context.progress({ "at\n": 1 });
    return payload;
  }, { description: "1\n2", metadata: nasty, request_format: { description: "\n" } });
  worker.registerFunction("bad\none", () => {
    throw Object.assign(new Error("1\n2"), { code: "c\nd", details: nasty });
  });
  worker.registerTrigger({ type: "t\n", function_id: "bad\none", config: nasty, metadata: nasty });
  const abort = new AbortController();
  const calls = [
    worker.trigger({ function_id: "a\nb", payload: nasty, metadata: nasty, namespace: "n\n" }),
    worker.trigger({ function_id: "c", baggage: "b\n", traceparent: "t\n", signal: abort.signal }),
    worker.trigger({ function_id: "d", action: { type: "enqueue", queue: "q\n" } }),
  ].map((call) => call.catch(() => {}));
  for (const function_id of ["good::one", "bad\none"]) {
    const ids = { invocation_id: `i\n${function_id}`, traceparent: "t\n", baggage: "\n" };
    transport.deliver({ type: "invokefunction", function_id, data: nasty, ...ids });
  }
  abort.abort(new Error("no\nmore"));
  await new Promise((resolve) => setTimeout(resolve));

  assert.ok(transport.texts.length > 10);
  assert.deepEqual(transport.texts.filter((text) => /[\n\r]/.test(text)), []);
  await worker.shutdown();
  await Promise.all(calls);
});

/** A server with batches that sends `messages` in one frame when a worker announces itself. */
function serveBatches(messages: readonly string[]) {
  const frames: string[] = [];
  const enough = Promise.withResolvers<void>();
  const results = (): Record<string, Json>[] =>
    frames.flatMap(split).map((text) => JSON.parse(text))
      .filter(({ type }) => type === "invocationresult");
  const server = serveSockets({
    protocol: BATCH_PROTOCOL,
    message: (socket, data) => {
      if (frames.push(data as string) === 1) socket.send(messages.join("\n"));
      if (results().length === 2) enough.resolve();
    },
  });
  return { server, frames, results, enough: enough.promise };
}

Deno.test("a bad message in a batch affects only itself", async () => {
  const call = (id: string) =>
    `{"type":"invokefunction","invocation_id":"${id}","function_id":"a::b","data":"${id}"}`;
  const { server, results, enough } = serveBatches([
    call("1"),
    "{nonsense",
    "",
    '{"type":"teleport"}',
    call("2"),
  ]);
  await using _server = server;
  const errors: EngineError[] = [];
  const onError = (error: EngineError) => errors.push(error);
  await using worker = registerWorker(server.url, { onError, telemetry: false });
  worker.registerFunction("a::b", (payload) => payload);

  await enough;

  assert.deepEqual(results().map(({ invocation_id, result }) => [invocation_id, result]), [
    ["1", "1"],
    ["2", "2"],
  ]);
  assert.deepEqual(errors.map(({ code }) => code), ["bad_message", "bad_message"]);
});

Deno.test("results of calls that arrive in one frame are sent in one frame", async () => {
  const call = (id: number) =>
    `{"type":"invokefunction","invocation_id":"${id}","function_id":"a::b","data":${id}}`;
  const { server, frames, enough } = serveBatches([call(1), call(2)]);
  await using _server = server;
  await using worker = registerWorker(server.url, { telemetry: false });
  // One returns at once, the other some microtasks later.
  worker.registerFunction("a::b", (id: number) => id === 1 ? id : slowly(id));

  await enough;

  assert.equal(split(frames.at(-1)!).length, 2);
});

async function slowly(value: number): Promise<number> {
  for (let i = 0; i < 3; i++) await null;
  return value;
}
