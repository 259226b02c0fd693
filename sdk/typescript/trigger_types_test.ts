import assert from "node:assert/strict";
import type { EngineError } from "./wire/errors.ts";
import type { TriggerHandlers, TriggerInstance } from "./options.ts";
import type { Json, RegisterTrigger } from "./wire/protocol.ts";
import { TriggerTypes } from "./trigger_types.ts";

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
  const types = new TriggerTypes({
    find: (namespace = "default", id) =>
      namespace === "default" && id === "file-watch" ? provider : undefined,
    report: (error) => reports.push(error),
  });
  const line = { isOpen: true, send: (text: string) => sent.push(JSON.parse(text)) };
  return { line, log, provider, reports, seen, sent, types };
}

Deno.test("TriggerTypes hands a trigger to its provider and says that it is live", async () => {
  const { line, seen, sent, types } = setup();

  await types.register({ ...TRIGGER, config: { dir: "inbox" }, metadata: { why: "demo" } }, line);

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

Deno.test("TriggerTypes takes absent config for an empty one and default for no namespace", async () => {
  const { line, seen, types } = setup();

  await types.register({ ...TRIGGER, namespace: "default" }, line);
  await types.register({ ...TRIGGER, id: "t2", namespace: "billing" }, line);

  assert.deepEqual(seen.map(({ config }) => config), [{}, {}]);
  assert.deepEqual(seen.map(({ namespace }) => namespace), [undefined, "billing"]);
});

Deno.test("TriggerTypes answers a type it does not have", async () => {
  const { line, sent, types } = setup();

  await types.register({ ...TRIGGER, trigger_type: "other" }, line);
  await types.register({ ...TRIGGER, trigger_namespace: "other" }, line);

  const error = { code: "trigger_type_not_found", message: "Trigger type not found" };
  assert.deepEqual(sent.map((message) => message.error), [error, error]);
});

for (const thrown of [new Error("no such directory"), "no such directory"]) {
  Deno.test(`TriggerTypes answers with the words of a thrown ${typeof thrown}`, async () => {
    const { line, log, sent, types } = setup({ registerTrigger: () => Promise.reject(thrown) });

    await types.register(TRIGGER, line);
    types.unregister({ type: "unregistertrigger", id: "t1" });
    await Promise.resolve();

    const error = { code: "trigger_registration_failed", message: "no such directory" };
    assert.deepEqual(sent, [{ ...ANSWER, error }]);
    assert.deepEqual(log, []);
    assert.equal(types.size, 0);
  });
}

Deno.test("TriggerTypes.unregister() finds the trigger by its id alone, once", async () => {
  const { line, log, types } = setup();
  await types.register(TRIGGER, line);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  types.unregister({ type: "unregistertrigger", id: "t1" });
  types.unregister({ type: "unregistertrigger", id: "unknown" });

  assert.deepEqual(log, ["+t1", "-t1 file-watch"]);
});

Deno.test("TriggerTypes lets a slow start end before it asks to stop", async () => {
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const { line, types } = setup({
    async registerTrigger() {
      await gate.promise;
      log.push("started");
    },
    unregisterTrigger: () => void log.push("stopped"),
  });
  const registered = types.register(TRIGGER, line);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  assert.deepEqual(log, []);
  gate.resolve();
  await registered;
  await Promise.resolve();

  assert.deepEqual(log, ["started", "stopped"]);
});

Deno.test("TriggerTypes stops the old trigger before it starts one with the same id", async () => {
  const { line, log, types } = setup();
  await types.register(TRIGGER, line);

  await types.register(TRIGGER, line);

  assert.deepEqual(log, ["+t1", "-t1 file-watch", "+t1"]);
  assert.equal(types.size, 1);
});

Deno.test("TriggerTypes lets a slow stop end before it starts one with the same id", async () => {
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const { line, types } = setup({
    registerTrigger: () => void log.push("started"),
    async unregisterTrigger() {
      await gate.promise;
      log.push("stopped");
    },
  });
  await types.register(TRIGGER, line);

  const again = types.register(TRIGGER, line);
  assert.deepEqual(log, ["started"]);
  gate.resolve();
  await again;

  assert.deepEqual(log, ["started", "stopped", "started"]);
});

Deno.test("TriggerTypes asks nobody to stop what never started", async () => {
  const gate = Promise.withResolvers<void>();
  const { line, log, reports, types } = setup({ registerTrigger: () => gate.promise });
  const registered = types.register(TRIGGER, line);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  gate.reject(new Error("no such directory"));
  await registered;
  await new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

  assert.deepEqual(log, []);
  assert.deepEqual(reports, []);
});

Deno.test("TriggerTypes.unregisterAll() stops every trigger, or those of one type", async () => {
  const { line, log, provider, types } = setup();
  await types.register(TRIGGER, line);
  await types.register({ ...TRIGGER, id: "t2" }, line);

  types.unregisterAll({ ...provider });
  assert.equal(types.size, 2);
  types.unregisterAll(provider);

  assert.deepEqual(log.slice(2), ["-t1 file-watch", "-t2 file-watch"]);
});

Deno.test("TriggerTypes reports a provider that cannot stop", async () => {
  const { line, reports, types } = setup({
    unregisterTrigger: () => Promise.reject(new Error("busy")),
  });
  await types.register(TRIGGER, line);

  types.unregister({ type: "unregistertrigger", id: "t1" });
  await new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

  assert.deepEqual(reports.map(({ message }) => message), ["A trigger could not be ended: busy"]);
});

Deno.test("TriggerTypes answers also when a provider throws what has no text", async () => {
  const { line, sent, types } = setup({
    registerTrigger() {
      throw Object.create(null);
    },
  });

  await types.register(TRIGGER, line);

  const message = "something was thrown that has no text";
  assert.deepEqual(sent, [{
    ...ANSWER,
    error: { code: "trigger_registration_failed", message },
  }]);
  assert.equal(types.size, 0);
});

for (const how of ["the engine takes it back", "the line ends"] as const) {
  Deno.test(`TriggerTypes: a trigger that comes again after ${how} waits for its end`, async () => {
    const log: string[] = [];
    const ending = Promise.withResolvers<void>();
    const { line, sent, types } = setup({
      registerTrigger: ({ id }) => void log.push(`+${id}`),
      async unregisterTrigger({ id }) {
        await ending.promise;
        log.push(`-${id}`);
      },
    });
    await types.register(TRIGGER, line);

    if (how === "the line ends") types.unregisterAll();
    else types.unregister({ type: "unregistertrigger", id: "t1" });
    const again = types.register(TRIGGER, line);
    await Promise.resolve();
    assert.deepEqual(log, ["+t1"]);
    ending.resolve();
    await again;

    assert.deepEqual(log, ["+t1", "-t1", "+t1"]);
    assert.deepEqual(sent, [ANSWER, ANSWER]);
    assert.equal(types.size, 1);
  });
}

Deno.test("TriggerTypes does not mind what unregisterTrigger returns", async () => {
  const returned: unknown[] = [true, {}, () => {}, null];
  const { line, reports, types } = setup({ unregisterTrigger: () => returned.shift() as void });

  while (returned.length > 0) {
    await types.register(TRIGGER, line);
    types.unregister({ type: "unregistertrigger", id: "t1" });
  }

  assert.deepEqual(reports, []);
  assert.equal(types.size, 0);
});
