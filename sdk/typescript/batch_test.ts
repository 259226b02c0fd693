import assert from "node:assert/strict";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { Random } from "../../tests/fakes/random.ts";
import { serveSockets } from "../../tests/fakes/socket_server.ts";
import { Batch, splitBatch } from "./batch.ts";
import type { EngineError } from "./wire/errors.ts";
import { BATCH_CHARS_MAX } from "./wire/limits.ts";
import { BATCH_PROTOCOL, type Json } from "./wire/protocol.ts";
import { registerWorker } from "./worker.ts";

function setup() {
  const frames: string[] = [];
  return { frames, batch: new Batch((frame) => frames.push(frame)) };
}

function split(frame: string): string[] {
  const messages: string[] = [];
  splitBatch(frame, (message) => messages.push(message));
  return messages;
}

Deno.test("Batch.flush() sends all messages in one frame, in order, once", () => {
  const { batch, frames } = setup();

  for (const text of ["{1}", "{2}", "{3}"]) batch.add(text);
  assert.deepEqual(frames, []);
  batch.flush();
  batch.flush();

  assert.deepEqual(frames, ["{1}\n{2}\n{3}"]);
  assert.equal(batch.chars, 0);
});

Deno.test("Batch.flush() sends a message that is alone as it is", () => {
  const { batch, frames } = setup();

  batch.add("{}");
  batch.flush();

  assert.deepEqual(frames, ["{}"]);
});

Deno.test("a batch is bounded, and only a message that is larger by itself exceeds it", () => {
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

Deno.test("splitBatch() hands over each line and none that is empty", () => {
  assert.deepEqual(split("a"), ["a"]);
  assert.deepEqual(split("a\nb"), ["a", "b"]);
  assert.deepEqual(split("\n\na\n\nb\n"), ["a", "b"]);
  assert.deepEqual(split(""), []);
  assert.deepEqual(split("\n"), []);
});

Deno.test("splitBatch() undoes what Batch did, whatever the messages are", () => {
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

Deno.test("nothing that a worker sends holds a newline, whatever user code says", async () => {
  const fake = new FakeDial();
  const onError = () => {};
  const worker = registerWorker("ws://x", { dial: fake.dial, onError, description: "a\nb" });
  const line = fake.line.open("w\n1");
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
    line.say({ type: "invokefunction", function_id, data: nasty, ...ids });
  }
  abort.abort(new Error("no\nmore"));
  await new Promise((resolve) => setTimeout(resolve));

  assert.ok(line.texts.length > 10);
  assert.deepEqual(line.texts.filter((text) => /[\n\r]/.test(text)), []);
  await worker.shutdown();
  await Promise.all(calls);
});

/** An engine of a few lines that takes batches: says `lines` in one frame to who announces itself. */
function serveBatches(lines: readonly string[]) {
  const frames: string[] = [];
  const enough = Promise.withResolvers<void>();
  const results = (): Record<string, Json>[] =>
    frames.flatMap(split).map((text) => JSON.parse(text))
      .filter(({ type }) => type === "invocationresult");
  const server = serveSockets({
    protocol: BATCH_PROTOCOL,
    message: (socket, data) => {
      if (frames.push(data as string) === 1) socket.send(lines.join("\n"));
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

Deno.test("answers to calls that came in one frame leave in one frame", async () => {
  const call = (id: number) =>
    `{"type":"invokefunction","invocation_id":"${id}","function_id":"a::b","data":${id}}`;
  const { server, frames, enough } = serveBatches([call(1), call(2)]);
  await using _server = server;
  await using worker = registerWorker(server.url, { telemetry: false });
  // One is there at once, the other some microtasks later.
  worker.registerFunction("a::b", (id: number) => id === 1 ? id : slowly(id));

  await enough;

  assert.equal(split(frames.at(-1)!).length, 2);
});

async function slowly(value: number): Promise<number> {
  for (let i = 0; i < 3; i++) await null;
  return value;
}
