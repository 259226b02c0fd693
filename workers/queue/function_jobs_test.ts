/**
 * What becomes of a call decides about its job.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { FunctionView } from "../../engine/ports/directory.ts";
import type { Job } from "../../engine/ports/queue.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import { InvocationError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { FunctionRunner, Replicas } from "./function_jobs.ts";
import { QueueConfig } from "./settings.ts";

const JOB: Job = {
  id: "1",
  payload: { function_id: "a::b", data: { n: 1 }, timeout_ms: 70 },
  lane: "l",
  priority: 0,
  attempts: 0,
  enqueued_at_ms: 0,
  failures: [],
};

function setup(answer: () => Promise<Json | undefined>, config: Json = {}) {
  const calls: CallRequest<unknown>[] = [];
  const freed: string[] = [];
  const kept: Json[] = [];
  let workers = 1;
  const directory = {
    function: () => {
      if (workers === 0) return undefined;
      return { worker_ids: Array.from({ length: workers }, String) } as unknown as FunctionView;
    },
  };
  const replicas = new Replicas(directory);
  const options = v.parse(QueueConfig, config);
  const runner = new FunctionRunner({
    worker: {
      trigger: (request: CallRequest<unknown>) => {
        calls.push(request);
        return answer();
      },
    } as never,
    replicas,
    clock: { wall: () => 7 },
    options: () => options,
    freed: (key) => void freed.push(key),
    keepResult: (_job, result) => {
      kept.push(result);
      return Promise.resolve();
    },
  });
  const setWorkers = (count: number): void => {
    workers = count;
    replicas.changed({ type: "functions_changed", worker_id: "w", ids_changed: true });
  };
  return { runner, calls, freed, kept, setWorkers, signal: new AbortController().signal };
}

const fails = (body: ErrorBody) => () => Promise.reject(new InvocationError(body, "a::b"));

Deno.test("a job is a call with its payload and timeout", async () => {
  const { runner, calls, signal, kept } = setup(() => Promise.resolve({ ok: true }));

  assert.deepEqual(await runner.run(JOB, signal), { done: true });
  assert.deepEqual(calls, [{ function_id: "a::b", payload: { n: 1 }, timeout_ms: 70, signal }]);
  assert.deepEqual(kept, []);

  const call = { ...JOB.payload as Record<string, Json>, result_ms: 5 };
  await runner.run({ ...JOB, payload: call }, signal);
  assert.deepEqual(kept, [{ ok: true }]);
});

Deno.test("an error of the handler is a failed attempt, with its stack", async () => {
  const stacktrace = "s".repeat(10_000);
  const { runner, signal } = setup(fails({ code: "no_route", message: "no route", stacktrace }));
  const failure = {
    at_ms: 7,
    code: "no_route",
    message: "no route",
    stacktrace: `${"s".repeat(8_000)}…`,
  };
  assert.deepEqual(await runner.run(JOB, signal), { retry: failure, isNow: false });
});

Deno.test("a worker that died is a failed attempt without delay", async () => {
  const { runner, signal } = setup(fails({ code: "invocation_stopped", message: "stopped" }));
  const verdict = await runner.run(JOB, signal);
  assert.equal("retry" in verdict && verdict.isNow, true);
});

Deno.test("a full worker, and one that has just left, are no attempt", async () => {
  const full = setup(fails({ code: "overloaded", message: "full" }));
  assert.deepEqual(await full.runner.run(JOB, full.signal), { wait_ms: 100 });

  const absent = { code: "function_not_found", message: "Function a::b not found" };
  const left = setup(fails(absent));
  left.setWorkers(0);
  assert.deepEqual(await left.runner.run(JOB, left.signal), { wait_ms: 100 });
  // The handler's own call of itself, or another function that is missing.
  const nested = setup(fails({ ...absent, message: "Function c::d not found" }));
  assert.equal("retry" in await nested.runner.run(JOB, nested.signal), true);
});

Deno.test("a job waits without a worker, and for one that has room", async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const { runner, setWorkers, freed, signal } = setup(() => promise, { concurrency_per_worker: 1 });
  setWorkers(0);
  assert.equal(runner.gate(JOB), "default a::b");
  setWorkers(1);
  assert.equal(runner.gate(JOB), undefined);

  const run = runner.run(JOB, signal);
  assert.equal(runner.gate(JOB), "default a::b");
  setWorkers(2);
  assert.equal(runner.gate(JOB), undefined);
  resolve(undefined);
  await run;
  assert.deepEqual(freed, ["default a::b"]);
});
