/**
 * SDKs of the previous minor version on this engine: docs/reference/compatibility.md promises that they work.
 *
 * `tests/fixtures/` has the packages of 0.1.0 as they were, 57 and 66 KiB: a test that builds them
 * from old sources would need the history, which a copy of the repository need not have.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, Worker } from "../../mod.ts";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { findNode, findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const FIXTURES = new URL("../fixtures/", import.meta.url).pathname;
const VERSION = "0.1.0";

const IN_TYPESCRIPT = `
import { EngineError, registerWorker, TriggerAction } from "engine-sdk";

const reconnect = { firstMs: 50, maxMs: 200 };
const worker = registerWorker(undefined, { workerName: "old", reconnect, onError() {} });
worker.registerFunction("old::add", ({ a, b }) => ({ c: a + b }));
worker.registerFunction("old::fails", () => {
  throw new EngineError("sold_out", "Only 2 left", { details: { left: 2 } });
});
worker.registerFunction("old::total", async ({ by }) => {
  const place = { scope: "old", key: "total" };
  const total = (await worker.trigger({ function_id: "state::get", payload: place }) ?? 0) + by;
  await worker.trigger({ function_id: "state::set", payload: { ...place, value: total } });
  return total;
});
worker.registerFunction("old::passes_on", ({ what }) =>
  worker.trigger({ function_id: "new::echo", payload: what, timeout_ms: 60000 }));
worker.registerFunction("old::tells", async () => {
  const action = TriggerAction.Void();
  await worker.trigger({ function_id: "new::heard", payload: "psst", action });
});
worker.registerFunction("old::page", ({ body }) => ({ status_code: 201, body: { got: body } }));
const config = { api_path: "/old", http_method: "POST" };
worker.registerTrigger({ type: "http", function_id: "old::page", config });
process.stdin.on("end", () => worker.shutdown()).resume();
`;

const IN_PYTHON = `
import sys
from engine_sdk import EngineError, InitOptions, TriggerAction, __version__, register_worker

assert __version__ == "${VERSION}" and ".whl" in sys.modules["engine_sdk"].__file__
worker = register_worker(options=InitOptions(worker_name="old"))

def fails(payload):
    raise EngineError("sold_out", "Only 2 left", {"left": 2})

def total(payload):
    place = {"scope": "old", "key": "total"}
    total = (worker.trigger({"function_id": "state::get", "payload": place}) or 0) + payload["by"]
    worker.trigger({"function_id": "state::set", "payload": {**place, "value": total}})
    return total

def passes_on(payload):
    call = {"function_id": "new::echo", "payload": payload["what"], "timeout_ms": 60000}
    return worker.trigger(call)

def tells(payload):
    action = TriggerAction.Void()
    worker.trigger({"function_id": "new::heard", "payload": "psst", "action": action})

worker.register_function("old::add", lambda payload: {"c": payload["a"] + payload["b"]})
worker.register_function("old::fails", fails)
worker.register_function("old::total", total)
worker.register_function("old::passes_on", passes_on)
worker.register_function("old::tells", tells)
worker.register_function(
    "old::page", lambda request: {"status_code": 201, "body": {"got": request["body"]}})
worker.register_trigger({"type": "http", "function_id": "old::page",
    "config": {"api_path": "/old", "http_method": "POST"}})
sys.stdin.read()
worker.shutdown()
`;

/** A directory with the worker and the SDK, and what starts it there. */
interface OldWorker {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  prepare(directory: string): Promise<void>;
}

const WORKERS: Readonly<Record<string, OldWorker & { readonly isPossible: boolean }>> = {
  TypeScript: {
    isPossible: await findNode("tests/e2e/older_sdk_test.ts"),
    command: ["node", "worker.mjs"],
    env: {},
    async prepare(directory) {
      const to = `${directory}/node_modules/engine-sdk`;
      await Deno.mkdir(to, { recursive: true });
      const tarball = `${FIXTURES}engine-sdk-${VERSION}.tgz`;
      const tar = new Deno.Command("tar", { args: ["xzf", tarball, "--strip=1", "-C", to] });
      assert.ok((await tar.output()).success);
      await Deno.writeTextFile(`${directory}/worker.mjs`, IN_TYPESCRIPT);
    },
  },
  Python: {
    isPossible: await findPython("tests/e2e/older_sdk_test.ts"),
    command: ["python3", "worker.py"],
    env: {
      PYTHONPATH: `${FIXTURES}engine_sdk-${VERSION}-py3-none-any.whl:${PYTHON_ENV.PYTHONPATH}`,
    },
    prepare: (directory) => Deno.writeTextFile(`${directory}/worker.py`, IN_PYTHON),
  },
};

/** An engine with HTTP, a worker of today and one of the previous version. */
async function setup({ command: [program = "", ...args], env, prepare }: OldWorker) {
  const httpPort = freePort();
  const engine = await EngineProcess.start(
    `  - name: engine-http\n    config: { port: ${httpPort} }\n`,
  );
  await prepare(engine.directory);
  const old = new Deno.Command(program, {
    args,
    cwd: engine.directory,
    env: { ENGINE_URL: engine.url, ...env },
    stdin: "piped",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  const worker: Worker = engine.connect("new");
  const call = (function_id: string, payload: Json = {}): Promise<Json | undefined> =>
    worker.trigger<Json, Json>({ function_id, payload });
  return {
    engine,
    worker,
    call,
    httpPort,
    /** Lets it leave, and gives its exit code. */
    async end(): Promise<number> {
      await old.stdin.close();
      return (await old.status).code;
    },
    async [Symbol.asyncDispose]() {
      await worker.shutdown();
      await old.stdin.close().catch(() => {}); // It has ended.
      await old.status;
      await engine[Symbol.asyncDispose]();
    },
  };
}

for (const [language, old] of Object.entries(WORKERS)) {
  Deno.test({
    name: `a worker with the ${language} SDK of ${VERSION} works on this engine`,
    ignore: !old.isPossible,
    async fn() {
      await using there = await setup(old);
      const { call, worker } = there;
      const heard = Promise.withResolvers<Json>();
      worker.registerFunction("new::echo", (payload: Json) => payload);
      worker.registerFunction("new::heard", (payload: Json) => heard.resolve(payload));
      const sum = async () => (await call("old::add", { a: 2, b: 3 }) as { c: number }).c === 5;

      await until(sum, () => there.engine.stderr);
      await assert.rejects(call("old::fails"), { code: "sold_out", details: { left: 2 } });
      assert.deepEqual(await call("old::passes_on", { what: { deep: ["ö", null] } }), {
        deep: ["ö", null],
      });
      await call("old::tells");
      assert.equal(await heard.promise, "psst");
      assert.equal(await call("old::total", { by: 2 }), 2);
      await until(async () => {
        const response = await fetch(`http://127.0.0.1:${there.httpPort}/old`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"n":1}',
        });
        const text = await response.text();
        return response.status === 201 && text === '{"got":{"n":1}}';
      });

      await there.engine.kill("SIGKILL");
      await there.engine.start();
      await until(sum, () => there.engine.stderr);
      assert.equal(await call("old::total", { by: 3 }), 5);
      assert.equal(await there.end(), 0);
    },
  });
}
