/**
 * `engine-stream`: items by stream and group, stored, with an event for every change.
 *
 * `functions.ts` has `stream::*`, `payloads.ts` their payloads, `items.ts` the items on the store,
 * `overrides.ts` the functions of workers that replace it, `triggers.ts` the trigger type.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { AnswerMemory } from "../state/answers.ts";
import { Expiry } from "../state/expiry.ts";
import { ChangeTriggers } from "../state/triggers.ts";
import { registerFunctions, StreamFunctions } from "./functions.ts";
import { type StreamEvent, streamItems } from "./items.ts";
import { Overrides } from "./overrides.ts";
import { STREAM_CALL_FORMAT, STREAM_TRIGGER_FORMAT, STREAM_TRIGGERS } from "./triggers.ts";

const Config = v.strictObject({});

/** Keeps items, and passes their changes on. */
export const stream: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: "engine-stream",
  summary: "Items by stream and group, with live events",
  offers: { functions: ["stream::*"], triggerTypes: ["stream"] },
  parse: (raw) => fitConfig(Config, raw),
  start(worker, _config, { store, clock, log, memory, directory }) {
    const started = new AsyncDisposableStack();
    const triggers = started.adopt(
      new ChangeTriggers<StreamEvent>({ kind: STREAM_TRIGGERS, worker, log, clock, memory }),
      (it) => it.close(),
    );
    const emit = (event: StreamEvent, bytes: number): void => triggers.fire(event, bytes);
    const entries = streamItems({
      store,
      clock,
      changed: emit,
      expires: (atMs) => expiry.schedule(atMs),
    });
    const expiry = started.use(new Expiry({ clock, log, entries }));
    registerFunctions(
      worker,
      new StreamFunctions({
        entries,
        expiry,
        clock,
        answers: new AnswerMemory(memory, clock),
        overrides: new Overrides({ worker, directory }),
        isBehind: () => triggers.isBehind,
        emit,
      }),
    );
    worker.registerTriggerType({
      id: "stream",
      description: "Runs a function for events of a stream, a group or an item",
      trigger_request_format: STREAM_TRIGGER_FORMAT,
      call_request_format: STREAM_CALL_FORMAT,
    }, {
      registerTrigger: (trigger) => triggers.add(trigger),
      unregisterTrigger: ({ id }) => triggers.remove(id),
    });
    void expiry.sweep();
    return Promise.resolve(started);
  },
};
