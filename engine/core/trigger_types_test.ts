/**
 * Who provides which type.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { Peer } from "./peer.ts";
import { type Provider, TriggerTypes } from "./trigger_types.ts";

function provider(id: string): Provider {
  const info = { address: null, launch_id: null, builtin: null };
  const identity = { id, reattach_token: "", info, connected_at_ms: 0 };
  const registration = { type: "registertriggertype", id: "cron", description: "" } as const;
  return { peer: new Peer(new FakeConnection(id), identity), registration };
}

Deno.test("the newest provider of a type serves it, and the one before when that leaves", () => {
  const types = new TriggerTypes();
  const type = types.open("cron");
  const [a, b] = [provider("a"), provider("b")];
  types.addProvider(type, a);
  types.addProvider(type, b);

  assert.equal(type.providers.at(-1), b);
  types.removeProvider(type, b.peer);
  assert.equal(type.providers.at(-1), a);
  assert.deepEqual([types.of(a.peer), types.of(b.peer)], [[type], []]);
});

Deno.test("a provider that says it again is one provider, the newest", () => {
  const types = new TriggerTypes();
  const type = types.open("cron");
  const [a, b] = [provider("a"), provider("b")];
  for (const each of [a, b, a]) types.addProvider(type, each);

  assert.deepEqual(type.providers, [b, a]);
});

Deno.test("a type is known while somebody provides it, per namespace", () => {
  const types = new TriggerTypes();
  const type = types.open("cron", "eu");
  const a = provider("a");
  types.addProvider(type, a);

  assert.equal(types.open("cron", "eu"), type);
  assert.equal(types.find("cron"), undefined);
  types.closeIfEmpty(type);
  assert.equal(types.find("cron", "eu"), type);
  types.removeProvider(type, a.peer);
  types.removeProvider(type, a.peer);
  types.closeIfEmpty(type);
  assert.deepEqual([...types.all()], []);
});
