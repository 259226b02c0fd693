/**
 * Where a test engine offers its connection to `registerWorker()`.
 *
 * It is a property of the global object, because `engine-sdk` and `engine-sdk/testing` are built as
 * modules of their own, which share nothing else.
 *
 * @module
 */
import type { WorkerClock } from "../typescript/platform.ts";
import type { Dial } from "../typescript/wire/transport.ts";

/** How a worker connects to a test engine. */
export interface TestConnection {
  readonly dial: Dial;
  readonly clock: WorkerClock;
}

const KEY = Symbol.for("engine-sdk.testing");

/** The connection of the test engine that was started last and runs; `undefined` without one. */
export function testConnection(): TestConnection | undefined {
  return (globalThis as { [KEY]?: TestConnection[] })[KEY]?.at(-1);
}

/** Offers a connection; the returned function takes it back. */
export function offerConnection(connection: TestConnection): () => void {
  const offered = (globalThis as { [KEY]?: TestConnection[] })[KEY] ??= [];
  offered.push(connection);
  return () => {
    const at = offered.indexOf(connection);
    if (at >= 0) offered.splice(at, 1);
  };
}
