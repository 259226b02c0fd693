/**
 * Workers on Node that an engine starts: they find `engine-sdk` without a registry, and start as
 * their package.json says.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findNode } from "../fakes/programs.ts";

const hasNode = await findNode("tests/e2e/node_worker_test.ts");
/** npm fails at once if it asks a registry. */
const OFFLINE = "registry=http://127.0.0.1:9/\nfetch-retries=0\n";

function nodeTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: !hasNode, fn });
}

async function add(engine: EngineProcess, path: string): Promise<void> {
  const { code, stderr } = await engine.command("worker", "add", path, "--isolation", "process");
  assert.equal(code, 0, stderr);
}

nodeTest("the template node-worker runs as it is written, without a registry", async () => {
  await using engine = await EngineProcess.start();
  const create = ["create", "--template", "node-worker", "--directory", "workers/mail"];
  assert.equal((await engine.command(...create)).code, 0);
  await engine.write("workers/mail/.npmrc", OFFLINE);

  await add(engine, "./workers/mail");

  const { stdout, stderr } = await engine.command("trigger", "mail::hello", "name=Ada");
  assert.equal(stdout, '{ "greeting": "Hello, Ada!" }\n', stderr);
});

nodeTest(
  "a worker of kind typescript on npm starts as package.json says, which may name the SDK",
  async () => {
    await using engine = await EngineProcess.start();
    const manifest = "name: typed\nruntime: { kind: typescript, package_manager: npm }\n";
    await engine.write("typed/engine.worker.yaml", manifest);
    await engine.write("typed/.npmrc", OFFLINE);
    await engine.write("typed/index.ts", "this is compiled elsewhere");
    await engine.write(
      "typed/package.json",
      JSON.stringify({
        type: "module",
        scripts: { start: "node dist/index.js" },
        dependencies: { "engine-sdk": "file:../.engine/sdk/typescript" },
      }),
    );
    const source = `import { registerWorker } from "engine-sdk";
    registerWorker().registerFunction("typed::add", ({ a, b }) => a + b);`;
    await engine.write("typed/dist/index.js", source);

    await add(engine, "./typed");

    assert.equal((await engine.command("trigger", "typed::add", "a=2", "b=3")).stdout, "5\n");
  },
);
