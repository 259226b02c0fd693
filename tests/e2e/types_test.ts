/**
 * `engine types` against a real engine: what workers register is what a client says.
 *
 * @module
 */
import assert from "node:assert/strict";
import * as z from "zod";
import { runCommandLine } from "../../cli/program.ts";
import { systemTerminal } from "../../cli/terminal.ts";
import { startEngine } from "../../engine/mod.ts";
import { registerWorker } from "../../mod.ts";
import { until } from "../fakes/until.ts";

Deno.test("engine types --watch follows the functions of an engine", async () => {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/config.yaml`, "workers: []\n");
  await using engine = await startEngine({ directory, port: 0, logLevel: "error" });
  const { url } = engine.endpoints.find(({ name }) => name === "workers")!;
  await using worker = registerWorker(url, { workerName: "math" });
  const out = `${directory}/api.ts`;
  let interrupt = (): void => {};
  const onInterrupt = (listener: () => void) => {
    interrupt = listener;
    return () => {};
  };
  const terminal = { ...systemTerminal(), err: () => {}, onInterrupt };
  const written = () => Deno.readTextFile(out).catch(() => "");
  worker.registerFunction("math::add", ({ a, b }) => ({ c: a + b }), {
    description: "Add two numbers",
    input: z.object({ a: z.number(), b: z.number() }),
    output: z.object({ c: z.number() }),
  });

  const args = ["types", "--lang", "ts", "--watch", "--out", out, "--url", url];
  const ended = runCommandLine(args, terminal);
  try {
    await until(async () => (await written()).includes("add(payload: MathAddPayload"));
    assert.match(await written(), /^export interface MathAddResult \{\n {2}c: number;\n\}$/m);
    assert.match(await written(), /\/\*\* Add two numbers \*\//);

    worker.registerFunction("math::negate", (n) => -n, { input: z.number() });
    await until(async () => (await written()).includes("negate(payload: number"));
  } finally {
    interrupt();
    assert.equal(await ended, 0);
    await worker.shutdown();
    await engine.stop({ drain: false });
    await Deno.remove(directory, { recursive: true });
  }
});
