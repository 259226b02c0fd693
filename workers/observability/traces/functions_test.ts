/**
 * `engine::traces::*` and `engine::baggage::*` as called; queries are tested beside their files.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { RecordingWorker } from "../../../tests/fakes/recording_worker.ts";
import { callSpan, idOf, NOON, recorded } from "../../../tests/fakes/spans.ts";
import { LogRing } from "../logs/store.ts";
import { SearchTurns } from "../turns.ts";
import { readBaggage, registerBaggageFunctions, registerTraceFunctions } from "./functions.ts";
import { TraceIndex } from "./index.ts";

function setup() {
  const it = recorded();
  const offers = new RecordingWorker();
  const { clock, traces, store } = it;
  const index = new TraceIndex(store, clock);
  const isOperator = (caller: string | undefined): boolean => caller === "boss";
  const logs = new LogRing(1_000);
  const directory = { worker: () => undefined };
  const turns = new SearchTurns(clock);
  const parts = { clock, traces, store, index, logs, turns, isOperator, directory };
  registerTraceFunctions(offers, parts);
  const call = async (name: string, payload: Json = null, caller = "caller") =>
    await offers.call(`engine::${name}`, payload, { caller }) as JsonObject;
  return { ...it, call };
}

for (
  const [name, payload] of [
    ["traces::list", { trace_id: idOf(1, 32) }],
    ["traces::tree", { trace_id: idOf(1, 32) }],
    ["traces::explain", { invocation_id: "i-1" }],
  ] as const
) {
  Deno.test(`engine::${name} shows payloads to operators only`, async () => {
    const { call, traces } = setup();
    traces.add(callSpan());

    assert.match(JSON.stringify(await call(name, payload, "boss")), /engine\.request"/);
    assert.doesNotMatch(JSON.stringify(await call(name, payload)), /engine\.request"/);
  });
}

Deno.test("engine::traces::map caches its answer for a moment", async () => {
  const { call, traces, clock } = setup();
  const calls = async (payload = {}) => {
    const { edges } = await call("traces::map", payload);
    return (edges as unknown[]).length;
  };
  assert.equal(await calls(), 0);
  traces.add(callSpan({ start_ms: NOON, end_ms: NOON }));

  assert.equal(await calls(), 0);
  assert.equal(await calls({ since_ms: 0 }), 2);
  assert.equal(await calls(), 2);
  clock.tick(1_001);
  traces.add(callSpan({ function_id: "other", span_id: idOf(2, 16) }));
  assert.equal(await calls(), 4);
});

Deno.test("engine::traces::clear also clears the index", async () => {
  const { call, traces } = setup();
  traces.add(callSpan());
  assert.equal((await call("traces::summaries")).total, 1);

  await assert.rejects(call("traces::clear"), { code: "FORBIDDEN" });
  assert.deepEqual(await call("traces::clear", null, "boss"), { success: true });

  assert.equal((await call("traces::summaries")).total, 0);
});

Deno.test("engine::sampling::rules returns the sampling configuration", async () => {
  const { call, traces, clock } = setup();
  traces.configure({ ...traces.settings, ratio: 0.5, rules: [{ operation: "a::*", rate: 0 }] });

  assert.deepEqual(await call("sampling::rules"), {
    traces: {
      default_ratio: 0.5,
      rules: [{ operation: "a::*", service: null, rate: 0 }],
      parent_based: true,
    },
    logs: { sampling_ratio: 1 },
    timestamp: clock.wall(),
  });
});

function setupBaggage(baggage: string | undefined) {
  const offers = new RecordingWorker();
  registerBaggageFunctions(offers);
  return (name: string, payload: Json = {}) =>
    offers.call(`engine::baggage::${name}`, payload, { baggage });
}

Deno.test("engine::baggage::get returns the value of the current call, or null", async () => {
  const call = setupBaggage("tenant=acme;ttl=5, user = Ann%20B");

  assert.deepEqual(await call("get", { key: "tenant" }), { value: "acme" });
  assert.deepEqual(await call("get", { key: "user" }), { value: "Ann B" });
  assert.deepEqual(await call("get", { key: "other" }), { value: null });
  assert.deepEqual(await setupBaggage(undefined)("get", { key: "tenant" }), { value: null });
});

Deno.test("engine::baggage::get_all returns all values", async () => {
  assert.deepEqual(await setupBaggage("a=1,b=2")("get_all"), { baggage: { a: "1", b: "2" } });
  assert.deepEqual(await setupBaggage(undefined)("get_all"), { baggage: {} });
});

Deno.test("engine::baggage::set reports that nothing was changed", async () => {
  const answer = await setupBaggage("a=1")("set", { key: "a", value: "2" }) as Record<
    string,
    Json
  >;

  assert.equal(answer.success, false);
  assert.match(String(answer.note), /nothing was changed/);
});

for (const payload of [null, {}, { key: 5 }, { key: "a", value: 5 }, { key: "", value: "x" }]) {
  Deno.test(`engine::baggage::set refuses ${JSON.stringify(payload)}`, async () => {
    await assert.rejects(setupBaggage("a=1")("set", payload), { code: "deserialization_error" });
  });
}

Deno.test("readBaggage() skips invalid members and keeps invalid escapes", () => {
  assert.deepEqual([...readBaggage(",=x,,a,b=%zz,c=1,c=2,__proto__=3")], [
    ["b", "%zz"],
    ["c", "2"],
    ["__proto__", "3"],
  ]);
});

Deno.test("readBaggage() bounds the number of members", () => {
  const header = Array.from({ length: 1_000 }, (_, i) => `k${i}=v`).join(",");

  assert.equal(readBaggage(header).size, 180);
});
