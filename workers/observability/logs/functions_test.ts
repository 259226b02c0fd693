/**
 * `engine::log::*` writes records that `engine::logs::list` returns.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../../tests/fakes/fake_supervision.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { RecordingWorker } from "../../../tests/fakes/recording_worker.ts";
import { idOf, newLog } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { SearchTurns } from "../turns.ts";
import { type LogFunctionsSetup, registerLogFunctions } from "./functions.ts";
import { LogRing, LogStore } from "./store.ts";

const TRACE = idOf(7, 32);

function setup(ask?: LogFunctionsSetup["ask"]) {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const offers = new RecordingWorker();
  const directory = new FakeDirectory();
  directory.offer("w-1", "a::b");
  const redactor = new Redactor();
  const store = new LogStore({
    clock,
    redactor,
    ring: new LogRing(1_000_000),
    least: "trace",
    functionOf: () => undefined,
  });
  const log = recordingLog(lines);
  const parentOf = (trace_id: string, span_id: string) =>
    trace_id === TRACE && span_id === idOf(1, 16) ? idOf(2, 16) : undefined;
  const isOperator = (caller?: string) => caller === "boss";
  const turns = new SearchTurns(clock);
  const parts = { store, clock, turns, directory, redactor, log, parentOf, isOperator, ask };
  registerLogFunctions(offers, parts);
  const list = async (payload: Json = null) =>
    await offers.call("engine::logs::list", payload) as JsonObject;
  return { clock, lines, offers, store, list };
}

for (
  const [severity, written, number] of [
    ["trace", "debug", 1],
    ["debug", "debug", 5],
    ["info", "info", 9],
    ["warn", "warn", 13],
    ["error", "error", 17],
  ] as const
) {
  Deno.test(`engine::log::${severity} writes at ${written}, stores ${number} and returns nothing`, async () => {
    const { offers, lines, list } = setup();
    const payload = { message: "added", data: { c: 5, token: 1 }, service_name: "sums" };

    const answer = await offers.call(`engine::log::${severity}`, payload, { caller: "w-1" });

    assert.equal(answer, undefined);
    assert.deepEqual(lines, [{
      level: written,
      text: "added",
      fields: {
        worker: "fake",
        service: "sums",
        data: '{"c":5,"token":"[redacted]"}',
        trace_id: undefined,
        span_id: undefined,
      },
    }]);
    const [record] = (await list()).logs as JsonObject[];
    assert.equal(record!.severity_number, number);
    assert.equal(record!.service_name, "sums");
    assert.deepEqual(record!.attributes, {
      data: { c: 5, token: "[redacted]" },
      "engine.worker": "fake",
      "engine.source": "function",
    });
  });
}

Deno.test("engine::log::info uses the given call, or else the one it is called from", async () => {
  const { offers, list } = setup();
  const say = (payload: JsonObject, flags: string) =>
    offers.call("engine::log::info", { message: "m", ...payload }, {
      caller: "w-1",
      traceparent: `00-${TRACE}-${idOf(1, 16)}-${flags}`,
    });

  await say({ trace_id: "t", span_id: "s" }, "01");
  await say({}, "01");
  await say({ data: null, service_name: null }, "00");

  const { logs } = await list({ sort_order: "asc" });
  assert.deepEqual((logs as JsonObject[]).map(({ trace_id, span_id }) => [trace_id, span_id]), [
    ["t", "s"],
    [TRACE, idOf(2, 16)],
    [TRACE, null],
  ]);
});

Deno.test("engine::log::info bounds message and data", async () => {
  const { offers, store, list } = setup();
  const huge = "x".repeat(3_000_000);
  const line = { message: huge, trace_id: huge, span_id: huge, service_name: huge };

  await offers.call("engine::log::info", { message: "before" });
  await offers.call("engine::log::info", { ...line, data: { [huge]: huge } });

  const { logs } = await list() as { logs: JsonObject[] };
  assert.equal(logs.length, 2);
  assert.deepEqual([logs[0]!.trace_id, logs[0]!.span_id], [null, null]);
  const chars = JSON.stringify(logs[0]).length;
  assert.ok(chars < 100_000 && store.ring.bytes > chars, `${chars} of ${store.ring.bytes}`);
});

Deno.test("engine::log::info of an unnamed caller has the id of its connection", async () => {
  const { offers, lines } = setup();

  await offers.call("engine::log::info", { message: "m" }, { caller: "gone" });

  assert.equal(lines[0]!.fields.worker, "gone");
});

Deno.test("engine::logs::list filters by severity as number and as text", async () => {
  const { store, list } = setup();
  for (const severity of ["trace", "debug", "info", "warn", "error"] as const) {
    store.add(newLog({ body: severity[0]!, severity }));
  }
  const found = async (payload: Json) =>
    ((await list(payload)).logs as JsonObject[]).map(({ body }) => body).join("");

  assert.equal(await found(null), "ewidt");
  assert.equal(await found({ severity_min: 9 }), "ewi");
  assert.equal(await found({ severity_min: 10 }), "ew");
  assert.equal(await found({ severity_min: 0 }), "ewidt");
  assert.equal(await found({ severity_min: 99 }), "e");
  assert.equal(await found({ severity_text: "WARN" }), "w");
  assert.equal(await found({ sort_order: "asc", offset: 1, limit: 2 }), "di");
  assert.equal(await found({ after_seq: 3 }), "ew");
});

Deno.test("engine::logs::list returns the total and the time", async () => {
  const { store, list, clock } = setup();
  for (let i = 0; i < 150; i++) store.add(newLog());

  const answer = await list();

  assert.deepEqual([(answer.logs as Json[]).length, answer.total], [100, 150]);
  assert.equal(answer.timestamp, clock.wall());
});

Deno.test("engine::logs::clear returns how many records it removed", async () => {
  const { store, list, offers } = setup();
  store.add(newLog());

  await assert.rejects(
    async () => await offers.call("engine::logs::clear", null, { caller: "w-1" }),
    { code: "FORBIDDEN" },
  );
  assert.deepEqual(await offers.call("engine::logs::clear", null, { caller: "boss" }), {
    success: true,
    message: "1 records removed",
  });
  assert.equal((await list()).total, 0);
});

Deno.test("a list has the records of other engines by time, except where numbers or places are asked for", async () => {
  const asked: Json[] = [];
  const { clock, list, store } = setup((_function_id, payload) => {
    asked.push(payload);
    const nano = (ms: number): number => (clock.wall() + ms) * 1e6;
    const logs = [{ body: "b2", timestamp_unix_nano: nano(5) }, {
      body: "b1",
      timestamp_unix_nano: nano(-5),
    }];
    return Promise.resolve([{ engine: "b", life: "1", result: { logs, total: 7 } }]);
  });
  const at_ms = clock.wall();
  for (const body of ["a1", "a2"]) store.add(newLog({ at_ms, observed_ms: at_ms, body }));
  const shown = async (payload: JsonObject) => {
    const { logs, total } = await list(payload);
    const names = (logs as JsonObject[]).map(({ body, engine = "", engine_life = "" }) =>
      `${body}${engine}${engine_life}`
    );
    return `${names.join(" ")} of ${total}`;
  };

  assert.equal(await shown({}), "b2b1 a2 a1 b1b1 of 9");
  assert.equal(await shown({ sort_order: "asc", limit: 3 }), "b1b1 a1 a2 of 9");
  assert.deepEqual(asked, [{}, { sort_order: "asc", limit: 3 }]);
  for (const own of [{ local: true }, { before_seq: 99 }, { after_seq: 0 }, { offset: 1 }]) {
    assert.doesNotMatch(await shown(own), /b/);
  }
  assert.equal(asked.length, 2);
});

Deno.test("a list of several engines is cut where it becomes too large", async () => {
  const { clock, list } = setup(() => {
    const log = { body: "x".repeat(3 * 1024 * 1024), timestamp_unix_nano: clock.wall() * 1e6 };
    return Promise.resolve([{
      engine: "b",
      life: "1",
      result: { logs: [log, log, log], total: 3 },
    }]);
  });

  const { logs, total, is_cut } = await list({});

  assert.deepEqual([(logs as Json[]).length, total, is_cut], [2, 3, true]);
});

Deno.test("a list is cut where that of another engine is", async () => {
  const result = { logs: [{ body: "b", timestamp_unix_nano: 1 }], total: 7, is_cut: true };
  const { list } = setup(() => Promise.resolve([{ engine: "b", life: "1", result }]));

  const { total, is_cut } = await list({});

  assert.deepEqual([total, is_cut], [7, true]);
});
