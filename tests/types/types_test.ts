/**
 * Types as users get them: programs against the built package, checked by tsc in strict mode.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { runTsc } from "./tsc.ts";

const LIBRARIES = ["zod", "valibot", "arktype"] as const;

Deno.test("a strict program has types from its schemas, and passes interfaces as JSON", async () => {
  const program = await Deno.readTextFile(new URL("./sdk_types.ts", import.meta.url));
  const packages = Object.fromEntries(LIBRARIES.map((name) => [name, manifest.imports[name]]));

  const { success, text } = await runTsc({ "program.ts": program }, packages);

  assert.ok(success, text);
});

Deno.test("a strict test uses engine-sdk/testing with the worker's own types", async () => {
  const program = `import { EngineError, registerWorker } from "engine-sdk";
import { type SeenCall, startTestEngine } from "engine-sdk/testing";

interface Order {
  to: string;
}
const engine = startTestEngine({ now: new Date(), queues: ["mail"] });
const worker = registerWorker("ws://127.0.0.1:1", { dial: engine.dial, clock: engine.clock });
const order: Order = { to: "a@b.c" };
const fake = engine.fake("mail::send", async (payload) => {
  if (payload === null) throw new EngineError("no_payload", "Send what?");
});
const result: { ok: boolean } = await engine.call("orders::create", order, { metadata: order });
const text = await engine.call<string>("orders::text");
const { status, body } = await engine.http("POST", "/orders", { body: order });
const job = await engine.enqueue("mail::send", order, { queue: "mail", delay_ms: 5 });
const calls: readonly SeenCall[] = fake.calls;
console.log(result.ok, text.length, status, body, job.state, calls.length, worker.name);
// @ts-expect-error The result of a call is unknown.
console.log((await engine.call("orders::create")).ok);
`;

  const { success, text } = await runTsc({ "program.ts": program });

  assert.ok(success, text);
});

Deno.test("tsc finds what is wrong in a program", async () => {
  const program = `import { registerWorker } from "engine-sdk";
const worker = registerWorker();
const sum = await worker.trigger({ function_id: "a::b" });
console.log(sum.c);
`;

  const { success, text } = await runTsc({ "program.ts": program });

  assert.equal(success, false);
  assert.match(text, /^program\.ts\(4,13\): error TS18046: 'sum' is of type 'unknown'\.$/m);
});
