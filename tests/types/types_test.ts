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
