/**
 * A provider of a trigger type and a worker that registers triggers of it, on one router.
 *
 * @module
 */
import { type FakeRouter, fakeRouter, type FakeWorker } from "./fake_router.ts";

/** A type that a worker provides. */
export const TYPE = { type: "registertriggertype", id: "file-watch", description: "Files" };
/** A trigger of that type. */
export const TRIGGER = {
  type: "registertrigger",
  id: "t1",
  trigger_type: "file-watch",
  function_id: "docs::index",
  config: { dir: "inbox" },
};

/** A router and the two workers that a trigger concerns. */
export interface TriggerSetup extends FakeRouter {
  readonly provider: FakeWorker;
  readonly originator: FakeWorker;
}

/** A router with a provider of the type and a worker that may register triggers. */
export function setup(builtin: string | null = null): TriggerSetup {
  const engine = fakeRouter();
  const provider = engine.open({ builtin });
  provider.say(TYPE);
  return { ...engine, provider, originator: engine.open() };
}

/** What a line was sent since last time: the kind and the id of each trigger message. */
export function told({ connection }: FakeWorker): string[] {
  return connection.take().map((message) => `${message.type} ${"id" in message ? message.id : ""}`);
}

/** The provider says what became of a trigger. */
export function answers(
  provider: FakeWorker,
  id: string,
  error?: { code: string; message: string },
): void {
  const { trigger_type, function_id } = TRIGGER;
  provider.say({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
}
