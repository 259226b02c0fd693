/**
 * How the cost of finding a replica grows with the number of functions.
 *
 * Expected: flat, since it is one look-up by id; linear in the replicas of the function itself.
 *
 * @module
 */
import { FunctionTable } from "../../engine/core/function_table.ts";
import { Peer } from "../../engine/core/peer.ts";
import { FakeConnection } from "../fakes/fake_connection.ts";
import { DEFAULT_SETTINGS } from "../fakes/fake_router.ts";

function peer(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

const CALLER = peer("caller");

/** A table of so many functions, each with so many replicas. */
function tableOf(functions: number, replicas: number): FunctionTable {
  const table = new FunctionTable();
  for (let worker = 0; worker < replicas; worker++) {
    const offering = peer(`worker-${worker}`);
    for (let i = 0; i < functions; i++) {
      table.add(offering, { type: "registerfunction", id: `group::f${i}` });
    }
  }
  return table;
}

for (const functions of [10, 1_000, 100_000]) {
  const table = tableOf(functions, 1);
  const middle = `group::f${functions / 2}`;

  Deno.bench({
    group: "pick among functions",
    name: `${functions} functions`,
    baseline: functions === 10,
    fn: () => void table.pick(table.find(middle)!, 100, DEFAULT_SETTINGS, CALLER),
  });
}

for (const replicas of [1, 3, 30]) {
  const table = tableOf(1, replicas);

  Deno.bench({
    group: "pick among replicas",
    name: `${replicas} replicas`,
    baseline: replicas === 1,
    fn: () => void table.pick(table.find("group::f0")!, 100, DEFAULT_SETTINGS, CALLER),
  });
}
