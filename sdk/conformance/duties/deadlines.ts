/**
 * Duties of PROTOCOL 10.4: deadlines, cancellation, progress.
 *
 * @module
 */
import type { JsonObject } from "../../typescript/wire/protocol.ts";
import {
  answeredCall,
  demand,
  demandEqual,
  type Duty,
  type Outcome,
  outcomeOf,
  type StagePlan,
  startCall,
} from "../duty.ts";
import { quiet } from "../log.ts";
import type { EngineConnection } from "../scripted_engine.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
/** A call may wait for so long before it is written. */
const SENT_LATE_MS = 5_000;
const CALL_TIMEOUT_MS = 400;
/** Early in the SDK's grace of 1 000 ms. */
const EARLY_ANSWER_MS = 100;
/** Far behind the deadline, for an SDK that does not wait. */
const LATE_ANSWER_MS = 2_000;
const TIMEOUT_TEXT = `invocation timed out after ${CALL_TIMEOUT_MS}ms`;

const deadlines: readonly Duty[] = [
  {
    section: "10.4",
    name: "sends the default timeout of 30 000 ms",
    async check({ engine: { connection } }) {
      const request = { function_id: "conformance::default_timeout" };
      const { call } = await answeredCall(connection, request, {});
      const sent = Number(call.timeout_ms);
      const fits = sent <= DEFAULT_TIMEOUT_MS && sent > DEFAULT_TIMEOUT_MS - SENT_LATE_MS;
      demand(fits, `timeout_ms is ${call.timeout_ms}`);
    },
  },
  {
    section: "10.4",
    name: "a call in a handler inherits the handler's deadline",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const request = { function_id: "conformance::nested" };
      connection.invokeOnly("probe::call", { request }, { timeout_ms: 5_000 });
      const call = await connection.expect({ function_id: request.function_id }, from);
      const sent = Number(call.timeout_ms);
      demand(sent > 0 && sent <= 5_000, `timeout_ms is ${call.timeout_ms}`);
      connection.answer(call, {});
    },
  },
  {
    section: "10.4",
    name: "a call in a handler keeps its own timeout if that is shorter",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const request = { function_id: "conformance::shorter", timeout_ms: 2_000 };
      connection.invokeOnly("probe::call", { request }, { timeout_ms: 20_000 });
      const call = await connection.expect({ function_id: request.function_id }, from);
      demand(Number(call.timeout_ms) <= 2_000, `timeout_ms is ${call.timeout_ms}`);
      connection.answer(call, {});
    },
  },
  {
    section: "10.4",
    name: "waits 1 000 ms beyond the deadline for the engine's own error",
    async check({ engine: { connection } }) {
      const { outcome } = await lateAnswer(connection, EARLY_ANSWER_MS);
      demandEqual(outcome.error?.code, "timeout", "the code");
    },
  },
  {
    section: "10.4",
    name: "raises TIMEOUT when the engine does not answer at all",
    async check({ engine: { connection } }) {
      demandTimeout(await unanswered(connection));
    },
  },
  {
    section: "10.4",
    name: "offers one check for timeout and TIMEOUT",
    level: "should",
    async check({ engine: { connection } }) {
      const { outcome } = await lateAnswer(connection, EARLY_ANSWER_MS);
      demandEqual(outcome.is_timeout, true, "is_timeout of the engine's timeout");
      demandEqual((await unanswered(connection)).is_timeout, true, "is_timeout of TIMEOUT");
    },
  },
];

const cancelling: readonly Duty[] = [
  {
    section: "10.4",
    name: "cancelling a call sends cancelinvocation and rejects it locally",
    async check({ engine: { connection } }) {
      const { call, outcome } = await cancelled(connection);
      const { invocation_id } = call;
      await connection.expect({ type: "cancelinvocation", invocation_id: invocation_id! });
      demandEqual(outcome.error?.code, "cancelled", "the code");
    },
  },
  {
    section: "10.4",
    name: "cancelinvocation signals the handler; one with an unknown id is ignored",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const tag = crypto.randomUUID();
      const invocation_id = connection.invokeOnly("probe::wait", { tag });
      connection.send({ type: "cancelinvocation", invocation_id: crypto.randomUUID() });
      await quiet();
      const fields = { function_id: "conformance::cancelled", data: { tag } };
      demandEqual(connection.received(fields, from).length, 0, "signals for the unknown id");
      connection.send({ type: "cancelinvocation", invocation_id, reason: "a test" });
      await connection.expect(fields, from);
    },
  },
];

const progressing: readonly Duty[] = [
  {
    section: "10.4",
    name: "progress of a handler is sent in order, before the result",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const { invocation_id } = await connection.invoke("probe::progress", {
        values: [1, null, { a: 2 }],
      });
      const sent = connection.received({ invocation_id: invocation_id! }, from);
      const types = sent.map(({ type }) => type);
      const progress = "invocationprogress";
      demandEqual(types, [progress, progress, progress, "invocationresult"], "the frames");
      demandEqual(sent.slice(0, 3).map(({ data }) => data), [1, null, { a: 2 }], "the values");
    },
  },
  {
    section: "10.4",
    name: "progress after the result is not sent",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const { invocation_id } = await connection.invoke("probe::late_progress", { value: 1 });
      const fields = { type: "invocationprogress", invocation_id: invocation_id! };
      demandEqual((await connection.receivedAfterQuiet(fields, from)).length, 0, "frames");
    },
  },
  {
    section: "10.4",
    name: "progress of a callee reaches the caller in order",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      const request = { function_id: "conformance::progress" };
      const tag = await startCall(connection, request);
      const call = await connection.expect({ function_id: request.function_id }, from);
      for (const data of [1, { half: true }]) {
        connection.send({ type: "invocationprogress", invocation_id: call.invocation_id!, data });
      }
      connection.answer(call, { result: "done" });
      const { result, progress = [] } = await outcomeOf(connection, tag);
      demandEqual([result, [...progress]], ["done", [1, { half: true }]], "result and progress");
    },
  },
];

const withoutCapabilities: readonly Duty[] = [
  {
    section: "10.4",
    name: "raises TIMEOUT at the deadline if the engine did not announce timeout",
    async check({ engine: { connection } }) {
      const { outcome } = await lateAnswer(connection, LATE_ANSWER_MS);
      demandTimeout(outcome);
    },
  },
  {
    section: "10.4",
    name: "sends no cancelinvocation if the engine did not announce cancel",
    async check({ engine: { connection } }) {
      const { call, outcome } = await cancelled(connection);
      demandEqual(outcome.error?.code, "cancelled", "the code");
      const { invocation_id } = call;
      const fields = { type: "cancelinvocation", invocation_id: invocation_id! };
      demandEqual((await connection.receivedAfterQuiet(fields, 0)).length, 0, "frames");
    },
  },
];

/** The stages of PROTOCOL 10.4. */
export function deadlineStages(): readonly StagePlan[] {
  return [
    { name: "deadlines", script: {}, duties: [...deadlines, ...cancelling, ...progressing] },
    { name: "no capabilities", script: { capabilities: [] }, duties: withoutCapabilities },
  ];
}

/** A call that the engine answers with `timeout`, so long past its deadline. */
async function lateAnswer(
  connection: EngineConnection,
  past_ms: number,
): Promise<{ readonly call: JsonObject; readonly outcome: Outcome }> {
  const from = connection.frames.mark;
  const request = { function_id: "conformance::late", timeout_ms: CALL_TIMEOUT_MS };
  const tag = await startCall(connection, request);
  const call = await connection.expect({ function_id: request.function_id }, from);
  await quiet(CALL_TIMEOUT_MS + past_ms);
  const message = `Invocation of ${request.function_id} timed out after ${CALL_TIMEOUT_MS} ms`;
  connection.answer(call, { error: { code: "timeout", message } });
  return { call, outcome: await outcomeOf(connection, tag) };
}

async function unanswered(connection: EngineConnection): Promise<Outcome> {
  const request = { function_id: "conformance::unanswered", timeout_ms: CALL_TIMEOUT_MS };
  return await outcomeOf(connection, await startCall(connection, request));
}

async function cancelled(
  connection: EngineConnection,
): Promise<{ readonly call: JsonObject; readonly outcome: Outcome }> {
  const from = connection.frames.mark;
  const request = { function_id: "conformance::cancel" };
  const tag = await startCall(connection, request, { cancel_after_ms: 100 });
  const call = await connection.expect({ function_id: request.function_id }, from);
  return { call, outcome: await outcomeOf(connection, tag) };
}

function demandTimeout({ error }: Outcome): void {
  demandEqual(error?.code, "TIMEOUT", "the code");
  const texts = [TIMEOUT_TEXT, `TIMEOUT: ${TIMEOUT_TEXT}`];
  demand(texts.includes(error!.message), `the message is ${JSON.stringify(error!.message)}`);
}
