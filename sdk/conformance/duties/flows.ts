/**
 * Duties of PROTOCOL 10.2: functions, calls, triggers, trigger types, logging.
 *
 * @module
 */
import type { JsonObject } from "../../typescript/wire/protocol.ts";
import {
  answeredCall,
  demand,
  demandEqual,
  type Duty,
  outcomeOf,
  type StagePlan,
  startCall,
} from "../duty.ts";
import { quiet } from "../log.ts";

const LOG_MESSAGE = "a line of the conformance probe";
const TRIGGER_CONFIG = { api_path: "/probe", http_method: "POST" };

/** What a worker may send (PROTOCOL 2). */
const WORKER_MESSAGES = [
  "cancelinvocation",
  "invocationprogress",
  "invocationresult",
  "invokefunction",
  "registerfunction",
  "registertrigger",
  "registertriggertype",
  "triggerregistrationresult",
  "unregisterfunction",
  "unregistertrigger",
  "unregistertriggertype",
];

const served: readonly Duty[] = [
  {
    section: "10.2",
    name: "register function: sends id, description, request_format and metadata",
    async check({ engine: { connection } }) {
      const frame = await connection.expect({ type: "registerfunction", id: "probe::echo" });
      demandEqual(frame.description, "Returns its payload", "description");
      demandEqual(frame.request_format, {}, "request_format");
      demandEqual(frame.metadata, { probe: true }, "metadata");
    },
  },
  {
    section: "10.2",
    name: "types: make request_format and response_format",
    level: "should",
    async check({ engine: { connection } }) {
      const frame = await connection.expect({ type: "registerfunction", id: "probe::typed" });
      const { type, required } = (frame.request_format ?? {}) as JsonObject;
      demandEqual({ type: type!, required: required! }, {
        type: "object",
        required: ["items"],
      }, "request_format");
      const { properties } = (frame.response_format ?? {}) as JsonObject;
      demandEqual(((properties as JsonObject).sum as JsonObject).type, "integer", "type of sum");
    },
  },
  {
    section: "10.2",
    name: "types: a payload or result that does not fit has an error with its path",
    level: "should",
    async check({ engine: { connection } }) {
      const good = await connection.invoke("probe::typed", { items: [{ n: 1 }, { n: 2 }] });
      demandEqual(good.result, { sum: 3 }, "the result");
      for (
        const [payload, code, path] of [
          [{ items: [{ n: 1 }, { n: "2" }] }, "invalid_payload", "/items/1/n"],
          [{ items: [], wrong: true }, "invalid_result", "/sum"],
        ] as const
      ) {
        const { error } = await connection.invoke("probe::typed", payload as unknown as JsonObject);
        const body = (error ?? {}) as JsonObject;
        demandEqual(body.code, code, "the code");
        const errors = (body.details as JsonObject | undefined)?.errors as JsonObject[] | undefined;
        demandEqual(errors?.map((each) => each.path), [path], "the paths");
        demand(typeof errors?.[0]?.message === "string", "an error has no message");
      }
    },
  },
  {
    section: "10.2",
    name: "be called: answers exactly once, with the same id",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const { invocation_id } = await connection.invoke("probe::echo", [1]);
      const fields = { type: "invocationresult", invocation_id: invocation_id! };
      const results = await connection.receivedAfterQuiet(fields, from);
      demandEqual(results.map(({ result }) => result), [[1]], "the results");
      demandEqual(results[0]!.function_id, "probe::echo", "function_id");
    },
  },
  {
    section: "10.2",
    name: "be called: leaves result out when the handler returns nothing",
    async check({ engine: { connection } }) {
      const frame = await connection.invoke("probe::nothing");
      demand(!("error" in frame) && !("result" in frame), JSON.stringify(frame));
    },
  },
  {
    section: "10.2",
    name: "be called: passes metadata to the handler",
    async check({ engine: { connection } }) {
      const metadata = { why: "a test" };
      const { result } = await connection.invoke("probe::metadata", null, { metadata });
      demandEqual(result, metadata, "the metadata of the handler");
    },
  },
  {
    section: "10.2",
    name: "be called: without an id, runs the handler and sends no result",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const tag = crypto.randomUUID();
      connection.send({ type: "invokefunction", function_id: "probe::note", data: { tag } });
      await connection.expect({ function_id: "conformance::noted", data: { tag } }, from);
      const results = await connection.receivedAfterQuiet({ type: "invocationresult" }, from);
      demandEqual(results.length, 0, "results");
    },
  },
  {
    section: "10.2",
    name: "be called: answers function_not_found for an id it does not have",
    async check({ engine: { connection } }) {
      const { error } = await connection.invoke("probe::missing");
      const { code, message } = (error ?? {}) as JsonObject;
      demandEqual([code, message], ["function_not_found", "Function not found"], "the error");
    },
  },
  {
    section: "10.2",
    name: "be called: runs invocations concurrently (3.2)",
    async check({ engine: { connection } }) {
      const waiting = [1, 2].map((tag) => connection.invokeOnly("probe::wait", { tag }));
      const { result } = await connection.invoke("probe::echo", "meanwhile");
      demandEqual(result, "meanwhile", "the result");
      for (const invocation_id of waiting) {
        connection.send({ type: "cancelinvocation", invocation_id });
      }
    },
  },
  {
    section: "10.2",
    name: "be called: echoes traceparent and baggage in the result (2.10)",
    async check({ engine: { connection } }) {
      const trace = {
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        baggage: "tenant=a",
      };
      const { traceparent, baggage } = await connection.invoke("probe::echo", 1, trace);
      demandEqual([traceparent, baggage], [trace.traceparent, trace.baggage], "the trace context");
    },
  },
];

const calling: readonly Duty[] = [
  {
    section: "10.2",
    name: "call: sends an id, function_id, data and metadata",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::call", payload: { a: 1 }, metadata: { m: 2 } };
      const { call, outcome } = await answeredCall(connection, request, { result: { sum: 3 } });
      demand(typeof call.invocation_id === "string", "the call has no invocation_id");
      demand(!call.action, "a plain call has an action");
      demandEqual([call.data, call.metadata], [{ a: 1 }, { m: 2 }], "data and metadata");
      demandEqual(outcome.result, { sum: 3 }, "the result");
    },
  },
  {
    section: "10.2",
    name: "call: sends no data key without a payload",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::bare" };
      const { call, outcome } = await answeredCall(connection, request, {});
      demand(!("data" in call), "the call has data");
      demand(outcome.ok && !("result" in outcome), "an absent result is not undefined or None");
    },
  },
  {
    section: "10.2",
    name: "call: accepts a result whose function_id is another one",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::renamed" };
      const { outcome } = await answeredCall(connection, request, {
        function_id: "x::y",
        result: 1,
      });
      demandEqual(outcome.result, 1, "the result");
    },
  },
  {
    section: "10.2",
    name: "void: sends no id and action void, and resolves without an answer",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::void", payload: 1, action: { type: "void" } };
      const tag = await startCall(connection, request);
      const call = await connection.expect({ function_id: "conformance::void" });
      demand(!call.invocation_id, "the call has an id");
      demandEqual(call.action, { type: "void" }, "action");
      const { ok } = await outcomeOf(connection, tag);
      demand(ok, "the call failed");
    },
  },
  {
    section: "10.2",
    name: "enqueue: sends an id and the queue, and returns the receipt unchanged",
    async check({ engine: { connection } }) {
      const action = { type: "enqueue", queue: "mails" };
      const request = { function_id: "conformance::enqueue", payload: 1, action };
      const receipt = { messageReceiptId: crypto.randomUUID() };
      const { call, outcome } = await answeredCall(connection, request, { result: receipt });
      demandEqual(call.action, action, "action");
      demandEqual(outcome.result, receipt, "the result");
    },
  },
];

const triggers: readonly Duty[] = [
  {
    section: "10.2",
    name: "trigger: sends registertrigger with config and metadata",
    async check({ engine: { connection } }) {
      const frame = await connection.expect({ type: "registertrigger", trigger_type: "http" });
      demand(typeof frame.id === "string" && frame.id !== "", "the trigger has no id");
      demandEqual(frame.function_id, "probe::echo", "function_id");
      demandEqual(frame.config, TRIGGER_CONFIG, "config");
      demandEqual(frame.metadata, { from: "probe" }, "metadata");
    },
  },
  {
    section: "10.2",
    name: "trigger refused: prints the registration's error, and throws nothing",
    async check({ engine: { connection }, probe }) {
      const { id, trigger_type, function_id } = await connection.expect({
        type: "registertrigger",
        trigger_type: "http",
      });
      const error = { code: "trigger_registration_failed", message: "no such path" };
      const ids = { id: id!, trigger_type: trigger_type!, function_id: function_id! };
      connection.send({ type: "triggerregistrationresult", ...ids, error });
      const text = `[engine] Trigger registration failed for "${id}" (http): no such path`;
      await probe.output.first(`a line with ${text}`, (line) => line.includes(text));
    },
  },
  {
    section: "10.2",
    name: "trigger type: starts a trigger and answers without error",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const registered = await connection.expect({
        type: "registertriggertype",
        id: "probe-watch",
      });
      demandEqual(registered.description, "A type of the probe", "description");
      connection.send(watch("t1", { config: { directory: "in" }, metadata: { m: 1 } }));
      const started = await connection.expect(
        { function_id: "conformance::trigger_started" },
        from,
      );
      const data = {
        id: "t1",
        function_id: "a::b",
        config: { directory: "in" },
        metadata: { m: 1 },
      };
      demandEqual(started.data, data, "what the provider's handler got");
      const answer = await connection.expect({ type: "triggerregistrationresult", id: "t1" }, from);
      demand(!answer.error, `the answer has an error: ${JSON.stringify(answer.error)}`);
      demandEqual([answer.trigger_type, answer.function_id], ["probe-watch", "a::b"], "the answer");
    },
  },
  {
    section: "10.2",
    name: "trigger type: answers trigger_registration_failed when its handler throws (2.7)",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      connection.send(watch("t2", { config: { refuse: "no such directory" } }));
      const { error } = await connection.expect(
        { type: "triggerregistrationresult", id: "t2" },
        from,
      );
      const { code, message } = (error ?? {}) as JsonObject;
      demandEqual(code, "trigger_registration_failed", "the code");
      demandEqual(message, "no such directory", "the message");
    },
  },
  {
    section: "10.2",
    name: "trigger type: answers trigger_type_not_found for a type it does not have",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      connection.send({ ...watch("t3", {}), trigger_type: "probe-missing" });
      const { error } = await connection.expect(
        { type: "triggerregistrationresult", id: "t3" },
        from,
      );
      const { code, message } = (error ?? {}) as JsonObject;
      demandEqual(
        [code, message],
        ["trigger_type_not_found", "Trigger type not found"],
        "the error",
      );
    },
  },
  {
    section: "10.2",
    name: "trigger type: stops a trigger found by its id alone, and does not answer (2.8)",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      connection.send({ type: "unregistertrigger", id: "t1", trigger_type: "probe-watch" });
      const fields = { function_id: "conformance::trigger_stopped", data: { id: "t1" } };
      await connection.expect(fields, from);
      const answers = await connection.receivedAfterQuiet(
        { type: "triggerregistrationresult" },
        from,
      );
      demandEqual(answers.length, 0, "answers");
    },
  },
  {
    section: "10.2",
    name: "unregister: sends unregisterfunction, unregistertrigger and unregistertriggertype",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const trigger = await connection.expect({ type: "registertrigger", trigger_type: "http" });
      for (const what of ["function", "trigger", "trigger_type"]) {
        await connection.invoke("probe::unregister", { what });
      }
      await connection.expect({ type: "unregisterfunction", id: "probe::extra" }, from);
      await connection.expect({ type: "unregistertrigger", id: trigger.id! }, from);
      await connection.expect({ type: "unregistertriggertype", id: "probe-watch" }, from);
      const { error } = await connection.invoke("probe::extra");
      demandEqual((error as JsonObject | undefined)?.code, "function_not_found", "a later call");
    },
  },
];

const logging: readonly Duty[] = [
  {
    section: "10.2",
    name: "logger: sends LOGS on /otel, and nothing on /",
    async check({ engine }) {
      const { connection } = engine;
      const otel = await engine.telemetry.first("a connection of /otel", () => true);
      const from = connection.frames.mark;
      await connection.invoke("probe::log", { message: LOG_MESSAGE });
      await otel.binaries.first("a LOGS frame with the line", (bytes) => {
        const text = new TextDecoder().decode(bytes);
        return text.startsWith("LOGS{") && text.includes(LOG_MESSAGE);
      });
      await quiet();
      const calls = connection.frames.matching(
        ({ message }) => String(message.function_id).startsWith("engine::log::"),
        from,
      );
      demandEqual(calls.length, 0, "calls of engine::log::*");
    },
  },
];

const frames: readonly Duty[] = [
  {
    section: "10.2",
    name: "sends only messages of section 2, one JSON object per frame",
    check({ engine: { connection } }) {
      const odd = connection.frames.entries.filter(({ message }) =>
        !WORKER_MESSAGES.includes(String(message.type))
      );
      demand(odd.length === 0, `an odd frame: ${odd[0]?.text.slice(0, 200)}`);
      return Promise.resolve();
    },
  },
];

/** The stage of PROTOCOL 10.2. */
export function flowStages(): readonly StagePlan[] {
  return [{
    name: "flows",
    script: {},
    duties: [...served, ...calling, ...triggers, ...logging, ...frames],
  }];
}

function watch(id: string, fields: JsonObject): JsonObject {
  return {
    type: "registertrigger",
    id,
    trigger_type: "probe-watch",
    function_id: "a::b",
    ...fields,
  };
}
