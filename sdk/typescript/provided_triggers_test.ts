import assert from "node:assert/strict";
import type { TriggerHandlers, TriggerInstance } from "./options.ts";
import { ProvidedTriggers } from "./provided_triggers.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Json, RegisterTrigger } from "./wire/protocol.ts";

const TRIGGER: RegisterTrigger = {
  type: "registertrigger",
  id: "t1",
  trigger_type: "file-watch",
  function_id: "docs::index",
};
const ANSWER = {
  type: "triggerregistrationresult",
  id: "t1",
  trigger_type: "file-watch",
  function_id: "docs::index",
};

function setup(handlers: Partial<TriggerHandlers> = {}) {
  const log: string[] = [];
  const seen: TriggerInstance[] = [];
  const sent: Record<string, Json>[] = [];
  const reports: EngineError[] = [];
  const provider: TriggerHandlers = {
    registerTrigger(trigger) {
      log.push(`+${trigger.id}`);
      seen.push(trigger);
    },
    unregisterTrigger({ id, trigger_type }) {
      log.push(`-${id} ${trigger_type}`);
    },
    ...handlers,
  };
  const types = new ProvidedTriggers({
    find: (namespace = "default", id) =>
      namespace === "default" && id === "file-watch" ? provider : undefined,
    report: (error) => reports.push(error),
  });
  const connection = { isOpen: true, send: (text: string) => sent.push(JSON.parse(text)) };
  return { connection, log, provider, reports, seen, sent, types };
}

Deno.test("ProvidedTriggers passes a trigger to its provider and confirms it", async () => {
  const { connection, seen, sent, types } = setup();

  await types.register(
    { ...TRIGGER, config: { dir: "inbox" }, metadata: { why: "demo" } },
    connection,
  );

  assert.deepEqual(seen, [{
    id: "t1",
    trigger_type: "file-watch",
    function_id: "docs::index",
    config: { dir: "inbox" },
    metadata: { why: "demo" },
    namespace: undefined,
  }]);
  assert.deepEqual(sent, [ANSWER]);
});

Deno.test("ProvidedTriggers passes {} for an absent config and undefined for the default namespace", async () => {
  const { connection, seen, types } = setup();

  await types.register({ ...TRIGGER, namespace: "default" }, connection);
  await types.register({ ...TRIGGER, id: "t2", namespace: "billing" }, connection);

  assert.deepEqual(seen.map(({ config }) => config), [{}, {}]);
  assert.deepEqual(seen.map(({ namespace }) => namespace), [undefined, "billing"]);
});

Deno.test("ProvidedTriggers rejects a trigger of an unknown type", async () => {
  const { connection, sent, types } = setup();

  await types.register({ ...TRIGGER, trigger_type: "other" }, connection);
  await types.register({ ...TRIGGER, trigger_namespace: "other" }, connection);

  const error = { code: "trigger_type_not_found", message: "Trigger type not found" };
  assert.deepEqual(sent.map((message) => message.error), [error, error]);
});

for (const thrown of [new Error("no such directory"), "no such directory"]) {
  Deno.test(`ProvidedTriggers rejects with the text of a thrown ${typeof thrown}`, async () => {
    const { connection, log, sent, types } = setup({
      registerTrigger: () => Promise.reject(thrown),
    });

    await types.register(TRIGGER, connection);
    types.unregister({ type: "unregistertrigger", id: "t1" });
    await Promise.resolve();

    const error = { code: "trigger_registration_failed", message: "no such directory" };
    assert.deepEqual(sent, [{ ...ANSWER, error }]);
    assert.deepEqual(log, []);
    assert.equal(types.size, 0);
  });
}

Deno.test("ProvidedTriggers.unregister() finds the trigger by its id alone, once", async () => {
  const { connection, log, types } = setup();
  await types.register(TRIGGER, connection);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  types.unregister({ type: "unregistertrigger", id: "t1" });
  types.unregister({ type: "unregistertrigger", id: "unknown" });

  assert.deepEqual(log, ["+t1", "-t1 file-watch"]);
});

Deno.test("ProvidedTriggers waits for a slow registerTrigger before unregisterTrigger", async () => {
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const { connection, types } = setup({
    async registerTrigger() {
      await gate.promise;
      log.push("started");
    },
    unregisterTrigger: () => void log.push("stopped"),
  });
  const registered = types.register(TRIGGER, connection);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  assert.deepEqual(log, []);
  gate.resolve();
  await registered;
  await Promise.resolve();

  assert.deepEqual(log, ["started", "stopped"]);
});

Deno.test("ProvidedTriggers unregisters the old trigger before it registers one with the same id", async () => {
  const { connection, log, types } = setup();
  await types.register(TRIGGER, connection);

  await types.register(TRIGGER, connection);

  assert.deepEqual(log, ["+t1", "-t1 file-watch", "+t1"]);
  assert.equal(types.size, 1);
});

Deno.test("ProvidedTriggers waits for a slow unregisterTrigger before it registers the same id", async () => {
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const { connection, types } = setup({
    registerTrigger: () => void log.push("started"),
    async unregisterTrigger() {
      await gate.promise;
      log.push("stopped");
    },
  });
  await types.register(TRIGGER, connection);

  const again = types.register(TRIGGER, connection);
  assert.deepEqual(log, ["started"]);
  gate.resolve();
  await again;

  assert.deepEqual(log, ["started", "stopped", "started"]);
});

Deno.test("ProvidedTriggers passes on only the last of many triggers that wait with one id", async () => {
  const gate = Promise.withResolvers<void>();
  const { connection, log, sent, types, seen } = setup({
    async unregisterTrigger({ id }) {
      await gate.promise;
      log.push(`-${id}`);
    },
  });
  await types.register(TRIGGER, connection);

  const registered: (void | Promise<void>)[] = [];
  for (let n = 0; n < 100; n++) {
    registered.push(types.register({ ...TRIGGER, metadata: n }, connection));
  }
  gate.resolve();
  await Promise.all(registered);

  assert.deepEqual(log, ["+t1", "-t1", "+t1"]);
  assert.equal(seen.at(-1)?.metadata, 99);
  assert.deepEqual(sent, Array.from({ length: 101 }, () => ANSWER));
});

for (let microtasks = 0; microtasks < 10; microtasks++) {
  Deno.test(`ProvidedTriggers: a trigger ends ${microtasks} microtasks after its turn may come`, async () => {
    const gate = Promise.withResolvers<void>();
    const { connection, log, types } = setup({
      async unregisterTrigger({ id }) {
        await gate.promise;
        log.push(`-${id}`);
      },
    });
    await types.register(TRIGGER, connection);
    const registered = types.register(TRIGGER, connection);

    gate.resolve();
    for (let n = 0; n < microtasks; n++) await Promise.resolve();
    types.unregister({ type: "unregistertrigger", id: "t1" });
    await registered;
    await types.register(TRIGGER, connection);

    const whole = ["+t1", "-t1", "+t1", "-t1", "+t1"];
    assert.deepEqual(log, log.length < whole.length ? whole.slice(0, 3) : whole);
    assert.equal(types.size, 1);
  });
}

Deno.test("ProvidedTriggers does not unregister a trigger that was rejected", async () => {
  const gate = Promise.withResolvers<void>();
  const { connection, log, reports, types } = setup({ registerTrigger: () => gate.promise });
  const registered = types.register(TRIGGER, connection);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  gate.reject(new Error("no such directory"));
  await registered;
  await new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

  assert.deepEqual(log, []);
  assert.deepEqual(reports, []);
});

Deno.test("ProvidedTriggers.unregisterAll() unregisters all triggers, or those of one type", async () => {
  const { connection, log, provider, types } = setup();
  await types.register(TRIGGER, connection);
  await types.register({ ...TRIGGER, id: "t2" }, connection);

  types.unregisterAll({ ...provider });
  assert.equal(types.size, 2);
  types.unregisterAll(provider);

  assert.deepEqual(log.slice(2), ["-t1 file-watch", "-t2 file-watch"]);
});

Deno.test("ProvidedTriggers reports an error of unregisterTrigger", async () => {
  const { connection, reports, types } = setup({
    unregisterTrigger: () => Promise.reject(new Error("busy")),
  });
  await types.register(TRIGGER, connection);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  await new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

  assert.deepEqual(reports.map(({ message }) => message), ["A trigger could not be ended: busy"]);
});

Deno.test("ProvidedTriggers rejects also with a thrown value that has no text", async () => {
  const { connection, sent, types } = setup({
    registerTrigger() {
      throw Object.create(null);
    },
  });

  await types.register(TRIGGER, connection);

  const message = "a value without a text was thrown";
  assert.deepEqual(sent, [{
    ...ANSWER,
    error: { code: "trigger_registration_failed", message },
  }]);
  assert.equal(types.size, 0);
});

for (const how of ["unregister()", "unregisterAll()"] as const) {
  Deno.test(`ProvidedTriggers: a trigger registered again after ${how} waits for unregisterTrigger`, async () => {
    const log: string[] = [];
    const ending = Promise.withResolvers<void>();
    const { connection, sent, types } = setup({
      registerTrigger: ({ id }) => void log.push(`+${id}`),
      async unregisterTrigger({ id }) {
        await ending.promise;
        log.push(`-${id}`);
      },
    });
    await types.register(TRIGGER, connection);

    if (how === "unregisterAll()") types.unregisterAll();
    else types.unregister({ type: "unregistertrigger", id: "t1" });
    const again = types.register(TRIGGER, connection);
    await Promise.resolve();
    assert.deepEqual(log, ["+t1"]);
    ending.resolve();
    await again;

    assert.deepEqual(log, ["+t1", "-t1", "+t1"]);
    assert.deepEqual(sent, [ANSWER, ANSWER]);
    assert.equal(types.size, 1);
  });
}

Deno.test("ProvidedTriggers accepts any return value of unregisterTrigger", async () => {
  const returned: unknown[] = [true, {}, () => {}, null];
  const { connection, reports, types } = setup({
    unregisterTrigger: () => returned.shift() as void,
  });

  while (returned.length > 0) {
    await types.register(TRIGGER, connection);
    types.unregister({ type: "unregistertrigger", id: "t1" });
  }

  assert.deepEqual(reports, []);
  assert.equal(types.size, 0);
});

Deno.test("ProvidedTriggers answers at once for a provider that is synchronous", () => {
  const { connection, sent, types } = setup();
  const refused = setup({
    registerTrigger() {
      throw new Error("no such directory");
    },
  });

  assert.equal(types.register(TRIGGER, connection), undefined);
  assert.equal(refused.types.register(TRIGGER, refused.connection), undefined);

  assert.deepEqual(sent, [ANSWER]);
  const error = { code: "trigger_registration_failed", message: "no such directory" };
  assert.deepEqual(refused.sent, [{ ...ANSWER, error }]);
  assert.deepEqual([types.size, refused.types.size], [1, 0]);
});
