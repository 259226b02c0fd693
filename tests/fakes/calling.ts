/**
 * Calls between two lines of a fake router, in a few words each.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { RouterSettings } from "../../engine/core/router.ts";
import type { EngineMessage, InvokeFunction } from "../../sdk/typescript/wire/protocol.ts";
import { type FakeRouter, fakeRouter, type FakeWorker } from "./fake_router.ts";

/** A call as a worker gets it. */
export type HandedCall = InvokeFunction & { invocation_id: string };

const ALL = ["cancel", "timeout", "progress"];

/** A router with somebody who offers and somebody who calls. */
export interface Calling extends FakeRouter {
  readonly worker: FakeWorker;
  readonly caller: FakeWorker;
}

/** A worker that offers `f` and a caller; both announced that they can do everything. */
export function calling(
  settings: Partial<RouterSettings> = {},
  observe?: Parameters<typeof fakeRouter>[1],
): Calling {
  const engine = fakeRouter(settings, observe);
  const worker = engine.open();
  announce(worker);
  worker.say({ type: "registerfunction", id: "f" });
  const caller = engine.open();
  announce(caller);
  return { ...engine, worker, caller };
}

/** Says who speaks, and what it can do. */
export function announce(line: FakeWorker, capabilities = ALL): void {
  const data = { name: "w", capabilities };
  line.say({ type: "invokefunction", function_id: "engine::workers::register", data });
}

/** Makes a call of `f`, or of whatever `fields` say. */
export function call(
  line: FakeWorker,
  invocation_id: string,
  fields: Partial<InvokeFunction> = {},
): void {
  line.say({ type: "invokefunction", invocation_id, function_id: "f", data: 1, ...fields });
}

/** The calls a worker was handed since last time. */
export function handed({ connection }: FakeWorker): HandedCall[] {
  return connection.take().filter((message) => message.type === "invokefunction")
    .map((message) => message as HandedCall);
}

/** Ends a call that a worker was handed. */
export function answer(line: FakeWorker, invocation_id: string, result: unknown = "done"): void {
  line.say({ type: "invocationresult", invocation_id, function_id: "f", result });
}

/** The results of a caller since last time: the value or the error, by its id. */
export function results({ connection }: FakeWorker): Record<string, unknown> {
  return Object.fromEntries(
    connection.take().filter((message) => message.type === "invocationresult")
      .map(({ invocation_id, error, result }) => [invocation_id, error?.code ?? result]),
  );
}

/** The one message that a line was sent since last time. */
export function only({ connection }: FakeWorker): EngineMessage {
  const messages = connection.take();
  assert.equal(messages.length, 1);
  return messages[0]!;
}
