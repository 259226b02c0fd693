import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { ExportQueue, OTLP_TRIES_MAX, OtlpSender } from "./sender.ts";
import type { SignalSettings } from "./settings.ts";

function setup(more: { itemsMax?: number; batchMax?: number } = {}) {
  const clock = new FakeClock();
  const sent: number[][] = [];
  const sends: PromiseWithResolvers<void>[] = [];
  const queue = new ExportQueue<number>({
    clock,
    itemsMax: more.itemsMax ?? 10,
    batchMax: more.batchMax ?? 3,
    delayMs: 1_000,
    send: (items) => {
      sent.push([...items]);
      const send = Promise.withResolvers<void>();
      sends.push(send);
      return send.promise;
    },
  });
  const push = (...items: number[]) => items.forEach((item) => queue.push(item));
  /** The receiver answers. */
  const answer = async () => {
    sends.shift()!.resolve();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return { clock, queue, sent, push, answer };
}

Deno.test("Items are sent together after a delay", () => {
  const it = setup();
  it.push(1, 2);
  it.clock.tick(999);
  assert.deepEqual(it.sent, []);
  it.clock.tick(1);

  assert.deepEqual(it.sent, [[1, 2]]);
});

Deno.test("A full batch is sent at once", () => {
  const it = setup();
  it.push(1, 2, 3);

  assert.deepEqual(it.sent, [[1, 2, 3]]);
  assert.equal(it.clock.waiting, 0);
});

Deno.test("One batch is sent at a time; one that fills meanwhile follows at once", async () => {
  const it = setup();
  it.push(1, 2, 3, 4, 5, 6, 7);
  assert.deepEqual(it.sent, [[1, 2, 3]]);
  await it.answer();
  assert.deepEqual(it.sent, [[1, 2, 3], [4, 5, 6]]);
  await it.answer();
  assert.equal(it.sent.length, 2);
  it.clock.tick(1_000);

  assert.deepEqual(it.sent[2], [7]);
});

Deno.test("Surplus items are dropped and counted", async () => {
  const it = setup({ itemsMax: 4 });
  it.push(1, 2, 3);
  it.push(4, 5, 6, 7, 8, 9);

  assert.deepEqual([it.queue.waiting, it.queue.dropped], [4, 2]);
  await it.answer();
  it.push(10);
  assert.deepEqual(it.sent[1], [4, 5, 6]);
  assert.equal(it.queue.dropped, 2);
});

Deno.test("flush() sends all waiting items", async () => {
  const it = setup();
  it.push(1, 2, 3, 4);
  let isDone = false;
  const flushed = it.queue.flush().then(() => isDone = true);
  await it.answer();
  assert.deepEqual([it.sent.length, isDone], [2, false]);
  await it.answer();
  await flushed;

  assert.deepEqual(it.sent, [[1, 2, 3], [4]]);
});

Deno.test("flush() of an empty queue returns at once", async () => {
  await setup().queue.flush();
});

Deno.test("A closed queue sends nothing", () => {
  const it = setup();
  it.push(1);
  it.queue.close();
  it.clock.tick(5_000);

  assert.deepEqual(it.sent, []);
});

const SETTINGS: SignalSettings = {
  url: "http://user:secret@collector:4318/v1/traces?key=secret",
  headers: { authorization: "Bearer secret" },
  protocol: "http/json",
  gzip: false,
  timeout_ms: 10_000,
  delay_ms: 1,
  queue_max: 1,
  batch_max: 1,
};

/** A receiver with a list of answers; repeats the last one. */
function setupSender(
  answers: (Response | Error | "never")[],
  settings: Partial<SignalSettings> = {},
) {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const requests: RequestInit[] = [];
  const fetch = (_url: unknown, init: RequestInit): Promise<Response> => {
    requests.push(init);
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
    if (answer instanceof Response) return Promise.resolve(answer.clone());
    if (answer instanceof Error) return Promise.reject(answer);
    return new Promise((_, reject) =>
      init.signal!.addEventListener("abort", () => reject(new Error("aborted")))
    );
  };
  const sender = new OtlpSender({
    signal: "traces",
    settings: { ...SETTINGS, ...settings },
    clock,
    log: recordingLog(lines),
    fetch: fetch as typeof globalThis.fetch,
  });
  /** Sends, advancing the clock until the attempt has ended. */
  const send = async (): Promise<boolean> => {
    let result: boolean | undefined;
    void sender.send({ resourceSpans: [] }).then((sent) => result = sent);
    for (let i = 0; i < 2_000 && result === undefined; i++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      clock.tick(clock.nextIn ?? 0);
    }
    return result!;
  };
  return { sender, clock, lines, requests, send };
}

Deno.test("A request is sent with its headers", async () => {
  const it = setupSender([new Response("{}")]);

  assert.equal(await it.send(), true);

  const [{ method, headers, body }] = it.requests as [RequestInit & { headers: Headers }];
  assert.equal(method, "POST");
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(headers.get("authorization"), "Bearer secret");
  assert.equal(new TextDecoder().decode(body as Uint8Array), '{"resourceSpans":[]}');
  assert.equal(it.clock.waiting, 0);
  assert.deepEqual(it.sender.counts, { sent: 1, given_up: 0 });
});

Deno.test("A request may be compressed and binary", async () => {
  const it = setupSender([new Response()], { gzip: true, protocol: "http/protobuf" });
  await it.send();

  const [{ headers, body }] = it.requests as [RequestInit & { headers: Headers }];
  assert.equal(headers.get("content-type"), "application/x-protobuf");
  assert.equal(headers.get("content-encoding"), "gzip");
  const unpacked = new Blob([body as Uint8Array<ArrayBuffer>]).stream()
    .pipeThrough(new DecompressionStream("gzip"));
  assert.equal((await new Response(unpacked).arrayBuffer()).byteLength, 0);
});

for (const status of [429, 502, 503, 504]) {
  Deno.test(`HTTP ${status} is retried`, async () => {
    const it = setupSender([new Response(null, { status }), new Response()]);

    assert.equal(await it.send(), true);
    assert.equal(it.requests.length, 2);
    assert.equal(it.clock.now(), 1_000);
  });
}

for (const status of [400, 401, 404, 413, 500]) {
  Deno.test(`HTTP ${status} is given up at once`, async () => {
    const it = setupSender([new Response(null, { status })]);

    assert.equal(await it.send(), false);
    assert.equal(it.requests.length, 1);
    assert.deepEqual(it.lines[0]!.fields.reason, `HTTP ${status}`);
  });
}

Deno.test("A request that keeps failing is given up after growing delays", async () => {
  const it = setupSender([new Error("connection refused")]);

  assert.equal(await it.send(), false);
  assert.equal(it.requests.length, OTLP_TRIES_MAX);
  assert.equal(it.clock.now(), 1_000 + 2_000 + 4_000 + 8_000 + 16_000);
  assert.deepEqual(it.sender.counts, { sent: 0, given_up: 1 });
});

Deno.test("Retry-After sets the delay, within bounds", async () => {
  const busy = (seconds: string) =>
    new Response(null, { status: 503, headers: { "retry-after": seconds } });
  const it = setupSender([busy("7"), busy("99999"), busy("soon"), new Response()]);

  await it.send();
  assert.equal(it.clock.now(), 7_000 + 30_000 + 4_000);
});

Deno.test("A request without an answer times out", async () => {
  const it = setupSender(["never"]);

  assert.equal(await it.send(), false);
  assert.equal(it.lines[0]!.fields.reason, "no answer within 10000 ms");
});

Deno.test("The start and the end of an outage are logged once each, without secrets", async () => {
  const it = setupSender([new Error("refused"), new Error("refused"), new Response()]);
  await it.send();
  await it.send();

  assert.deepEqual(it.lines.map(({ level, text }) => [level, text]), [
    ["warn", "export fails"],
    ["info", "export recovered"],
  ]);
  assert.equal(it.lines[0]!.fields.url, "http://collector:4318/v1/traces");
  assert.ok(!JSON.stringify(it.lines).includes("secret"));
});

Deno.test("A closed sender gives up its request and retries no more", async () => {
  const it = setupSender(["never"]);
  const sent = it.sender.send({});
  await new Promise((resolve) => setTimeout(resolve, 0));
  it.sender.close();

  assert.equal(await sent, false);
  assert.equal(it.requests.length, 1);
  assert.equal(it.clock.waiting, 0);
});
