/**
 * The npm tarball, installed in an empty project: a plain Node program runs against an engine, tsc
 * --strict takes a program that uses each of its imports, and nothing is downloaded.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { run, runOrThrow } from "../../sdk/package.ts";
import { findNode } from "../fakes/programs.ts";
import { SocketEngine } from "../fakes/socket_server.ts";
import { npmTarball } from "./built.ts";

const hasNode = await findNode("tests/packages/npm_test.ts");

/** Uses every import of the package. */
const TYPED = `
import { EngineError, Logger, registerWorker, TriggerAction } from "engine-sdk";
import { connectStreams } from "engine-sdk/browser";
import { startTestEngine } from "engine-sdk/testing";

interface Pair { a: number; b: number }
const worker = registerWorker("ws://127.0.0.1:1", { workerName: "typed" });
worker.registerFunction("math::add", ({ a, b }: Pair) => ({ c: a + b }));
const sum: { c: number } = await worker.trigger({
  function_id: "math::add",
  payload: { a: 2, b: 3 },
});
export const c: number = sum.c;
export const all = [EngineError, Logger, TriggerAction, connectStreams, startTestEngine];
`;

/** An empty project with the package; what npm would download fails. */
async function setup() {
  const directory = await Deno.makeTempDir();
  const write = (name: string, text: string) => Deno.writeTextFile(`${directory}/${name}`, text);
  await write("package.json", JSON.stringify({ type: "module", private: true }));
  const install = ["npm", "install", "--offline", "--no-audit", "--no-fund", await npmTarball()];
  await runOrThrow(install, { cwd: directory });
  return {
    directory,
    write,
    run: (...command: string[]) => run(command, { cwd: directory }),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

function nodeTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: !hasNode, fn });
}

nodeTest("the npm package has modules, types, readme and licence, and nothing else", async () => {
  await using project = await setup();

  const folder = `${project.directory}/node_modules/engine-sdk`;
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
  const found = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  assert.deepEqual(files, [...found.files, "LICENSE", "README.md", "package.json"].sort());
  assert.equal(found.version, manifest.version);
});

nodeTest("a plain Node program with the npm package serves and calls functions", async () => {
  await using engine = new SocketEngine();
  await using project = await setup();
  const program = `import { registerWorker } from "engine-sdk";
    const worker = registerWorker(${JSON.stringify(engine.url)}, { workerName: "node" });
    worker.registerFunction("math::add", ({ a, b }) => ({ c: a + b }));
    console.log(await worker.trigger({ function_id: "math::add", payload: { a: 2, b: 3 } }));
    await worker.shutdown();`;
  await project.write("worker.js", program);

  const { success, text } = await project.run("node", "worker.js");

  assert.deepEqual([success, text], [true, "{ c: 5 }\n"]);
});

nodeTest("a CommonJS program imports the npm package, and its page client on Node", async () => {
  await using project = await setup();
  const program = `Promise.all([import("engine-sdk"), import("engine-sdk/browser")])
    .then(([sdk, browser]) => console.log(typeof sdk.registerWorker, typeof browser.connectStreams));`;
  await project.write("program.cjs", program);

  const { success, text } = await project.run("node", "program.cjs");

  assert.deepEqual([success, text], [true, "function function\n"]);
});

nodeTest("a Node program tests a worker with engine-sdk/testing", async () => {
  await using project = await setup();
  const program = `import { test } from "node:test";
    import assert from "node:assert/strict";
    import { registerWorker } from "engine-sdk";
    import { startTestEngine } from "engine-sdk/testing";
    const engine = startTestEngine();
    const worker = registerWorker();
    worker.registerFunction("orders::total", async ({ sku }) =>
      2 * await worker.trigger({ function_id: "prices::get", payload: { sku } }));
    test("it asks for the price", async () => {
      engine.fake("prices::get", 21);
      assert.equal(await engine.call("orders::total", { sku: "a" }), 42);
      engine.assertCalled("prices::get", { sku: "a" });
    });`;
  await project.write("worker.test.js", program);

  const { success, text } = await project.run("node", "--test", "worker.test.js");

  assert.ok(success, text);
  assert.match(text, /pass 1\b/);
});

/** Options of projects, as users have them; `strict` and the defaults of tsc otherwise. */
const PROJECTS: Readonly<Record<string, Record<string, unknown>>> = {
  "for Node": { module: "nodenext", target: "es2022" },
  "for a bundler": { module: "esnext", moduleResolution: "bundler", target: "es2022" },
};

for (const [name, options] of Object.entries(PROJECTS)) {
  nodeTest(`tsc --strict takes a program ${name} with the npm package`, async () => {
    await using project = await setup();
    const compilerOptions = { strict: true, noEmit: true, ...options };
    await project.write("tsconfig.json", JSON.stringify({ compilerOptions }));
    const tsc = ["run", "-A", "--no-lock", `${manifest.imports.typescript}/tsc`];

    await project.write("program.ts", TYPED);
    const good = await project.run(Deno.execPath(), ...tsc);
    await project.write("program.ts", TYPED.replace("c: number }", "c: string }"));
    const bad = await project.run(Deno.execPath(), ...tsc);

    assert.deepEqual([good.success, good.text], [true, ""]);
    assert.match(bad.text, /^program\.ts\(\d+,\d+\): error TS2322/);
  });
}
