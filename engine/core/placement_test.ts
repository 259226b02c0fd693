/**
 * The replica for a call, or the error with which it ends.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { InvokeFunction, Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { DEFAULT_SETTINGS, fakeSchemas } from "../../tests/fakes/fake_router.ts";
import type { EngineEvent } from "../ports/events.ts";
import { ErrorReplies } from "./error_replies.ts";
import { type FunctionEntry, FunctionTable } from "./function_table.ts";
import { Peer } from "./peer.ts";
import { candidatesOf, COMPILING, Placement, TRACE_CANDIDATES_MAX } from "./placement.ts";
import { noopObserver } from "./router.ts";
import { bytesOf } from "./wire/bytes.ts";
import { Envelope } from "./wire/envelope.ts";
import { CALL_PREFIX } from "./wire/frame_parts.ts";

const FORMAT = { type: "object", required: ["a"] };

function peer(id: string, builtin: string | null = null): Peer {
  const info = { address: null, launch_id: null, builtin };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function callOf(function_id: string): Envelope {
  const memory = bytesOf(`${CALL_PREFIX}i","function_id":"${function_id}"}`);
  const envelope = new Envelope();
  assert.ok(envelope.read(memory, 0, memory.length, true));
  return envelope;
}

function setup() {
  const functions = new FunctionTable();
  const events: EngineEvent[] = [];
  const report = (event: EngineEvent): void => void events.push(event);
  const errorReplies = new ErrorReplies(new FakeClock(), functions, report, noopObserver);
  const placement = new Placement(functions, fakeSchemas, errorReplies, DEFAULT_SETTINGS);
  const entry = (worker: Peer, id: string, request_format?: Json): void => {
    const format = request_format === undefined ? {} : { request_format };
    functions.add(worker, { type: "registerfunction", id, ...format });
  };
  const caller = peer("caller");
  /** The worker that executes a call, or its error. */
  const choose = (function_id: string, data: Json = 1, from = caller): string | undefined => {
    const call: InvokeFunction = { type: "invokefunction", function_id, data };
    const chosen = placement.choose(from, call, 10);
    if (!chosen || chosen === COMPILING) return chosen;
    return "code" in chosen ? chosen.code : chosen.peer.id;
  };
  return { functions, events, placement, entry, caller, choose };
}

Deno.test("Placement.choose() finds the replica of a function, and none for an unknown function", () => {
  const { entry, choose } = setup();
  entry(peer("a"), "f");

  assert.deepEqual([choose("f"), choose("g")], ["a", undefined]);
});

Deno.test("Placement.choose() finds no replica when all workers of a function are draining", () => {
  const { functions, entry, choose } = setup();
  const [a, b] = [peer("a"), peer("b")];
  for (const worker of [a, b]) entry(worker, "f");

  functions.drain(a);
  assert.deepEqual([choose("f"), choose("f")], ["b", "b"]);
  functions.drain(b);
  assert.equal(choose("f"), undefined);
});

Deno.test("Placement.choose() returns overloaded only when all ready replicas are at their limit", () => {
  const { functions, placement, entry, choose } = setup();
  const [full, drains] = [peer("full"), peer("drains")];
  for (const worker of [full, drains]) entry(worker, "f");
  full.inflightCalls = 1;
  functions.drain(drains);

  placement.applySettings({ ...DEFAULT_SETTINGS, max_inflight_calls_per_worker: 1 });
  assert.equal(choose("f"), "overloaded");
  placement.applySettings(DEFAULT_SETTINGS);
  assert.equal(choose("f"), "full");
});

Deno.test("Placement.choose() gives a draining caller that executes a call its own replica, up to its limit", () => {
  const { functions, placement, entry, caller, choose } = setup();
  const drains = peer("drains");
  entry(drains, "f");
  functions.drain(drains);

  assert.deepEqual([choose("f", 1, drains), choose("f", 1, caller)], [undefined, undefined]);
  drains.inflightCalls = 1;
  assert.deepEqual([choose("f", 1, drains), choose("f", 1, caller)], ["drains", undefined]);
  placement.applySettings({ ...DEFAULT_SETTINGS, max_inflight_calls_per_worker: 1 });
  assert.equal(choose("f", 1, drains), undefined);
});

Deno.test("Placement.choose() prefers other replicas over a draining caller's own", () => {
  const { functions, placement, entry, choose } = setup();
  const [drains, other] = [peer("drains"), peer("other")];
  for (const worker of [drains, other]) entry(worker, "f");
  functions.drain(drains);
  drains.inflightCalls = 1;

  assert.equal(choose("f", 1, drains), "other");
  other.inflightCalls = 2;
  placement.applySettings({ ...DEFAULT_SETTINGS, max_inflight_calls_per_worker: 2 });
  assert.equal(choose("f", 1, drains), "overloaded");
});

Deno.test("Placement.choose() checks payloads, except those of built-in workers", () => {
  const { placement, entry, choose } = setup();
  entry(peer("a"), "f", FORMAT);

  assert.deepEqual([choose("f", {}), choose("f", { a: 1 })], ["invalid_payload", "a"]);
  assert.equal(choose("f", {}, peer("own", "engine-http")), "a");
  placement.applySettings({ ...DEFAULT_SETTINGS, validate_payloads: false });
  assert.equal(choose("f", {}), "a");
});

Deno.test("Placement.find() leaves functions with a request_format to choose()", () => {
  const { placement, entry, caller } = setup();
  entry(peer("a"), "f");
  entry(peer("b"), "g", FORMAT);

  assert.equal(placement.find(caller, callOf("f"))?.peer.id, "a");
  assert.equal(placement.find(caller, callOf("g")), undefined);
  assert.equal(placement.find(caller, callOf("h")), undefined);
  assert.equal(placement.find(peer("own", "engine-http"), callOf("g"))?.peer.id, "b");
});

Deno.test("an unusable schema is reported once and not enforced", () => {
  const { events, entry, choose } = setup();
  entry(peer("a"), "f", { type: "odd" });

  assert.deepEqual([choose("f"), choose("f")], ["a", "a"]);
  assert.deepEqual(events.map((event) => event.type === "warning" && event.text), [
    "request_format is not enforced",
  ]);
});

function peerOfCandidates(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function offered(...peers: Peer[]): FunctionEntry {
  const functions = new FunctionTable();
  for (const each of peers) functions.add(each, { type: "registerfunction", id: "shop::f" });
  return functions.find("shop::f")!;
}

Deno.test("candidatesOf() gives the reason why each replica was skipped, the chosen one first", () => {
  const [idle, chosen, full, heavy, draining] = ["a", "b", "c", "d", "e"].map(peerOfCandidates) as [
    Peer,
    Peer,
    Peer,
    Peer,
    Peer,
  ];
  const entry = offered(idle, chosen, full, heavy, draining);
  chosen.inflightCalls = 4; // The call itself counts as in flight.
  full.inflightCalls = 5;
  heavy.inflightBytes = 90;
  heavy.inflightCalls = 1;
  draining.isDraining = true;
  const bounds = { max_inflight_calls_per_worker: 5, max_inflight_bytes_per_worker: 100 };

  assert.deepEqual(candidatesOf(entry, chosen, 20, { ...DEFAULT_SETTINGS, ...bounds }), [
    { worker_id: "b", name: "shop", in_flight: 3, passed_over: null },
    { worker_id: "a", name: "shop", in_flight: 0, passed_over: null },
    { worker_id: "c", name: "shop", in_flight: 5, passed_over: "at its bound of calls" },
    { worker_id: "d", name: "shop", in_flight: 1, passed_over: "at its bound of bytes" },
    { worker_id: "e", name: "shop", in_flight: 0, passed_over: "draining" },
  ]);
});

Deno.test("candidatesOf() lists a limited number, always with the chosen one", () => {
  const peers = Array.from(
    { length: 2 * TRACE_CANDIDATES_MAX },
    (_, i) => peerOfCandidates(`w${i}`),
  );
  const chosen = peers.at(-1)!;
  const candidates = candidatesOf(offered(...peers), chosen, 1, DEFAULT_SETTINGS);

  assert.equal(candidates.length, TRACE_CANDIDATES_MAX);
  assert.equal(candidates[0]!.worker_id, chosen.id);
});
