/**
 * What the views of a queue share: calls that change it, who may make them, links to traces.
 *
 * @module
 */
import type { VNode } from "preact";
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedTrigger } from "../../../wire.ts";
import { Code, Link, link, useLive, useShell } from "../../kit/mod.ts";

/** Nothing fires when a job begins or ends, so lists of jobs are asked for again now and then. */
export const ON: readonly WatchedTrigger[] = [
  { type: "engine::metrics-sampled", config: { interval_ms: 2_000 } },
];

/** Calls a function of the queue and says what came of it. */
export type Act = (
  name: string,
  payload: JsonObject,
  said: (answer: JsonObject) => string,
) => Promise<boolean>;

/** `mayAct`: the page is an operator's. */
export function useAct(queue: string, done: () => void): { act: Act; mayAct: boolean } {
  const live = useLive();
  const { toasts } = useShell();
  const act: Act = async (name, payload, said) => {
    try {
      const answer = await live.call(`engine::queue::${name}`, { queue, ...payload });
      toasts.show("ok", said(answer as JsonObject));
      done();
      return true;
    } catch (thrown) {
      toasts.fail(`engine::queue::${name} failed`, thrown);
      return false;
    }
  };
  return { act, mayAct: live.status.value.operator };
}

/** Why the buttons are disabled. */
export function ReadOnlyNotice(): VNode | null {
  if (useLive().status.value.connection !== "open") return null;
  return (
    <p class="quiet">
      This page may only look. To pause queues and retry jobs, open it with{" "}
      <Code>engine console --open</Code>
    </p>
  );
}

/** A link to the trace of a job. */
export function traceLink(trace_id: string | undefined): VNode | null {
  return trace_id === undefined
    ? null
    : <Link to={link("/traces", trace_id)} label="Open the trace">trace</Link>;
}
