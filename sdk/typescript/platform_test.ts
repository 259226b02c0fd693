import assert from "node:assert/strict";
import {
  atEndOfTick,
  attempt,
  builtinModule,
  environment,
  newId,
  platformClock,
  processGlobal,
  wallTime,
} from "./platform.ts";

Deno.test("attempt() returns undefined if the function throws", () => {
  assert.equal(attempt(() => 5), 5);
  assert.equal(attempt(() => JSON.parse("no")), undefined);
});

Deno.test("environment() reads a variable and returns undefined for an empty one", () => {
  Deno.env.set("ENGINE_TEST_VARIABLE", "yes");
  assert.equal(environment("ENGINE_TEST_VARIABLE"), "yes");

  Deno.env.set("ENGINE_TEST_VARIABLE", "");
  assert.equal(environment("ENGINE_TEST_VARIABLE"), undefined);
  Deno.env.delete("ENGINE_TEST_VARIABLE");
  assert.equal(environment("ENGINE_TEST_VARIABLE"), undefined);
});

Deno.test({
  name: "environment() returns undefined for a variable that Deno does not permit",
  permissions: { env: false },
  fn: () => assert.equal(environment("HOME"), undefined),
});

Deno.test("builtinModule() finds modules of Node and returns undefined for other names", () => {
  assert.ok(builtinModule<{ EOL: string }>("node:os")?.EOL);
  assert.equal(builtinModule("no-such-module"), undefined);
});

Deno.test("a platform without a process has no modules and no environment", () => {
  const globals = globalThis as { process?: unknown; Deno?: unknown };
  const { process, Deno } = globals;
  try {
    Object.defineProperty(globals, "Deno", { value: undefined, configurable: true });
    for (const other of [undefined, {}, { versions: {} }]) {
      globals.process = other;

      assert.equal(processGlobal(), undefined);
      assert.equal(builtinModule("node:os"), undefined);
      assert.equal(environment("PATH"), undefined);
    }
  } finally {
    globals.process = process;
    Object.defineProperty(globals, "Deno", { value: Deno, configurable: true });
  }
});

Deno.test("newId() creates UUIDs of version 4, also without crypto.randomUUID()", () => {
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  const { randomUUID } = crypto;
  assert.match(newId(), uuid);

  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  try {
    const ids = [newId(), newId()];

    assert.match(ids[0]!, uuid);
    assert.notEqual(ids[0], ids[1]);
  } finally {
    Object.defineProperty(crypto, "randomUUID", { value: randomUUID, configurable: true });
  }
});

Deno.test("atEndOfTick() runs after all microtasks and before anything else", async () => {
  const order: string[] = [];
  const deep = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) await null;
    order.push("microtasks");
  };

  await new Promise<void>((resolve) => {
    setTimeout(() => {
      atEndOfTick(() => order.push("end"));
      setTimeout(() => resolve(void order.push("timer")));
      void deep();
    });
  });

  assert.deepEqual(order, ["microtasks", "end", "timer"]);
});

Deno.test("atEndOfTick() uses a microtask on a platform without a process", async () => {
  const globals = globalThis as { process?: unknown };
  const { process } = globals;
  globals.process = undefined;
  try {
    await new Promise<void>((resolve) => atEndOfTick(resolve));
  } finally {
    globals.process = process;
  }
});

Deno.test("platformClock runs a task after its delay, as measured by now()", async () => {
  const start = platformClock.now();

  await new Promise<void>((resolve) => platformClock.after(5, resolve));

  assert.ok(platformClock.now() > start);
});

Deno.test("platformClock does not run a cancelled task", async () => {
  const ran: string[] = [];
  const cancel = platformClock.after(1, () => ran.push("cancelled"));

  cancel();
  await new Promise<void>((resolve) => platformClock.after(10, resolve));

  assert.deepEqual(ran, []);
});

Deno.test("wallTime() equals the system clock, with fractions", () => {
  const before = Date.now();
  const times = Array.from({ length: 50 }, () => wallTime());

  assert.ok(times.every((time) => time > before - 6 && time < Date.now() + 6));
  assert.ok(times.some((time) => !Number.isInteger(time)));
});

Deno.test("wallTime() follows changes of the system clock", () => {
  const { now } = Date;
  const real = now();
  Date.now = () => real + 3_600_000;
  const set = wallTime();
  Date.now = now;
  const back = wallTime();

  assert.ok(Math.abs(set - real - 3_600_000) < 60_000);
  assert.ok(Math.abs(back - real) < 60_000);
});
