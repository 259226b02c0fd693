import assert from "node:assert/strict";
import { FakeClock } from "../tests/fakes/fake_clock.ts";
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import type { Json } from "../sdk/typescript/wire/protocol.ts";
import type { BuiltinWorker } from "../workers/kit/define.ts";
import { BUILTIN_MS_MAX, Builtins, type BuiltinsOptions } from "./builtins.ts";
import type { BuiltinEntry } from "./ports/config.ts";
import type { Store } from "./ports/store.ts";
import { MemoryStore } from "./store/memory_store.ts";

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

/** With `kept`, in a cluster: `b` runs where the state is kept. */
function setup(kept?: Store, more: Partial<BuiltinWorker> = {}) {
  const clock = new FakeClock();
  const life: string[] = [];
  const fail = { next: false };
  const draining = new AbortController();
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const directory = { builtinFunctions: () => [] } as unknown as BuiltinsOptions["directory"];
  const builtins = new Builtins({
    known: [
      recording("a", life),
      { ...recording("b", life, fail), ...kept && { kept: "b::get" }, ...more },
    ],
    ...kept && { kept },
    clock,
    log,
    directory,
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    host: { clock, draining: draining.signal } as unknown as BuiltinsOptions["host"],
  });
  return { builtins, life, fail, clock, draining };
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

Deno.test("Builtins.keep() runs what belongs to the state while this engine keeps it", async () => {
  const { builtins, life, fail } = setup(new MemoryStore());
  const stateOf = (name: string) => builtins.status(name)?.state;
  await builtins.apply([entry("a"), entry("b")]);
  assert.deepEqual([life, builtins.kept], [["+a {}"], ["b"]]);
  assert.deepEqual([stateOf("a"), stateOf("b")], ["ready", "queued"]);
  assert.match(builtins.status("b")!.reason!, /runs at the engine that keeps the state/);

  await builtins.keep(true);
  assert.deepEqual([life.at(-1), stateOf("b")], ["+b {}", "ready"]);
  await builtins.keep(false);
  assert.deepEqual([life.at(-1), stateOf("b")], ["-b", "queued"]);

  // The state was lost while the worker started: it starts with the state, not by hand.
  fail.next = true;
  await builtins.keep(true);
  assert.equal(stateOf("b"), "failed");
  await builtins.keep(false);
  fail.next = false;
  await builtins.keep(true);
  assert.equal(stateOf("b"), "ready");

  await builtins.stop("b");
  await builtins.keep(false);
  await builtins.keep(true);
  assert.equal(stateOf("b"), "stopped");
  await builtins.close();
});

Deno.test("Builtins.keep() lets a worker serve clients where another engine keeps the state", async () => {
  const life: string[] = [];
  const front = recording("b's front", life);
  const startElsewhere: BuiltinWorker["startElsewhere"] = front.start.bind(front);
  const { builtins, draining } = setup(new MemoryStore(), { startElsewhere });
  const shown = () => {
    const { state, reason } = builtins.status("b")!;
    return `${state} ${/serves clients here/.test(reason!) ? "front" : "whole"}`;
  };

  await builtins.apply([entry("b")]);
  assert.deepEqual([life, shown()], [["+b's front {}"], "ready front"]);
  await builtins.keep(true);
  assert.deepEqual([life.at(-1), shown()], ["-b's front", "ready whole"]);
  await builtins.keep(false);
  assert.deepEqual([life.at(-1), shown()], ["+b's front {}", "ready front"]);

  await builtins.stop("b");
  await builtins.keep(true);
  await builtins.keep(false);
  assert.equal(builtins.status("b")!.state, "stopped");
  await builtins.start("b");
  await builtins.keep(true);
  draining.abort();
  await builtins.keep(false);
  assert.equal(builtins.status("b")!.state, "queued");
  await builtins.close();
  assert.deepEqual(life.filter((line) => line.startsWith("+")).length, 3);
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

/** A built-in that cannot start while its `port` is in the list. */
function picky(taken: Set<unknown>, life: string[]): BuiltinWorker {
  return {
    name: "picky",
    summary: "Summary of picky",
    parse: (raw) => raw,
    start(_worker, config, host) {
      const { port } = config as { port: number };
      if (taken.has(port)) throw new EngineError("address_in_use", `Port ${port} is taken`);
      taken.add(port); // By itself.
      host.serves({ name: "picky", url: `http://${port}` });
      const stack = new AsyncDisposableStack();
      stack.defer(() => void taken.delete(port));
      life.push(`${port}`);
      return Promise.resolve(stack);
    },
  };
}

function setupPicky() {
  const clock = new FakeClock();
  const taken = new Set<unknown>();
  const life: string[] = [];
  const quiet = () => {};
  const errors: string[] = [];
  const builtins = new Builtins({
    known: [picky(taken, life)],
    clock,
    log: { debug: quiet, info: quiet, warn: quiet, error: (text) => void errors.push(text) },
    directory: { builtinFunctions: () => [] } as unknown as BuiltinsOptions["directory"],
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    host: { clock } as unknown as BuiltinsOptions["host"],
  });
  const apply = (config: Json) => builtins.apply([entry("picky", config)]);
  return { builtins, taken, life, errors, apply };
}

Deno.test("a running built-in that cannot change runs as before, and says why", async () => {
  const { builtins, taken, life, errors, apply } = setupPicky();
  taken.add(2);
  await apply({ port: 1 });

  const refused = await apply({ port: 2 });

  assert.equal(refused.get("picky")?.code, "address_in_use");
  const { state, reason, last_error } = builtins.status("picky")!;
  assert.deepEqual([state, reason, last_error], [
    "ready",
    "Port 2 is taken; picky keeps running as before",
    "Port 2 is taken",
  ]);
  assert.deepEqual(builtins.endpoints, [{ name: "picky", url: "http://1" }]);
  assert.deepEqual(builtins.runningConfig("picky"), { port: 1 });
  assert.deepEqual(errors, ["the new configuration of a built-in worker failed"]);

  await apply({ port: 2 }); // Nothing new: it is not interrupted for another attempt.
  assert.deepEqual(life, ["1", "1"]);
  await builtins.close();
});

Deno.test("a built-in that runs as before takes the change with the next restart", async () => {
  const { builtins, taken, apply } = setupPicky();
  taken.add(2);
  await apply({ port: 1 });
  await apply({ port: 2 });

  taken.delete(2);
  await builtins.restart("picky");

  assert.deepEqual(builtins.endpoints, [{ name: "picky", url: "http://2" }]);
  assert.equal(builtins.runningConfig("picky"), undefined);
  assert.equal(builtins.status("picky")?.reason, "Summary of picky");
  await builtins.close();
});

Deno.test("an entry that is taken back leaves the built-in alone that runs so", async () => {
  const { builtins, taken, life, apply } = setupPicky();
  taken.add(2);
  await apply({ port: 1 });
  await apply({ port: 2 });

  await apply({ port: 1 });

  assert.deepEqual(life, ["1", "1"]);
  assert.equal(builtins.status("picky")?.reason, "Summary of picky");
  await builtins.close();
});

Deno.test("a built-in keeps its port when other keys change", async () => {
  const { builtins, life, apply } = setupPicky();
  await apply({ port: 1, host: "a" });

  const refused = await apply({ port: 1, host: "b" });

  assert.equal(refused.size, 0);
  assert.deepEqual(life, ["1", "1"]);
  await builtins.close();
});

Deno.test("a built-in that starts neither changed nor as before is failed, with both", async () => {
  const { builtins, taken, apply } = setupPicky();
  taken.add(2);
  await apply({ port: 1 });
  taken.delete = () => taken.add(1).has(1); // Another program is faster.

  await apply({ port: 2 });

  const { state, reason } = builtins.status("picky")!;
  assert.deepEqual([state, reason], [
    "failed",
    "Port 2 is taken; nor did picky start again as before: Port 1 is taken",
  ]);
  await builtins.close();
});

Deno.test("a built-in that never starts does not hold up the others", async () => {
  const { clock, life } = setup();
  const quiet = () => {};
  const stuck: BuiltinWorker = {
    name: "stuck",
    summary: "",
    parse: (raw) => raw,
    start: () => new Promise(() => {}),
  };
  const builtins = new Builtins({
    known: [stuck, recording("a", life)],
    clock,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    directory: { builtinFunctions: () => [] } as unknown as BuiltinsOptions["directory"],
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    host: { clock } as unknown as BuiltinsOptions["host"],
  });

  const applied = builtins.apply([entry("stuck"), entry("a")]);
  for (let i = 0; i < 10; i++) await Promise.resolve();
  clock.tick(BUILTIN_MS_MAX);
  await applied;

  assert.deepEqual([builtins.status("stuck")?.state, builtins.status("stuck")?.reason], [
    "failed",
    "stuck did not start within 30 s",
  ]);
  assert.deepEqual(life, ["+a {}"]);
  await builtins.close();
});
