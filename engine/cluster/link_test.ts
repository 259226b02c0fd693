import assert from "node:assert/strict";
import { FakeCluster } from "../../tests/cluster/fake_engine.ts";
import { withPrefix } from "./link.ts";

function setup() {
  const cluster = new FakeCluster();
  const [a, b] = [cluster.start(), cluster.start()];
  const [atA, atB] = [a.worker("shop"), b.worker("shop")];
  cluster.clock.tick(10);
  for (const { connection } of [atA, atB]) connection.take();
  return { cluster, clock: cluster.clock, a, b, atA, atB };
}

const TYPE = { type: "registertriggertype", id: "file", description: "Files" };
const TRIGGER = { type: "registertrigger", id: "t1", trigger_type: "file", function_id: "f" };

Deno.test("a trigger goes to the provider at another engine, and the refusal comes back", () => {
  const { cluster, clock, a, b, atA, atB } = setup();
  atB.say(TYPE);
  clock.tick(5);
  atA.say(TRIGGER);
  clock.tick(5);

  const [given] = atB.connection.take() as { id: string; type: string }[];
  assert.deepEqual([given!.type, given!.id], ["registertrigger", `${a.life}:t1`]);
  const error = { code: "trigger_registration_failed", message: "no such folder" };
  atB.say({ ...TRIGGER, type: "triggerregistrationresult", id: given!.id, error });
  clock.tick(5);

  const [answer] = atA.connection.take() as { id: string; error: { message: string } }[];
  assert.deepEqual([answer!.id, answer!.error.message], ["t1", "no such folder"]);
  assert.equal(a.router.directory.trigger("t1")!.state, "refused");
  assert.equal(b.router.directory.triggers().length, 1);
  cluster.stop();
});

Deno.test("equal ids of workers of two engines do not meet", () => {
  const { cluster, clock, a, b, atA, atB } = setup();
  const route = { ...TRIGGER, trigger_type: "http" };
  atA.say({ ...route, config: { n: 1 } });
  atB.say({ ...route, config: { n: 2 } });
  clock.tick(5);

  for (const engine of [a, b]) {
    const configs = engine.router.directory.triggers().map(({ config }) => config);
    assert.deepEqual(new Set(configs.map((config) => JSON.stringify(config))).size, 2);
  }
  atA.say({ type: "unregistertrigger", id: "t1" });
  clock.tick(5);
  assert.deepEqual(b.router.directory.triggers().map(({ id }) => id), ["t1"]);
  cluster.stop();
});

Deno.test("when the engine of a provider is gone, its triggers wait, and return once", () => {
  const { cluster, clock, a, b, atA, atB } = setup();
  atB.say(TYPE);
  clock.tick(5);
  atA.say(TRIGGER);
  clock.tick(5);

  b.kill();
  clock.tick(500);
  assert.equal(a.router.directory.trigger("t1")!.state, "parked");
  const c = cluster.start();
  const again = c.worker("shop");
  again.say(TYPE);
  clock.tick(500);

  const given = again.connection.take().filter(({ type }) => type === "registertrigger");
  assert.deepEqual(given.map((message) => (message as { id: string }).id), [`${a.life}:t1`]);
  assert.ok(atB.connection);
  cluster.stop();
});

Deno.test("what a link shows: bytes, calls and the time there and back", () => {
  const { cluster, clock, a, b, atA, atB } = setup();
  atB.say({ type: "registerfunction", id: "f" });
  clock.tick(5);
  for (let i = 0; i < 3; i++) {
    const call = { type: "invokefunction", invocation_id: `${i}`, function_id: "f", data: i };
    atA.say(call);
  }
  clock.tick(1_000);

  const [link, other] = [a.links.all[0]!, b.links.all[0]!];
  assert.deepEqual([link.calls, other.calls], [{ out: 3, in: 0 }, { out: 0, in: 3 }]);
  assert.equal(link.rtt, 2);
  assert.ok(link.sentBytes > 100 && other.receivedBytes >= link.sentBytes - 1);
  assert.equal(link.queuedBytes, 0);
  cluster.stop();
});

Deno.test("a prefix goes before the id, and nothing else changes", () => {
  const text = '{"type":"registertrigger","id":"t","trigger_type":"x","config":{"id":"t"}}';

  assert.equal(withPrefix(text, "a:"), text.replace('"id":"t",', '"id":"a:t",'));
});

Deno.test("all engines agree on the order of equal triggers, whenever they learn of them", () => {
  const { cluster, clock, a, b, atA, atB } = setup();
  const route = { ...TRIGGER, trigger_type: "http" };
  atB.say({ ...route, id: "first" });
  clock.tick(50);
  atA.say({ ...route, id: "second" });
  clock.tick(50);
  const c = cluster.start();
  clock.tick(500);

  const orders = [a, b, c].map((engine) =>
    engine.router.directory.triggers().map(({ id }) => engine.links.orderOf(id))
      .sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1))
  );

  assert.deepEqual(orders[0]!.map(({ id }) => id), [`${b.life}:first`, `${a.life}:second`]);
  assert.ok(orders[0]![0]!.at < orders[0]![1]!.at);
  assert.deepEqual(orders[1], orders[0]);
  assert.deepEqual(orders[2], orders[0]);
  cluster.stop();
});
