/**
 * What commands print, from end to end, when something that a call or a trigger needs is not there:
 * a built-in worker that was never added, a worker that is down, a mistyped trigger type.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const MANIFEST = `name: py
runtime:
  kind: javascript
  package_manager: deno
restart:
  backoff_ms: 30000
`;

/** Offers functions, and triggers that do not fire here; `py::exit` ends it. */
const WORKER = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker();
worker.registerFunction("py::hello", () => "hello");
worker.registerFunction("py::read", () =>
  worker.trigger({ function_id: "state::get", payload: { scope: "a", key: "b" } }));
worker.registerFunction("py::exit", () => {
  setTimeout(() => Deno.exit(7), 50);
});
worker.registerFunction("py::bug", ({ shop }) => shop.name);
const config = { api_path: "/hello" };
worker.registerTrigger({ type: "http", function_id: "py::hello", config });
worker.registerTrigger({ type: "sate", function_id: "py::hello", config: {} });
worker.registerTrigger({ type: "state", function_id: "py::hello", config: { scope: 5 } });
`;

async function setup(): Promise<EngineProcess> {
  const engine = await EngineProcess.start();
  const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
  await engine.write("workers/py/engine.worker.yaml", MANIFEST);
  await engine.write("workers/py/main.js", WORKER);
  await engine.write("workers/py/deno.json", JSON.stringify({ imports }));
  return engine;
}

const NO_HTTP = "trigger http of py::hello is parked: no worker provides the trigger type http: " +
  "engine-http provides it, which is not in config.yaml; to fix it: engine worker add engine-http";
const NO_SATE = "trigger sate of py::hello is parked: no worker provides the trigger type sate; " +
  "did you mean state?";
const REFUSED = "trigger state of py::hello is refused: its provider refused it: ";

Deno.test("commands say which triggers do not fire, why, and what helps", async (t) => {
  await using engine = await setup();

  await t.step("worker add, which succeeds", async () => {
    const { code, stderr } = await engine.command(
      ...["worker", "add", "./workers/py", "--isolation", "process"],
    );
    assert.equal(code, 0, stderr);
    for (const line of [NO_HTTP, NO_SATE, REFUSED]) assert.ok(stderr.includes(line), stderr);
  });

  await t.step("worker status", async () => {
    const { stdout } = await engine.command("worker", "status", "py");
    for (const line of [NO_HTTP, NO_SATE, REFUSED]) assert.ok(stdout.includes(line), stdout);
  });

  await t.step("doctor", async () => {
    const { checks } = JSON.parse((await engine.command("doctor", "--json")).stdout);
    const { status, measured, message } = checks.find(({ name }: { name: string }) =>
      name === "triggers"
    );
    assert.deepEqual([status, measured], ["warn", 3]);
    assert.match(message, /^3 of \d+ triggers do not fire: /);
  });

  await t.step("the command that was named makes the trigger fire", async () => {
    await engine.command("worker", "add", "engine-http", "port=0");
    const { stdout } = await engine.command("worker", "status", "py");
    assert.ok(!stdout.includes("trigger http"), stdout);
    assert.ok(stdout.includes(NO_SATE), stdout);
  });
});

Deno.test("a call of a function that is not there says who called, why, and what helps", async (t) => {
  await using engine = await setup();
  const port = freePort();
  await engine.command("worker", "add", "engine-http", `port=${port}`);
  await engine.command("worker", "add", "./workers/py", "--isolation", "process");
  const hello = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/hello`);
    const { status, headers } = response;
    return `${status} ${headers.get("retry-after")} ${await response.text()}`;
  };

  await t.step("a function of a built-in worker that is not in config.yaml", async () => {
    await engine.command("worker", "remove", "engine-state");
    const { code, stderr } = await engine.command("trigger", "py::read");
    assert.equal(code, 1);
    const [first, ...rest] = stderr.trimEnd().split("\n");
    assert.equal(first, "error: function_not_found: Function state::get not found");
    assert.deepEqual(rest.slice(0, 3), [
      "  It was called by worker py",
      "  engine-state provides it, which is not in config.yaml",
      "  To fix it: engine worker add engine-state",
    ]);
  });

  await t.step("a function of a worker that has ended and waits for its next start", async () => {
    await engine.command("trigger", "py::exit");
    let stderr = "";
    await until(async () => {
      stderr = (await engine.command("trigger", "py::hello")).stderr;
      return stderr.includes("next start in");
    }, () => stderr);
    const [first, why] = stderr.split("\n");
    assert.equal(first, "error: function_not_found: Function py::hello not found");
    assert.match(why!, /^ {2}worker py is down \(exit 7\), next start in \d+ s$/);
    const seconds = Number(/in (\d+) s/.exec(why!)![1]);
    assert.ok(seconds > 0 && seconds <= 30, why);
  });

  await t.step("its route, until it serves again or is stopped", async () => {
    const reason = "Function py::hello not found: worker py is down \\(exit 7\\), next start in";
    assert.match(await hello(), new RegExp(`^503 1 .*"function_not_found",.*"${reason} \\d+ s"`));
    await engine.command("worker", "start", "py");
    assert.match(await hello(), /^200 .*hello/);
    await engine.command("worker", "stop", "py");
    await until(async () => (await hello()).startsWith("404"));
  });
});

Deno.test("the stack trace of a handler is shown to who calls, asks why, and reads its log", async (t) => {
  await using engine = await setup();
  await engine.command("worker", "add", "./workers/py", "--isolation", "process");
  let id = "";

  await t.step("engine trigger", async () => {
    const { code, stdout, stderr } = await engine.command("trigger", "py::bug", "--verbose");
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^error: invocation_failed: Cannot read properties of undefined/);
    assert.match(stderr, /^ {2}Stack trace of py::bug:\n {4}TypeError: .*\n {8}at .*main\.js:/m);
    id = /why: engine why (\S+)/.exec(stderr)![1]!;
  });

  await t.step("engine why", async () => {
    const { stdout } = await engine.command("why", id);
    assert.match(stdout, /^ {2}Stack trace of py::bug:\n {4}TypeError: .*\n {8}at .*main\.js:/m);
  });

  await t.step("engine worker logs, line by line", async () => {
    let stdout = "";
    await until(async () => {
      stdout = (await engine.command("worker", "logs", "py")).stdout;
      return stdout.includes("main.js:");
    }, () => stdout);
    const lines = stdout.split("\n");
    const at = lines.findIndex((line) => line.endsWith("[engine] py::bug failed:"));
    assert.match(lines[at + 1]!, / {2}TypeError: Cannot read properties of undefined/);
    assert.match(lines[at + 2]!, / {6}at .*main\.js:/);
  });

  await t.step("an error of a built-in worker has none", async () => {
    const { stderr } = await engine.command("trigger", "state::get", "scope=5");
    assert.match(stderr, /^error: deserialization_error: /);
    assert.doesNotMatch(stderr, /Stack trace/);
  });
});

for (const isForbidden of [false, true]) {
  const what = isForbidden ? "is refused where config.yaml forbids it" : "is reported";
  Deno.test(`a worker that offers a function of another worker ${what}`, async () => {
    const settings = isForbidden ? "  shared_functions: [public::*]\n" : "";
    await using engine = await EngineProcess.start("", settings);
    await using shop = engine.connect("shop");
    shop.registerFunction("orders::create", () => "shop");
    await until(async () => (await engine.command("trigger", "orders::create")).code === 0);
    await using till = engine.connect("till");
    till.registerFunction("orders::create", () => "till");

    const logged = isForbidden
      ? "orders::create is refused: worker shop offers it"
      : "orders::create is offered by worker shop and now by worker till too";
    await until(() => engine.stderr.includes(logged), () => engine.stderr);

    const { checks } = JSON.parse((await engine.command("doctor", "--json")).stdout);
    const { measured } = checks.find(({ name }: { name: string }) => name === "function names");
    assert.equal(measured, isForbidden ? 0 : 1);
    const call = { function_id: "orders::create", payload: {} };
    const answers = new Set([await shop.trigger(call), await shop.trigger(call)]);
    assert.deepEqual([...answers].sort(), isForbidden ? ["shop"] : ["shop", "till"]);
  });
}

const SLOW_PYTHON = `
import threading
from engine_sdk import InitOptions, register_worker

worker = register_worker(options=InitOptions(worker_name="slow-python", max_threads=1))
held = threading.Event()
worker.register_function("slow::hold", lambda payload: held.wait(600) and None)
worker.register_function("slow::free", lambda payload: held.set())
threading.Event().wait()
`;

const ignore = !await findPython("tests/e2e/truthful_test.ts");

Deno.test(
  { ignore, name: "doctor names a handler that holds the last thread of a Python worker" },
  async () => {
    await using engine = await EngineProcess.start();
    const child = new Deno.Command("python3", {
      args: ["-c", SLOW_PYTHON],
      env: { ...PYTHON_ENV, ENGINE_URL: engine.url, OTEL_METRIC_EXPORT_INTERVAL: "500" },
      stdin: "null",
      stderr: "null",
    }).spawn();
    await using _ended = {
      async [Symbol.asyncDispose]() {
        child.kill("SIGKILL");
        await child.status;
      },
    };
    await using caller = engine.connect("caller");
    const hold = { function_id: "slow::hold", payload: {}, timeout_ms: 300 };
    await until(async () => {
      const code = await caller.trigger(hold).then(() => "", (error) => error.code);
      return code === "timeout" || code === "TIMEOUT";
    }, () => engine.stderr);
    void caller.trigger({ function_id: "slow::hold", payload: {} }).catch(() => {});

    let found: { name: string; status: string; message: string }[] = [];
    const check = (name: string) => found.find((each) => each.name === name)!;
    await until(async () => {
      found = JSON.parse((await engine.command("doctor", "--json")).stdout).checks;
      return check("deadlines").status === "warn" && check("threads").status === "warn";
    }, () => JSON.stringify(found));

    assert.match(check("deadlines").message, /slow::hold of slow-python for \d+ s/);
    assert.match(
      check("threads").message,
      /^All threads of slow-python are busy and \d+ calls wait/,
    );
  },
);
