import assert from "node:assert/strict";
import { OTLP_TRIES_MAX } from "../../limits.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { OtlpSender } from "./sender.ts";
import type { SignalSettings } from "./settings.ts";

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

/** A receiver that answers by a list, the last answer again and again. */
function setup(
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
  /** Sends, and lets time pass until that has ended. */
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
  const it = setup([new Response("{}")]);

  assert.equal(await it.send(), true);

  const [{ method, headers, body }] = it.requests as [RequestInit & { headers: Headers }];
  assert.equal(method, "POST");
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(headers.get("authorization"), "Bearer secret");
  assert.equal(new TextDecoder().decode(body as Uint8Array), '{"resourceSpans":[]}');
  assert.equal(it.clock.waiting, 0);
  assert.deepEqual(it.sender.counts, { sent: 1, given_up: 0 });
});

Deno.test("A request may be packed, and binary", async () => {
  const it = setup([new Response()], { gzip: true, protocol: "http/protobuf" });
  await it.send();

  const [{ headers, body }] = it.requests as [RequestInit & { headers: Headers }];
  assert.equal(headers.get("content-type"), "application/x-protobuf");
  assert.equal(headers.get("content-encoding"), "gzip");
  const unpacked = new Blob([body as Uint8Array<ArrayBuffer>]).stream()
    .pipeThrough(new DecompressionStream("gzip"));
  assert.equal((await new Response(unpacked).arrayBuffer()).byteLength, 0);
});

for (const status of [429, 502, 503, 504]) {
  Deno.test(`HTTP ${status} is tried again`, async () => {
    const it = setup([new Response(null, { status }), new Response()]);

    assert.equal(await it.send(), true);
    assert.equal(it.requests.length, 2);
    assert.equal(it.clock.now(), 1_000);
  });
}

for (const status of [400, 401, 404, 413, 500]) {
  Deno.test(`HTTP ${status} is given up at once`, async () => {
    const it = setup([new Response(null, { status })]);

    assert.equal(await it.send(), false);
    assert.equal(it.requests.length, 1);
    assert.deepEqual(it.lines[0]!.fields.reason, `HTTP ${status}`);
  });
}

Deno.test("What fails again and again is given up after growing waits", async () => {
  const it = setup([new Error("connection refused")]);

  assert.equal(await it.send(), false);
  assert.equal(it.requests.length, OTLP_TRIES_MAX);
  assert.equal(it.clock.now(), 1_000 + 2_000 + 4_000 + 8_000 + 16_000);
  assert.deepEqual(it.sender.counts, { sent: 0, given_up: 1 });
});

Deno.test("Retry-After says how long to wait, within bounds", async () => {
  const busy = (seconds: string) =>
    new Response(null, { status: 503, headers: { "retry-after": seconds } });
  const it = setup([busy("7"), busy("99999"), busy("soon"), new Response()]);

  await it.send();
  assert.equal(it.clock.now(), 7_000 + 30_000 + 4_000);
});

Deno.test("A receiver that does not answer is given up after its time", async () => {
  const it = setup(["never"]);

  assert.equal(await it.send(), false);
  assert.equal(it.lines[0]!.fields.reason, "no answer within 10000 ms");
});

Deno.test("An outage is said once, and its end once, without secrets", async () => {
  const it = setup([new Error("refused"), new Error("refused"), new Response()]);
  await it.send();
  await it.send();

  assert.deepEqual(it.lines.map(({ level, text }) => [level, text]), [
    ["warn", "export fails"],
    ["info", "export goes on"],
  ]);
  assert.equal(it.lines[0]!.fields.url, "http://collector:4318/v1/traces");
  assert.ok(!JSON.stringify(it.lines).includes("secret"));
});

Deno.test("A closed sender gives up what is on its way and tries no more", async () => {
  const it = setup(["never"]);
  const sent = it.sender.send({});
  await new Promise((resolve) => setTimeout(resolve, 0));
  it.sender.close();

  assert.equal(await sent, false);
  assert.equal(it.requests.length, 1);
  assert.equal(it.clock.waiting, 0);
});
