/**
 * A real engine with real workers in two languages, and what happens when something is killed.
 *
 * @module
 */
import assert from "node:assert/strict";
import { startEngine } from "../../engine/mod.ts";
import { type Json, registerWorker } from "../../mod.ts";
import { EngineProcess, isAlive } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const MATH_WORKER = `
from engine_sdk import register_worker, InitOptions
worker = register_worker(None, InitOptions(worker_name="math-worker"))

def add(payload):
    total = payload.get("a", 0) + payload.get("b", 0)
    worker.trigger({"function_id": "state::update", "payload": {
        "scope": "math", "key": "calls", "ops": [{"type": "increment", "path": "n", "by": 1}]}})
    return {"c": total}

worker.register_function("math::add", add)
`;

const CALLER_WORKER = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker();
worker.registerFunction("math::add_two_numbers", (payload) =>
  worker.trigger({ function_id: "math::add", payload }));
worker.registerFunction("math::wait", () => new Promise(() => {}));
`;

async function setup(): Promise<EngineProcess> {
  const engine = await EngineProcess.start();
  await engine.write(
    "workers/math/engine.worker.yaml",
    "name: math\nruntime:\n  kind: python\n  entry: main.py\n",
  );
  await engine.write("workers/math/main.py", MATH_WORKER);
  await engine.write(
    "workers/caller/engine.worker.yaml",
    "name: caller\nruntime:\n  kind: typescript\n  entry: main.ts\n",
  );
  await engine.write("workers/caller/main.ts", CALLER_WORKER);
  await engine.write(
    "workers/caller/deno.json",
    '{ "imports": { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" } }',
  );
  for (const name of ["math", "caller"]) {
    const added = await engine.command(
      "worker",
      "add",
      `./workers/${name}`,
      "--isolation",
      "process",
    );
    assert.equal(added.code, 0, added.stderr);
  }
  return engine;
}

async function pidOf(engine: EngineProcess, name: string): Promise<number> {
  const { stdout } = await engine.command("worker", "status", name, "--json");
  return JSON.parse(stdout).pid;
}

Deno.test("a call reaches Python through TypeScript, from the command line", async () => {
  await using engine = await setup();

  const result = await engine.command("trigger", "math::add_two_numbers", "a=2", "b=3");

  assert.deepEqual([result.code, result.stdout], [0, '{ "c": 5 }\n']);
});

Deno.test("a worker killed in the middle of a call: its caller gets an error, and it is restarted", async () => {
  await using engine = await setup();
  await using worker = engine.connect();
  const before = await pidOf(engine, "caller");

  const waiting = worker.trigger({ function_id: "math::wait" });
  const ended = assert.rejects(waiting, { code: "invocation_stopped" });
  await until(async () => {
    const listed = await worker.trigger<
      Json,
      { workers: { name: string; active_invocations: number }[] }
    >({
      function_id: "engine::workers::list",
    });
    return listed.workers.some((one) => one.active_invocations > 0 && one.name !== "engine");
  });
  const killed = performance.now();
  Deno.kill(-before, "SIGKILL");
  await ended;
  const told = performance.now() - killed;

  assert.ok(told < 20_000, `after ${told} ms, not only when the connection was silent for 60 s`);
  await until(async () => {
    await worker.trigger({ function_id: "math::add_two_numbers", payload: { a: 1 } });
    return true;
  });
  assert.notEqual(await pidOf(engine, "caller"), before);
});

Deno.test("an engine killed at random moments loses no acknowledged change, and its workers reconnect", async () => {
  await using engine = await setup();
  await using worker = engine.connect();
  let acknowledged = 0;

  for (let round = 0; round < 4; round++) {
    const killAfterMs = Math.random() * 300;
    const calls = Array.from({ length: 20 }, async () => {
      const payload = { a: 1, b: 1 };
      const request = { function_id: "math::add_two_numbers", payload, timeout_ms: 5_000 };
      await worker.trigger(request).then(() => acknowledged++, () => {}); // Cut by the kill.
    });
    await new Promise((resolve) => setTimeout(resolve, killAfterMs));
    await engine.kill("SIGKILL");
    await Promise.all(calls);
    await engine.start();
    await until(async () => {
      const request = { function_id: "math::add_two_numbers", payload: {}, timeout_ms: 2_000 };
      await worker.trigger(request);
      acknowledged++;
      return true;
    }, () => engine.stderr);
  }

  const place = { scope: "math", key: "calls" };
  const stored = await worker.trigger<Json, { n: number }>({
    function_id: "state::get",
    payload: place,
  });
  assert.ok(stored.n >= acknowledged, `${stored.n} stored, ${acknowledged} acknowledged`);
  const { stdout } = await engine.command("worker", "list", "--json");
  const names = JSON.parse(stdout).map((one: { name: string }) => one.name);
  assert.equal(new Set(names).size, names.length, "no worker runs twice");
});

Deno.test("workers of an engine that was killed end by themselves", async () => {
  await using engine = await setup();
  const pids = [await pidOf(engine, "math"), await pidOf(engine, "caller")];

  await engine.kill("SIGKILL");

  await until(() => pids.every((pid) => !isAlive(pid)), () => pids.join(), 30_000);
});

Deno.test("an edit of config.yaml is applied without touching what did not change", async () => {
  await using engine = await setup();
  const before = await pidOf(engine, "math");
  const path = `${engine.directory}/config.yaml`;
  const text = await Deno.readTextFile(path);

  await Deno.writeTextFile(path, text.replace(/ *- name: caller\n(?: {4}.*\n)+/, ""));

  await until(async () => {
    const result = await engine.command("trigger", "math::add_two_numbers", "a=1");
    return result.stderr.includes("Function math::add_two_numbers not found");
  });
  assert.equal(await pidOf(engine, "math"), before);
});

Deno.test("an edit of a setting that takes effect at start only is logged", async () => {
  await using engine = await EngineProcess.start();
  const path = `${engine.directory}/config.yaml`;
  const text = await Deno.readTextFile(path);

  const origins = "  allowed_origins: [https://console.example]\n";
  await Deno.writeTextFile(path, text.replace("engine:\n", `engine:\n${origins}`));

  await until(() => engine.stderr.includes("takes effect when the engine restarts"));
  assert.match(engine.stderr, /engine\.allowed_origins/);
});

Deno.test("a broken config.yaml is reported and changes nothing", async () => {
  await using engine = await setup();
  const path = `${engine.directory}/config.yaml`;

  await Deno.writeTextFile(path, "- a list\n");

  await until(() => engine.stderr.includes("config.yaml"));
  const result = await engine.command("trigger", "math::add", "a=2", "b=3");
  assert.deepEqual([result.code, result.stdout], [0, '{ "c": 5 }\n']);
});

Deno.test("an engine asked to stop leaves no process behind", async () => {
  await using engine = await setup();
  const pids = [await pidOf(engine, "math"), await pidOf(engine, "caller")];

  const { code } = await engine.kill("SIGTERM");

  assert.equal(code, 0);
  assert.deepEqual(pids.filter(isAlive), []);
});

for (const transport of ["raw", "deno-serve"]) {
  Deno.test(`transport ${transport} carries workers and commands`, async () => {
    const directory = await Deno.makeTempDir({ prefix: "engine-transport-" });
    await Deno.writeTextFile(`${directory}/config.yaml`, `engine:\n  transport: ${transport}\n`);
    await using engine = await startEngine({ directory, port: 0, logLevel: "error" });
    await using worker = registerWorker(engine.endpoints[0]!.url);
    worker.registerFunction("echo::big", (payload) => payload);

    const payload = { text: "ä".repeat(200_000) };
    const result = await worker.trigger({ function_id: "echo::big", payload });

    assert.deepEqual(result, payload);
    await worker.shutdown();
    await engine.stop();
    await Deno.remove(directory, { recursive: true });
  });
}
