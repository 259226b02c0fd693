import assert from "node:assert/strict";
import { FakeCluster } from "../../tests/cluster/fake_engine.ts";
import { ClusterEngines } from "./cluster_engines.ts";

const LOG = {
  kind: "jetstream",
  copies: 3,
  require_sync: true,
  applied: 7,
  behind: 0,
  seen_ms_ago: 100,
  bytes: 900,
  problem: null,
} as const;

Deno.test("engines are listed with their links, this one first", () => {
  const cluster = new FakeCluster();
  const [a, b] = [cluster.start(), cluster.start()];
  cluster.clock.tick(1_000);
  const self = { life: a.life, name: a.name, version: "1.2.3" };
  const { clock } = cluster;
  const setup = { settings: { name: "shop" }, clock, links: a.links, bus: a.bus, self };
  const engines = new ClusterEngines(setup);
  assert.deepEqual([engines.takeovers, engines.list()[1]!.keeper], [0, false]);
  assert.deepEqual([engines.keeper, engines.log], [null, null]);
  engines.keeping = { keeper: b.life, takeovers: 3, log: LOG, appends: null };

  const [here, other] = engines.list();
  assert.deepEqual(here, { ...self, state: "here", keeper: false, link: null });
  const { link, ...about } = other!;
  const expected = { life: b.life, name: b.name, version: "1.2.3" };
  assert.deepEqual(about, { ...expected, state: "linked", keeper: true });
  assert.deepEqual([link!.rtt_ms, link!.calls_out, link!.queued_bytes], [2, 0, 0]);
  assert.ok(link!.age_ms > 900 && link!.bytes_out >= 0);

  b.links.drain(() => {});
  clock.tick(10);
  assert.equal(engines.list()[1]!.state, "draining");
  b.kill();
  clock.tick(1_000);
  assert.equal(engines.list().length, 1);
  assert.equal(engines.ends().get("gone"), 1);
  assert.equal(engines.ends().get("lost"), 0);
  assert.deepEqual([engines.takeovers, engines.keeper, engines.log], [3, b.life, LOG]);
  assert.deepEqual([engines.cluster, engines.life, engines.isConnected], ["shop", a.life, true]);
  cluster.stop();
});
