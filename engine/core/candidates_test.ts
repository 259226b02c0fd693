/**
 * Which replicas could have run a call.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { DEFAULT_SETTINGS } from "../../tests/fakes/fake_router.ts";
import { TRACE_CANDIDATES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { candidatesOf } from "./candidates.ts";
import { FunctionTable, type Offer } from "./function_table.ts";
import { Peer } from "./peer.ts";

function peer(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function offered(...peers: Peer[]): Offer {
  const functions = new FunctionTable();
  for (const each of peers) functions.add(each, { type: "registerfunction", id: "shop::f" });
  return functions.find("shop::f")!;
}

Deno.test("candidatesOf() says of each replica why it was passed over, the chosen one first", () => {
  const [idle, chosen, full, heavy, draining] = ["a", "b", "c", "d", "e"].map(peer) as [
    Peer,
    Peer,
    Peer,
    Peer,
    Peer,
  ];
  const offer = offered(idle, chosen, full, heavy, draining);
  chosen.inflightCalls = 4; // The one that it was chosen for is among them.
  full.inflightCalls = 5;
  heavy.inflightBytes = 90;
  heavy.inflightCalls = 1;
  draining.isDraining = true;
  const bounds = { max_inflight_calls_per_worker: 5, max_inflight_bytes_per_worker: 100 };

  assert.deepEqual(candidatesOf(offer, chosen, 20, { ...DEFAULT_SETTINGS, ...bounds }), [
    { worker_id: "b", name: "shop", in_flight: 3, passed_over: null },
    { worker_id: "a", name: "shop", in_flight: 0, passed_over: null },
    { worker_id: "c", name: "shop", in_flight: 5, passed_over: "at its bound of calls" },
    { worker_id: "d", name: "shop", in_flight: 1, passed_over: "at its bound of bytes" },
    { worker_id: "e", name: "shop", in_flight: 0, passed_over: "draining" },
  ]);
});

Deno.test("candidatesOf() lists so many and no more, the chosen one always", () => {
  const peers = Array.from({ length: 2 * TRACE_CANDIDATES_MAX }, (_, i) => peer(`w${i}`));
  const chosen = peers.at(-1)!;
  const candidates = candidatesOf(offered(...peers), chosen, 1, DEFAULT_SETTINGS);

  assert.equal(candidates.length, TRACE_CANDIDATES_MAX);
  assert.equal(candidates[0]!.worker_id, chosen.id);
});
