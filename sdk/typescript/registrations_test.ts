import assert from "node:assert/strict";
import type { TriggerHandlers } from "./options.ts";
import { Registrations } from "./registrations.ts";
import type { Json, RegisterFunction, RegisterTriggerType } from "./wire/protocol.ts";

function setup() {
  const sent: Record<string, Json>[] = [];
  const removedTypes: TriggerHandlers[] = [];
  const registrations = new Registrations(
    (text) => sent.push(JSON.parse(text)),
    (handlers) => removedTypes.push(handlers),
  );
  const frames = () => registrations.frames().map((text) => JSON.parse(text).id);
  const texts = (): Record<string, Json>[] =>
    registrations.frames().map((text) => JSON.parse(text));
  return { frames, registrations, sent, texts, removedTypes };
}

const FUNCTION: RegisterFunction = { type: "registerfunction", id: "a::b" };
const TYPE: RegisterTriggerType = { type: "registertriggertype", id: "watch", description: "" };
const TRIGGER = {
  type: "registertrigger",
  id: "t1",
  trigger_type: "http",
  function_id: "a::b",
} as const;
const PROVIDER: TriggerHandlers = { registerTrigger() {}, unregisterTrigger() {} };

Deno.test("Registrations.frames() are types, then functions, then triggers", () => {
  const { frames, registrations } = setup();
  registrations.addTrigger(TRIGGER);
  registrations.addFunction(FUNCTION, () => 1);
  registrations.addType(TYPE, PROVIDER);

  assert.deepEqual(frames(), ["watch", "a::b", "t1"]);
});

Deno.test("Registrations finds handlers by namespace and id", () => {
  const { registrations } = setup();
  const [first, second] = [() => 1, () => 2];
  registrations.addFunction(FUNCTION, first);
  registrations.addFunction({ ...FUNCTION, namespace: "billing" }, second);
  registrations.addType({ ...TYPE, namespace: "billing" }, PROVIDER);

  assert.equal(registrations.handler(undefined, "a::b"), first);
  assert.equal(registrations.handler("default", "a::b"), first);
  assert.equal(registrations.handler("billing", "a::b"), second);
  assert.equal(registrations.handler("other", "a::b"), undefined);
  assert.equal(registrations.triggerHandlers("billing", "watch"), PROVIDER);
  assert.equal(registrations.triggerHandlers(undefined, "watch"), undefined);
});

Deno.test("unregister() removes a registration, once", () => {
  const { frames, registrations, sent, removedTypes } = setup();
  const all = [
    registrations.addFunction({ ...FUNCTION, namespace: "billing" }, () => 1),
    registrations.addType(TYPE, PROVIDER),
    registrations.addTrigger(TRIGGER),
  ];
  sent.length = 0;

  for (const registration of [...all, ...all]) registration.unregister();

  assert.deepEqual(frames(), []);
  assert.deepEqual(sent, [
    { type: "unregisterfunction", id: "a::b", namespace: "billing" },
    { type: "unregistertriggertype", id: "watch" },
    { type: "unregistertrigger", id: "t1", trigger_type: "http" },
  ]);
  assert.deepEqual(removedTypes, [PROVIDER]);
});

Deno.test("a function with the same id replaces the first, whose unregister() has no effect", () => {
  const { frames, registrations, sent } = setup();
  const again = () => 2;
  const first = registrations.addFunction(FUNCTION, () => 1);
  registrations.addFunction(FUNCTION, again);
  sent.length = 0;

  first.unregister();

  assert.deepEqual(frames(), ["a::b"]);
  assert.equal(registrations.handler(undefined, "a::b"), again);
  assert.deepEqual(sent, []);
});

Deno.test("values that JSON cannot represent are rejected and not kept", () => {
  const { frames, registrations } = setup();
  const metadata = 1n as unknown as Json;

  assert.throws(() => registrations.addFunction({ ...FUNCTION, metadata }, () => 1), {
    code: "serialization_error",
  });
  assert.throws(() => registrations.addTrigger({ ...TRIGGER, config: metadata }), {
    code: "serialization_error",
  });

  assert.deepEqual(frames(), []);
});

Deno.test("later changes to objects do not affect registrations", () => {
  const { registrations, sent, texts } = setup();
  const config: Record<string, Json> = { api_path: "/a" };
  const metadata: Record<string, Json> = { team: "shop" };
  registrations.addTrigger({ ...TRIGGER, config });
  registrations.addFunction({ ...FUNCTION, metadata }, () => 1);

  config.api_path = "/b";
  registrations.addTrigger({ ...TRIGGER, id: "t2", config });
  metadata.self = metadata; // JSON cannot represent this.

  assert.deepEqual(sent.map(({ config }) => config), [{ api_path: "/a" }, undefined, {
    api_path: "/b",
  }]);
  assert.deepEqual(texts().map(({ metadata, config }) => metadata ?? config), [
    { team: "shop" },
    { api_path: "/a" },
    { api_path: "/b" },
  ]);
});

Deno.test("ids of different namespaces do not collide", () => {
  const { registrations } = setup();
  const keys: [namespace: string | undefined, id: string][] = [
    [undefined, "a"],
    ["n", "a"],
    [undefined, "\u0000n\u0000a"],
    [undefined, "n\u0000a"],
    [undefined, "\u0000default\u0000a"],
    ["n", "\u0000a"],
  ];
  const handlers = keys.map(([namespace, id]) => {
    const handler = () => {};
    const own = namespace !== undefined && { namespace };
    registrations.addFunction({ type: "registerfunction", id, ...own }, handler);
    return handler;
  });

  assert.deepEqual(keys.map(([namespace, id]) => registrations.handler(namespace, id)), handlers);
  assert.equal(registrations.handler("default", "a"), handlers[0]);
});
