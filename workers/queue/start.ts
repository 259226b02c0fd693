/**
 * Runs `engine-queue`: jobs that are kept on disk and given to functions, at least once.
 *
 * `functions.ts` implements `engine::queue::*`. `named_queues.ts` has the queues of the
 * configuration, `declared_queues.ts` those of functions, `function_jobs.ts` makes a call of a job.
 * Below, `queues.ts` is the interface of `engine/ports/queue.ts` on the store: `job_queue.ts` gives
 * the jobs of one queue out, `job_store.ts` is their layout.
 *
 * @module
 */
import type { Worker } from "../../sdk/typescript/worker.ts";
import { DRAIN_MS, type EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import { DeclaredQueues, QUEUE_TRIGGER_FORMAT } from "./declared_queues.ts";
import { Replicas } from "./function_jobs.ts";
import { QueueFunctions } from "./functions.ts";
import { JobResults } from "./job_results.ts";
import { NamedQueues } from "./named_queues.ts";
import { openQueues } from "./queues.ts";
import { QueueConfig, type QueuesConfig } from "./settings.ts";
import { Topics } from "./topics.ts";

/** Between two looks at kept results whose time is over. */
const SWEEP_MS = 60_000;

/** Keeps jobs in the store of the engine and gives them to functions. */
export async function startQueue(
  worker: Worker,
  config: QueuesConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  const { store, clock, log, memory, directory } = host;
  const queues = started.use(
    await openQueues({ store, clock, log, memory, random: Math.random }),
  );
  const replicas = new Replicas(directory);
  const results = new JobResults(store, clock);
  const named = new NamedQueues({ worker, clock, queues, replicas, results });
  const all = { default: v.parse(QueueConfig, {}), ...config.queues };
  for (const [name, options] of Object.entries(all)) await named.add(name, options);
  started.defer(host.onEvent((event) => {
    if (replicas.changed(event)) { for (const name of named.names) queues.wake(name); }
  }));
  started.defer(sweepOften(results, host));
  const drained = drainOnce(() => queues.drain(), host);
  host.draining.addEventListener("abort", () => host.delayStop(drained()), { once: true });
  started.defer(drained);
  const topics = new Topics({ store, named, directory });
  await topics.start();
  const configured = new Set(Object.keys(all));
  const declared = new DeclaredQueues({ store, named, directory, configured });
  await declared.start();
  new QueueFunctions({ named, queues, results, topics, directory }).register(worker);
  registerTriggerTypes(worker, topics, declared);
  return started;
}

function registerTriggerTypes(
  worker: Pick<Worker, "registerTriggerType">,
  topics: Topics,
  declared: DeclaredQueues,
): void {
  worker.registerTriggerType({
    id: "queue",
    description: "Declares a queue of the function: how its jobs are given out",
    trigger_request_format: QUEUE_TRIGGER_FORMAT,
  }, {
    registerTrigger: (trigger) => declared.add(trigger),
    unregisterTrigger: ({ id }) => declared.remove(id),
  });
  worker.registerTriggerType({
    id: "durable:subscriber",
    description: "Runs a function for each message of a durable topic, at least once",
    trigger_request_format: {
      type: "object",
      properties: {
        topic: { type: "string" },
        condition_function_id: { type: ["string", "null"] },
        queue_config: { type: ["object", "null"] },
      },
      required: ["topic"],
    },
    call_request_format: {},
  }, {
    registerTrigger: (trigger) => topics.add(trigger),
    unregisterTrigger: ({ id }) => topics.remove(id),
  });
}

/** Lets running jobs finish, for as long as an engine that stops waits for calls. */
function drainOnce(drain: () => Promise<void>, { clock }: EngineHost): () => Promise<void> {
  let drained: Promise<void> | undefined;
  return () =>
    drained ??= new Promise<void>((resolve) => {
      const cancel = clock.after(DRAIN_MS, resolve);
      void drain().then(() => {
        cancel();
        resolve();
      });
    });
}

/** Removes results whose time is over, until the result is called. */
function sweepOften(results: JobResults, { clock, log }: EngineHost): () => Promise<void> {
  let sweeping = Promise.resolve();
  let cancel: () => void;
  let isEnding = false;
  const later = (): void => {
    cancel = clock.after(SWEEP_MS, () => {
      sweeping = results.sweep().catch((thrown) => {
        log.warn("old results of jobs cannot be removed", { reason: String(thrown) });
      }).finally(() => isEnding || later());
    });
  };
  later();
  return async () => {
    isEnding = true;
    cancel();
    await sweeping;
  };
}
