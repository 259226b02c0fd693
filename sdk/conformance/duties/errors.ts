/**
 * Duties of PROTOCOL 10.3: errors of calls and of handlers.
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
import type { EngineConnection } from "../scripted_engine.ts";

const duties: readonly Duty[] = [
  {
    section: "10.3",
    name: "a failed call raises code, message, ids, stacktrace, details and retryable",
    async check({ engine: { connection } }) {
      const error = {
        code: "out_of_stock",
        message: "Only 2 left",
        stacktrace: "at shop.ts:1",
        details: { left: 2, of: null },
        retryable: true,
      };
      const { call, outcome } = await answeredCall(connection, {
        function_id: "conformance::fails",
      }, { error });
      const { error: raised } = outcome;
      demand(raised !== undefined, "the call did not fail");
      const { code, message, stacktrace, details, retryable, function_id, invocation_id } = raised;
      demandEqual({
        code,
        stacktrace: stacktrace ?? null,
        details: details ?? null,
        retryable: retryable ?? null,
      }, {
        code: error.code,
        stacktrace: error.stacktrace,
        details: error.details,
        retryable: true,
      }, "the raised error");
      const texts = [error.message, `${error.code}: ${error.message}`];
      demand(texts.includes(message), `the message is ${JSON.stringify(message)}`);
      demandEqual(
        [function_id, invocation_id],
        ["conformance::fails", call.invocation_id!],
        "the ids",
      );
    },
  },
  {
    section: "10.3",
    name: "a bare string as error has code UNKNOWN",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::bare_error" };
      const { outcome } = await answeredCall(connection, request, { error: "it broke" });
      demandEqual(outcome.error?.code, "UNKNOWN", "the code");
      demand(
        outcome.error!.message.endsWith("it broke"),
        `the message is ${outcome.error!.message}`,
      );
    },
  },
  {
    section: "10.3",
    name: "a handler's error keeps its code, message, details and retryable",
    async check({ engine: { connection } }) {
      const thrown = {
        code: "sold_out",
        message: "None left",
        details: { left: 0 },
        retryable: true,
      };
      const { error } = await connection.invoke("probe::fail", thrown);
      const { code, message, details, retryable } = (error ?? {}) as JsonObject;
      demandEqual({ code, message, details, retryable } as JsonObject, thrown, "the error");
    },
  },
  {
    section: "10.3",
    name: "any other exception is invocation_failed with its text and stack",
    async check({ engine: { connection } }) {
      const { error } = await connection.invoke("probe::crash", { message: "an odd failure" });
      const { code, message, stacktrace } = (error ?? {}) as JsonObject;
      demandEqual([code, message], ["invocation_failed", "an odd failure"], "code and message");
      demand(typeof stacktrace === "string" && stacktrace !== "", "there is no stacktrace");
    },
  },
  {
    section: "10.3",
    name: "a call is not repeated, also when its error is retryable",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const request = { function_id: "conformance::overloaded" };
      const tag = await startCall(connection, request);
      const call = await connection.expect({ function_id: request.function_id }, from);
      const error = { code: "overloaded", message: "try later", retryable: true };
      connection.answer(call, { error });
      demandEqual((await outcomeOf(connection, tag)).error?.code, "overloaded", "the code");
      await quiet();
      demandEqual(
        connection.received({ function_id: request.function_id }, from).length,
        1,
        "calls",
      );
    },
  },
];

/** What an engine sends for calls that its stop cuts, before it closes the connection. */
const STOPPED = {
  code: "invocation_stopped",
  message: "Invocation stopped",
  details: { reason: "the engine is stopping" },
};

/** Longer than a connection takes to close. */
const REPORT_DELAY_MS = 500;

const bounds: readonly Duty[] = [
  {
    section: "10.5",
    name: "a result of 128 levels is sent; one of 129 fails with serialization_error",
    async check({ engine: { connection } }) {
      const { error } = await connection.invoke("probe::deep", { levels: 128 });
      demand(error === undefined, `128 levels failed: ${JSON.stringify(error)}`);
      await demandRefusal(connection, "probe::deep", { levels: 129 }, "serialization_error");
    },
  },
  {
    section: "10.5",
    name: "a result over 64 MiB fails with serialization_error, and costs no other call",
    check({ engine: { connection } }) {
      const chars = 64 * 1024 * 1024;
      return demandRefusal(connection, "probe::large", { chars }, "serialization_error");
    },
  },
  {
    section: "10.5",
    name: "a frame that is nested too deeply fails its call with bad_message, and no other",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const ids = { invocation_id: crypto.randomUUID(), function_id: "probe::echo" };
      const head = JSON.stringify({ type: "invokefunction", ...ids }).slice(0, -1);
      connection.send(`${head},"data":${"[".repeat(200_000)}${"]".repeat(200_000)}}`);
      const { invocation_id } = ids;
      const { error } = await connection.expect({ type: "invocationresult", invocation_id }, from);
      demandEqual((error as JsonObject | undefined)?.code, "bad_message", "the code");
      const { result } = await connection.invoke("probe::echo", 1);
      demandEqual(result, 1, "the result of a later call");
    },
  },
  {
    section: "10.3",
    name: "a call that is answered before the close ends with that error and its details",
    async check({ engine }) {
      const { connection } = engine;
      const from = connection.frames.mark;
      const request = { function_id: "conformance::cut" };
      // Reported on the next connection: this one is closed with the answer.
      const tag = await startCall(connection, request, { report_delay_ms: REPORT_DELAY_MS });
      const call = await connection.expect({ function_id: request.function_id }, from);
      const connections = engine.connections.mark;
      connection.answer(call, { error: STOPPED });
      connection.close(1001, "the engine is stopping");
      const { error } = await outcomeOf(await engine.next(connections), tag);
      const { code, details } = error ?? {};
      demandEqual({ code, details } as JsonObject, {
        code: STOPPED.code,
        details: STOPPED.details,
      }, "the error");
    },
  },
];

/** Demands that a call fails with a code, and that the next one on the connection does not. */
async function demandRefusal(
  connection: EngineConnection,
  function_id: string,
  payload: JsonObject,
  code: string,
): Promise<void> {
  const { error } = await connection.invoke(function_id, payload);
  demandEqual((error as JsonObject | undefined)?.code, code, "the code");
  const { result } = await connection.invoke("probe::echo", 1);
  demandEqual(result, 1, "the result of a later call");
}

/** The stages of PROTOCOL 10.3 and 10.5. */
export function errorStages(): readonly StagePlan[] {
  return [
    { name: "errors", script: {}, duties },
    { name: "bounds", script: {}, duties: bounds },
  ];
}
