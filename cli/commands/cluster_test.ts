import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

Deno.test("cluster status shows engines, the keeper and the log, and asks for all logs", async () => {
  const answer = { cluster: "shop", connected: true, keeper: null, log: null, engines: [] };
  const terminal = new FakeTerminal({ functions: { "engine::cluster::engines": () => answer } });

  assert.equal(await terminal.run("cluster", "status"), 0);

  assert.equal(terminal.outLines[0], "Cluster shop: 0 engines, connected to NATS");
  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [{ logs: true }]);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("cluster status --json prints what the engine answers", async () => {
  const answer = { cluster: null, connected: false, keeper: null, log: null, engines: [] };
  const terminal = new FakeTerminal({ functions: { "engine::cluster::engines": () => answer } });

  assert.equal(await terminal.run("cluster", "status", "--json"), 0);
  assert.deepEqual(JSON.parse(terminal.outText), answer);
});

Deno.test("cluster status of an engine that is alone, or older, is one line", async () => {
  const terminal = new FakeTerminal({});

  assert.equal(await terminal.run("cluster", "status"), 0);
  assert.deepEqual(terminal.outLines, ["This engine is alone; see docs/how-to/cluster.md"]);
});
