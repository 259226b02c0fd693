import assert from "node:assert/strict";
import { FakeClock } from "../tests/fakes/fake_clock.ts";
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import type { Json } from "../sdk/typescript/wire/protocol.ts";
import type { BuiltinWorker } from "../workers/kit/define.ts";
import { Builtins, type BuiltinsOptions } from "./builtins.ts";
import type { BuiltinEntry } from "./ports/config.ts";

/** A built-in that writes down what is done with it. */
function recording(name: string, life: string[], fail = { next: false }): BuiltinWorker {
  return {
    name,
    summary: `Summary of ${name}`,
    parse: (raw) => raw,
    start(_worker, config, host) {
      if (fail.next) throw new EngineError("address_in_use", "Port 1 is taken");
      life.push(`+${name} ${JSON.stringify(config)}`);
      host.serves({ name, url: `http://${name}` });
      if (host.clock instanceof FakeClock) host.clock.tick(1.6);
      const stack = new AsyncDisposableStack();
      stack.defer(() => void life.push(`-${name}`));
      return Promise.resolve(stack);
    },
  };
}

function setup() {
  const clock = new FakeClock();
  const life: string[] = [];
  const fail = { next: false };
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const directory = { functions: () => [] } as unknown as BuiltinsOptions["directory"];
  const builtins = new Builtins({
    known: [recording("a", life), recording("b", life, fail)],
    clock,
    log,
    directory,
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    host: { clock } as unknown as BuiltinsOptions["host"],
  });
  return { builtins, life, fail, clock };
}

function entry(name: string, config: Json = {}): BuiltinEntry {
  return { kind: "builtin", name, config, raw: config };
}

Deno.test("Builtins.apply() starts new workers in the order of the list", async () => {
  const { builtins, life } = setup();

  await builtins.apply([entry("a"), entry("b", { port: 1 })]);

  assert.deepEqual(life, ["+a {}", '+b {"port":1}']);
  assert.deepEqual(builtins.list().map(({ name, state }) => [name, state]), [
    ["a", "ready"],
    ["b", "ready"],
  ]);
  await builtins.close();
});

Deno.test("Builtins.apply() keeps workers running whose entry did not change", async () => {
  const { builtins, life } = setup();
  await builtins.apply([entry("a"), entry("b", { port: 1 })]);
  life.length = 0;

  await builtins.apply([entry("a"), entry("b", { port: 2 })]);

  assert.deepEqual(life, ["-b", '+b {"port":2}']);
  await builtins.close();
});

Deno.test("Builtins.apply() stops workers that are not listed, and removes their addresses", async () => {
  const { builtins, life } = setup();
  await builtins.apply([entry("a"), entry("b")]);
  life.length = 0;

  await builtins.apply([entry("a")]);

  assert.deepEqual(life, ["-b"]);
  assert.deepEqual(builtins.endpoints, [{ name: "a", url: "http://a" }]);
  assert.equal(builtins.status("b"), undefined);
  await builtins.close();
});

Deno.test("a built-in that cannot start is failed with its reason, and the others run", async () => {
  const { builtins, fail } = setup();
  fail.next = true;

  await builtins.apply([entry("b"), entry("a")]);

  assert.equal(builtins.status("a")?.state, "ready");
  const { state, reason } = builtins.status("b")!;
  assert.deepEqual([state, reason], ["failed", "Port 1 is taken"]);
  await builtins.close();
});

Deno.test("Builtins.start() tries a failed built-in again", async () => {
  const { builtins, fail } = setup();
  fail.next = true;
  await builtins.apply([entry("b")]);
  fail.next = false;

  const started = builtins.start("b");
  await Promise.resolve();
  assert.deepEqual([builtins.status("b")?.state, builtins.status("b")?.reason], ["starting", null]);
  await started;

  assert.equal(builtins.status("b")?.state, "ready");
  assert.equal(builtins.status("b")?.launch, 2);
  await builtins.close();
});

Deno.test("a built-in reports whole milliseconds to readiness, and none when not ready", async () => {
  const { builtins } = setup();

  await builtins.apply([entry("a")]);
  assert.equal(builtins.status("a")?.ready_after_ms, 2);
  await builtins.close();

  assert.equal(builtins.status("a")?.ready_after_ms, null);
});

Deno.test("Builtins.close() stops the last first", async () => {
  const { builtins, life } = setup();
  await builtins.apply([entry("a"), entry("b")]);
  life.length = 0;

  await builtins.close();

  assert.deepEqual(life, ["-b", "-a"]);
});

Deno.test("Builtins.close() is final: a start during or after it has no effect", async () => {
  const { builtins, life } = setup();
  await builtins.apply([entry("a")]);
  life.length = 0;

  const applied = builtins.apply([entry("a"), entry("b")]);
  await builtins.close();
  await applied;
  await builtins.start("a");

  assert.deepEqual(life, ["-a"]);
  assert.deepEqual(builtins.list().map(({ name, state }) => [name, state]), [
    ["a", "stopped"],
    ["b", "stopped"],
  ]);
});

Deno.test("a built-in dates its state and remembers why it last failed", async () => {
  const { builtins, fail, clock } = setup();
  fail.next = true;
  await builtins.apply([entry("b")]);
  const failedAt = clock.wall();
  clock.tick(1_000);
  assert.equal(builtins.status("b")?.since_ms, failedAt);
  fail.next = false;

  await builtins.start("b");
  const status = builtins.status("b")!;

  assert.deepEqual([status.state, status.last_error], ["ready", "Port 1 is taken"]);
  assert.equal(status.since_ms, clock.wall());
  assert.deepEqual([status.replicas, status.memory_bytes, status.network], [[], null, null]);
  await builtins.close();
});
