/**
 * Tests of workers without an engine: one in the process, whose functions are faked and whose time
 * the test controls.
 *
 * @example A job that is repeated after a failure
 * ```ts
 * import { registerWorker } from "engine-sdk";
 * import { startTestEngine } from "engine-sdk/testing";
 *
 * await using engine = startTestEngine();
 * let attempts = 0;
 * registerWorker().registerFunction("mail::send", () => {
 *   if (++attempts < 2) throw new Error("busy");
 * });
 *
 * await engine.enqueue("mail::send", { to: "a@b.c" });
 * await engine.advance(1_000); // the delay before the second attempt
 *
 * console.log(engine.jobs()[0]?.state); // "done"
 * ```
 *
 * @module
 */
export {
  type FakeFunction,
  type FakeImplementation,
  startTestEngine,
  type TestCallOptions,
  TestEngine,
  type TestEngineOptions,
  type TestEnqueueOptions,
} from "./engine.ts";
export type { TestClock } from "./clock.ts";
export type { TestRequest, TestResponse } from "./http.ts";
export type { TestJob } from "./queues.ts";
export type { SeenCall } from "./routing.ts";
