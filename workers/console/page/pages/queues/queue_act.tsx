/**
 * What the views of a queue share: calls that change it, who may make them, payloads, links to
 * traces.
 *
 * @module
 */
import type { VNode } from "preact";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedTrigger } from "../../../wire.ts";
import { JsonView, Link, link, useLive, useShell } from "../../kit/mod.ts";

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

/** The payload of a job, which only operators see. */
export function JobPayload({ payload }: { payload: Json | undefined }): VNode {
  return payload === undefined
    ? <p class="quiet">Payloads are shown to the engine's own user only.</p>
    : <JsonView value={payload} label="Payload" depth={3} />;
}

/** A link to the trace of a job. */
export function traceLink(trace_id: string | undefined): VNode | null {
  return trace_id === undefined
    ? null
    : <Link to={link("/traces", trace_id)} label="Open the trace">trace</Link>;
}
