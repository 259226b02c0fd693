/**
 * A Python worker on the real engine, both as programs: what one language sends the other gets.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const WORKER = `
import asyncio, sys, threading
from engine_sdk import EngineError, InitOptions, Logger, TriggerAction, register_worker

worker = register_worker(options=InitOptions(worker_name="python-worker"))
cancelled, fired, watched = [], [], []
meeting = threading.Barrier(3)

def raises(payload):
    raise EngineError("sold_out", "Only 2 left", {"left": 2})

def total(payload):
    place = {"scope": "py", "key": "total"}
    old = worker.trigger({"function_id": "state::get", "payload": place}) or 0
    worker.trigger({"function_id": "state::set", "payload": {**place, "value": old + payload}})
    return old + payload

async def passes_on(payload):
    return await worker.trigger_async({"function_id": "ts::echo", "payload": payload})

async def slow(payload, metadata, context):
    context.progress({"started": True})
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled.append(context.cancel_reason)
        raise

def left(payload, metadata, context):
    return [context.timeout_ms, context.traceparent, metadata]

class Watch:
    def register_trigger(self, trigger):
        if "bad" in trigger.config:
            raise ValueError("no such directory")
        watched.append(trigger.id)
        worker.trigger({
            "function_id": trigger.function_id,
            "payload": {"saw": trigger.config["directory"]},
            "action": TriggerAction.Void(),
        })

    async def unregister_trigger(self, trigger):
        watched.remove(trigger.id)

functions = {
    "py::none": lambda payload: None,
    "py::nan": lambda payload: float("nan"),
    "py::bug": lambda payload: payload["missing"],
    "py::exit": lambda payload: sys.exit(1),
    "py::raises": raises,
    "py::total": total,
    "py::passes_on": passes_on,
    "py::slow": slow,
    "py::left": left,
    "py::cancelled": lambda payload: cancelled,
    "py::fired": lambda payload: fired,
    "py::watched": lambda payload: watched,
    "py::note": fired.append,
    "py::meet": lambda payload: meeting.wait(60) >= 0,
    "py::echo": lambda payload: payload,  # The last: once it answers, all are registered.
}
worker.register_trigger_type({"id": "py-watch", "description": "Watches a directory"}, Watch())
schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}
worker.register_function("py::checked", lambda payload: payload["n"], request_format=schema)
for id, handler in functions.items():
    worker.register_function(id, handler)
Logger().info("registered")
print("ready", flush=True)
`;

function python(
  args: string[],
  stderr: "null" | "inherit",
  env: Record<string, string> = {},
): Deno.ChildProcess {
  return new Deno.Command("python3", {
    args,
    env: { ...PYTHON_ENV, PYTHONUNBUFFERED: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr,
  }).spawn();
}

/** An engine, the Python worker on it, and a TypeScript worker to talk to it. */
async function setup(): Promise<
  AsyncDisposable & { engine: EngineProcess; worker: Worker; child: Deno.ChildProcess }
> {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await EngineProcess.start());
  const child = python(["-c", WORKER], "inherit", { ENGINE_URL: engine.url });
  stack.defer(async () => {
    try {
      child.kill("SIGTERM");
    } catch {
      // It has ended by itself.
    }
    await child.status;
    await child.stdout.cancel();
  });
  const worker = stack.use(engine.connect());
  await until(async () => {
    return await worker.trigger({ function_id: "py::echo", payload: 1 }) === 1;
  }, () => engine.stderr);
  return { engine, worker, child, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const ignore = !await findPython("tests/e2e/python_test.ts");

Deno.test({ ignore, name: "Python: values arrive unchanged in both directions" }, async () => {
  await using side = await setup();
  const values: Json[] = [
    null,
    [],
    { a: [null, { b: "żółć 🚀" }] },
    1.5,
    "line\nbreak",
    "x".repeat(8 * 1024 * 1024),
  ];

  for (const payload of values) {
    const back = await side.worker.trigger({ function_id: "py::echo", payload });
    assert.deepEqual(back ?? null, payload);
  }
  assert.equal(await side.worker.trigger({ function_id: "py::none" }), undefined);
});

Deno.test({ ignore, name: "Python: the caller gets the error of a handler" }, async () => {
  await using side = await setup();
  const call = (function_id: string) => side.worker.trigger({ function_id, payload: {} });

  await assert.rejects(call("py::raises"), { code: "sold_out", details: { left: 2 } });
  await assert.rejects(call("py::bug"), (error: Error & { code: string; stacktrace: string }) => {
    assert.deepEqual([error.code, error.message], [
      "invocation_failed",
      "invocation_failed: KeyError: 'missing'",
    ]);
    assert.match(error.stacktrace, /Traceback/);
    return true;
  });
  await assert.rejects(call("py::nan"), { code: "serialization_error" });
  await assert.rejects(call("py::exit"), { code: "invocation_failed" });
  await assert.rejects(call("py::checked"), { code: "invalid_payload" });
  assert.equal(await side.worker.trigger({ function_id: "py::checked", payload: { n: 7 } }), 7);
});

Deno.test(
  { ignore, name: "Python: handlers call other workers and the engine's own" },
  async () => {
    await using side = await setup();
    side.worker.registerFunction("ts::echo", (payload) => payload);

    const passed = side.worker.trigger({ function_id: "py::passes_on", payload: [1] });
    assert.deepEqual(await passed, [1]);
    assert.equal(await side.worker.trigger({ function_id: "py::total", payload: 5 }), 5);
    assert.equal(await side.worker.trigger({ function_id: "py::total", payload: 7 }), 12);
  },
);

Deno.test({ ignore, name: "Python: sync handlers run side by side" }, async () => {
  await using side = await setup();

  // Each handler waits for the other ones.
  const calls = [1, 2, 3].map(() => side.worker.trigger({ function_id: "py::meet" }));

  assert.deepEqual(await Promise.all(calls), [true, true, true]);
});

Deno.test(
  { ignore, name: "Python: progress comes, and a cancel reaches the handler" },
  async () => {
    await using side = await setup();
    const abort = new AbortController();
    const call = side.worker.trigger({
      function_id: "py::slow",
      signal: abort.signal,
      onProgress: (data) => {
        assert.deepEqual(data, { started: true });
        abort.abort(new Error("user left"));
      },
    });

    await assert.rejects(call, { code: "cancelled" });
    await until(async () => {
      const reasons = await side.worker.trigger({ function_id: "py::cancelled" });
      return Array.isArray(reasons) && reasons[0] === "user left";
    });
  },
);

Deno.test({ ignore, name: "Python: a handler knows its deadline and its metadata" }, async () => {
  await using side = await setup();

  const told = await side.worker.trigger({
    function_id: "py::left",
    timeout_ms: 60_000,
    metadata: { tenant: "a" },
  });

  assert.ok(Array.isArray(told));
  assert.ok(Number(told[0]) > 0 && Number(told[0]) <= 60_000, String(told[0]));
  assert.deepEqual(told[2], { tenant: "a" });
  await assert.rejects(side.worker.trigger({ function_id: "py::slow", timeout_ms: 50 }), {
    code: "timeout",
  });
});

Deno.test({ ignore, name: "Python: a trigger type it provides calls a function" }, async () => {
  await using side = await setup();
  const watched = async () => await side.worker.trigger({ function_id: "py::watched" }) as Json[];

  const target = { type: "py-watch", function_id: "py::note" };
  const trigger = side.worker.registerTrigger({ ...target, config: { directory: "inbox" } });
  side.worker.registerTrigger({ ...target, config: { bad: true } });

  await until(async () => {
    const fired = await side.worker.trigger({ function_id: "py::fired" });
    return JSON.stringify(fired) === '[{"saw":"inbox"}]';
  });
  assert.deepEqual(await watched(), [trigger.id]);
  trigger.unregister();
  await until(async () => (await watched()).length === 0);
});

Deno.test(
  { ignore, name: "Python: a worker reconnects to an engine that was killed" },
  async () => {
    await using side = await setup();

    await side.engine.kill("SIGKILL");
    await side.engine.start();

    await until(async () => {
      const request = { function_id: "py::echo", payload: "back", timeout_ms: 2_000 };
      return await side.worker.trigger(request) === "back";
    });
  },
);

Deno.test(
  { ignore, name: "Python: Ctrl-C ends a worker quietly, and its calls at once" },
  async () => {
    await using side = await setup();
    const call = side.worker.trigger({
      function_id: "py::slow",
      onProgress: () => side.child.kill("SIGINT"),
    });

    await assert.rejects(call, { code: "invocation_stopped" });
    assert.equal((await side.child.status).code, 0);
    await assert.rejects(side.worker.trigger({ function_id: "py::echo" }), {
      code: "function_not_found",
    });
  },
);
