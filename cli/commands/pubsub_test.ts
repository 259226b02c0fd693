import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

function setup(input = "") {
  const published: Json[] = [];
  const terminal = new FakeTerminal({
    input,
    functions: { publish: (payload: JsonObject) => void published.push(payload) },
  });
  return { terminal, published };
}

Deno.test("engine publish sends JSON, text, nothing or standard input", async () => {
  const { terminal, published } = setup('{"from": "input"}\n');

  for (const data of [['{"id": 7}'], ["hello"], ["12"], [], ["-"]]) {
    assert.equal(await terminal.run("publish", "orders.new", ...data), 0);
  }

  const topic = "orders.new";
  assert.deepEqual(published, [
    { topic, data: { id: 7 } },
    { topic, data: "hello" },
    { topic, data: 12 },
    { topic },
    { topic, data: { from: "input" } },
  ]);
  assert.deepEqual(terminal.outLines, []);
});

Deno.test("engine publish says what is wrong", async () => {
  const { terminal } = setup();
  assert.equal(await terminal.run("publish"), 2);
  assert.equal(await terminal.run("publish", "t", "12345678901234567890"), 2);
  assert.match(terminal.errText, /would lose digits/);

  const without = new FakeTerminal();
  assert.equal(await without.run("publish", "t", "1"), 1);
  assert.match(without.errText, /publish not found/);
});

Deno.test("engine subscribe prints a line per message, until Ctrl-C", async () => {
  const { terminal } = setup();

  const running = terminal.run("subscribe", "orders.>");
  const { topic, hear } = await terminal.subscribed.promise;
  hear({ id: 7, text: "two\nlines" });
  hear(null);
  terminal.interrupt();

  assert.equal(await running, 0);
  assert.equal(topic, "orders.>");
  assert.deepEqual(terminal.outLines, ['{"id":7,"text":"two\\nlines"}', "null"]);
  assert.deepEqual(terminal.errLines, ["Subscribed to orders.>"]);
  assert.deepEqual([terminal.openConnections, terminal.interruptListeners], [0, 0]);
});

Deno.test("engine subscribe ends after --count messages", async () => {
  const { terminal } = setup();

  const running = terminal.run("subscribe", "t", "--count", "2");
  const { hear } = await terminal.subscribed.promise;
  for (const n of [1, 2, 3]) hear(n);

  assert.equal(await running, 0);
  assert.deepEqual(terminal.outLines, ["1", "2"]);
  assert.equal(await terminal.run("subscribe", "t", "--count", "0"), 2);
});

Deno.test("engine subscribe fails when the connection is lost", async () => {
  const { terminal } = setup();

  const running = terminal.run("subscribe", "t");
  const { lose } = await terminal.subscribed.promise;
  lose(new Error("the engine is gone"));

  assert.equal(await running, 1);
  assert.match(terminal.errText, /the engine is gone/);
});
