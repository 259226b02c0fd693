/**
 * Requests that run: too many, too long, and for clients that have left.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { failure, fakeHttp, settle } from "../../tests/fakes/fake_http.ts";
import { RunningRequests } from "./running.ts";

Deno.test("A client that goes away cancels the call of its handler", async () => {
  let signal: CallRequest<Json>["signal"];
  const { route, fetch, clock, running } = fakeHttp({}, {
    f: (request) =>
      new Promise((_, reject) => {
        signal = request.signal;
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });
  await settle();
  clock.tick(100);

  client.abort();
  const response = await answered;

  assert.equal(signal!.aborted, true);
  assert.equal(response.status, 499);
  assert.equal(running.size, 0);
});

Deno.test("A body that never ends is given up at the time-out", async () => {
  const { route, fetch, clock } = fakeHttp({ timeout_ms: 1_000 }, { f: () => ({}) });
  route("POST /f", "f");
  let isLetGo = false;
  const body = new ReadableStream<Uint8Array>({ cancel: () => void (isLetGo = true) });
  const answered = fetch("POST /f", { body });

  clock.tick(1_100);

  assert.equal((await answered).status, 504);
  assert.equal(isLetGo, true);
});

Deno.test("Ten requests over the limit are answered with 429, and room comes back", async () => {
  const open: (() => void)[] = [];
  const { route, fetch, running } = fakeHttp({ concurrency_max: 5 }, {
    f: () => new Promise((resolve) => open.push(() => resolve({}))),
  });
  route("GET /f", "f");

  const answers = Array.from({ length: 15 }, () => fetch("GET /f"));
  const refused = await Promise.all(answers.slice(5));

  assert.equal(running.size, 5);
  for (const response of refused) {
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.equal((await response.json()).error.code, "overloaded");
  }
  open.forEach((finish) => finish());
  for (const response of await Promise.all(answers.slice(0, 5))) assert.equal(response.status, 200);
  const later = fetch("GET /f");
  await settle();
  open[5]!();
  assert.equal((await later).status, 200);
});

Deno.test("A client that went away before anybody looked cancels the call as well", async () => {
  const { route, fetch, clock } = fakeHttp({}, {
    f: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });

  client.abort();
  clock.tick(100);

  assert.equal((await answered).status, 499);
});

Deno.test("A request is not touched by the end of the one before", async () => {
  const { route, fetch, clock } = fakeHttp({}, {
    stuck: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
    f: ({ signal }) => ({ body: signal!.aborted }),
  });
  route("GET /stuck", "stuck");
  route("GET /f", "f");
  const client = new AbortController();
  const left = fetch("GET /stuck", { signal: client.signal });
  await settle();
  clock.tick(100);
  client.abort();
  await left;

  for (let i = 0; i < 3; i++) assert.equal(await (await fetch("GET /f")).json(), false);
});

Deno.test("RunningRequests.leave() takes out that request alone, and only once", () => {
  const requests = new RunningRequests(new FakeClock(), 1_000, 10);
  const [a, b, c] = ["a", "b", "c"].map((path) =>
    requests.enter(new Request(`http://127.0.0.1/${path}`))!
  );

  for (const running of [a!, a!, b!]) requests.leave(running);
  const size = requests.size;
  requests.stop();

  assert.equal(size, 1);
  assert.deepEqual([a!.end, b!.end, c!.end], [undefined, undefined, "stopped"]);
});
