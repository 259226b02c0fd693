/**
 * The program as `deno task build` makes it, as people run it: it is the same program.
 *
 * What is evaluated late in the sources is a file of its own in the build, or deferred; each of
 * these ways is gone once.
 *
 * @module
 */
import assert from "node:assert/strict";
import { build } from "../cli/build.ts";
import { VERSION } from "../engine/version.ts";
import { EngineProcess } from "./fakes/engine_process.ts";

const CONFIG = new URL("../deno.json", import.meta.url).pathname;
const ROOT = new URL("../", import.meta.url);
const WORKER = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker();
const payload = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
worker.registerFunction("greet::hello", ({ name }) => ({ text: "Hello, " + name }), {
  request_format: payload,
});
`;

/** A build of these sources, and how it is run. */
async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "engine-built-" });
  const out = new URL(`file://${directory}/`);
  await build(out);
  const program = ["run", "-A", "--quiet", "--config", CONFIG, `${directory}/built.js`];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [...program, ...args],
      cwd: directory,
      env: { NO_COLOR: "1", ENGINE_URL: "ws://127.0.0.1:1" },
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  };
  const remove = () => Deno.remove(directory, { recursive: true });
  return { out, program, run, [Symbol.asyncDispose]: remove };
}

Deno.test("the built program", async (t) => {
  await using built = await setup();

  await t.step("prints its version, its help and its mistakes", async () => {
    assert.deepEqual(await built.run("--version"), { code: 0, stdout: `${VERSION}\n`, stderr: "" });
    const help = await built.run("--help");
    assert.match(help.stdout, /engine worker add/);
    const mistake = await built.run("wroker");
    assert.equal(mistake.code, 2);
    assert.match(mistake.stderr, /did you mean worker\?/);
  });

  await t.step("lays a project out", async () => {
    const { code, stderr } = await built.run(
      "create",
      "--template",
      "quickstart",
      "--directory",
      "it",
    );
    assert.equal(code, 0, stderr);
    const template = await Deno.readTextFile(new URL("templates/quickstart/config.yaml", ROOT));
    assert.equal(await Deno.readTextFile(new URL("it/config.yaml", built.out)), template);
  });

  await using engine = await EngineProcess.start("", "", built.program);

  await t.step("calls a function of the engine", async () => {
    const { code, stdout, stderr } = await engine.command(
      "trigger",
      "state::set",
      "scope=a",
      "key=b",
      "value=7",
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /7/);
  });

  await t.step("adds a worker, writes YAML, checks a schema", async () => {
    await engine.write(
      "greeter/engine.worker.yaml",
      "name: greeter\nruntime: {kind: javascript, package_manager: deno}\n",
    );
    await engine.write("greeter/main.js", WORKER);
    const imports = { "engine-sdk": "../.engine/sdk/typescript/engine_sdk.js" };
    await engine.write("greeter/deno.json", JSON.stringify({ imports }));
    const added = await engine.command("worker", "add", "./greeter", "--isolation", "process");
    assert.equal(added.code, 0, added.stderr);
    assert.match(await Deno.readTextFile(`${engine.directory}/config.yaml`), /greeter/);
    const { stdout } = await engine.command("trigger", "greet::hello", "name=Ada");
    assert.deepEqual(JSON.parse(stdout), { text: "Hello, Ada" });
    const { code, stderr } = await engine.command("trigger", "greet::hello", "name:=1");
    assert.equal(code, 1);
    assert.match(stderr, /invalid_payload/);
  });

  await t.step("serves the console's page", async () => {
    const { port } = freePort();
    const config = `${engine.directory}/config.yaml`;
    const worker = `  - name: engine-console\n    config:\n      port: ${port}\n`;
    await engine.kill("SIGTERM");
    await Deno.writeTextFile(config, await Deno.readTextFile(config) + worker);
    await engine.start();
    const page = await (await fetch(`http://127.0.0.1:${port}/`)).text();
    assert.match(page, /<meta name="engine-console-sources" content="\w{32}">/);
  });
});

Deno.test("a build that is older than its sources runs them instead, and says so", async () => {
  await using built = await setup();
  const list = new URL("sources.json", built.out);
  const { root, files } = JSON.parse(await Deno.readTextFile(list));
  assert.equal((await built.run("--version")).stderr, "");

  await Deno.writeTextFile(list, JSON.stringify({ root, files: { ...files, "cli/run.ts": 1 } }));
  const { code, stdout, stderr } = await built.run("--version");

  assert.deepEqual({ code, stdout }, { code: 0, stdout: `${VERSION}\n` });
  assert.match(stderr, /not of these sources.*deno task build/);
});

Deno.test("a build leaves files of the one before it, which an engine may still load", async () => {
  await using built = await setup();
  const early = new URL("disk-EARLIER.js", built.out);
  const old = new URL("disk-LONGAGO.js", built.out);
  await Deno.writeTextFile(early, "");
  await Deno.writeTextFile(old, "");
  await Deno.utime(old, 1, 1);

  await build(built.out);

  assert.ok((await Deno.stat(early)).isFile);
  await assert.rejects(Deno.stat(old), Deno.errors.NotFound);
});

function freePort(): { port: number } {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return { port: listener.addr.port };
}
