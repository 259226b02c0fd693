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

/** The stage of PROTOCOL 10.3. */
export function errorStages(): readonly StagePlan[] {
  return [{ name: "errors", script: {}, duties }];
}
