/**
 * Ten workers in microVMs at once, as a project that starts has them.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { WorkerStatus } from "../../engine/ports/supervision.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { vmHere } from "../fakes/vm_project.ts";

const WORKERS = 10;
const MANIFEST = "runtime: { kind: javascript, entry: main.js }\nresources: { memory_mb: 256 }\n";
const SOURCE = `
import { registerWorker } from "../../.engine/sdk/typescript/engine_sdk.js";
const name = process.env.ENGINE_WORKER_NAME;
registerWorker().registerFunction(\`\${name}::whoami\`, () => ({ name, pid: process.pid }));
`;

Deno.test({
  name: "ten workers in microVMs that start at once all become ready, and report their memory",
  ignore: typeof vmHere === "string",
  fn: async () => {
    await using engine = await EngineProcess.start();
    const names = Array.from({ length: WORKERS }, (_, n) => `w${n}`);
    for (const name of names) {
      await engine.write(`workers/${name}/engine.worker.yaml`, `name: ${name}\n${MANIFEST}`);
      await engine.write(`workers/${name}/main.js`, SOURCE);
    }

    const paths = names.map((name) => `./workers/${name}`);
    const added = await engine.command("worker", "add", ...paths, "--timeout", "15m");

    assert.equal(added.code, 0, added.stderr);
    assert.equal(added.stdout.match(/ is ready: /g)?.length, WORKERS, added.stdout);
    const list = await engine.command("worker", "list", "--json");
    const statuses = (JSON.parse(list.stdout) as WorkerStatus[])
      .filter(({ name }) => names.includes(name));
    assert.equal(new Set(statuses.map(({ pid }) => pid)).size, WORKERS);
    for (const { name, state, isolation, memory_bytes } of statuses) {
      assert.deepEqual([name, state, isolation], [name, "ready", "microvm"]);
      assert.ok(memory_bytes! > 50 * 2 ** 20 && memory_bytes! < 1_000 * 2 ** 20, `${memory_bytes}`);
    }
    await using caller = engine.connect();
    const answers = await Promise.all(
      names.map((name) => caller.trigger({ function_id: `${name}::whoami`, timeout_ms: 30_000 })),
    );
    assert.deepEqual(answers.map((answer) => (answer as { name: string }).name), names);
  },
});
