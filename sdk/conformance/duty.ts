/**
 * What a duty is, and the stages on which duties run.
 *
 * A stage is one scripted engine with one probe; its duties run in order and share both. Each
 * duty has a bound, and one that fails does not stop the next.
 *
 * @module
 */
import type { Json, JsonObject } from "../typescript/wire/protocol.ts";
import { DutyError } from "./log.ts";
import type { ProbeProcess } from "./probe_process.ts";
import type { EngineConnection, EngineScript, ScriptedEngine } from "./scripted_engine.ts";

/** An engine, its probe, and how duties use them. */
export interface Stage {
  readonly engine: ScriptedEngine;
  readonly probe: ProbeProcess;
}

/** One duty of an SDK. */
export interface Duty {
  /** Section of the specification, such as `10.1`. */
  readonly section: string;
  readonly name: string;
  /** `should`: not fulfilling it is a warning. @default {"must"} */
  readonly level?: "must" | "should";
  /** Runs only with `--slow`. */
  readonly isSlow?: boolean;
  /** @throws {DutyError} When the SDK does not fulfil the duty. */
  check(stage: Stage): Promise<void>;
}

/** Duties that share an engine and a probe. */
export interface StagePlan {
  readonly name: string;
  readonly script: EngineScript;
  readonly duties: readonly Duty[];
}

/** How a call of the probe ended, as `probe::call` returns it and `probe::start` reports it. */
export interface Outcome {
  readonly ok: boolean;
  readonly result?: Json;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly function_id?: string;
    readonly invocation_id?: string;
    readonly stacktrace?: string | null;
    readonly details?: JsonObject;
    readonly retryable?: boolean;
  };
  readonly is_timeout?: boolean;
  readonly progress?: readonly Json[];
}

/** The last registration of a probe: it is ready when the engine has it. */
export const READY = "probe::ready";
const REGISTERED = { type: "registerfunction", id: READY };

/** Fails the duty unless `holds`. */
export function demand(holds: boolean, problem: string): asserts holds {
  if (!holds) throw new DutyError(problem);
}

/** Fails the duty unless two JSON values are equal, whatever the order of their keys. */
export function demandEqual(actual: unknown, expected: Json, what: string): void {
  const [found, wanted] = [canonical(actual), canonical(expected)];
  demand(found === wanted, `${what} is ${found}, expected ${wanted}`);
}

/** Whether the probe has registered everything on a connection. */
export function isReady(connection: EngineConnection): boolean {
  return connection.received(REGISTERED).length > 0;
}

/** Waits until the probe has registered everything on a connection. */
export async function ready(connection: EngineConnection): Promise<void> {
  await connection.expect(REGISTERED);
}

/** Starts a call in the probe, outside of any handler; returns its tag. */
export async function startCall(
  connection: EngineConnection,
  request: JsonObject,
  options: JsonObject = {},
  tag: string = crypto.randomUUID(),
): Promise<string> {
  await connection.invoke("probe::start", { tag, request, ...options });
  return tag;
}

/** Waits for the outcome of a call that {@linkcode startCall} started. */
export async function outcomeOf(
  connection: EngineConnection,
  tag: string,
  withinMs?: number,
): Promise<Outcome> {
  const fields = { type: "invokefunction", function_id: "conformance::outcome", data: { tag } };
  const report = await connection.expect(fields, 0, withinMs);
  return (report.data as JsonObject).outcome as unknown as Outcome;
}

/** Makes the probe call a function, answers, and returns what the probe's call came to. */
export async function answeredCall(
  connection: EngineConnection,
  request: JsonObject,
  answer: JsonObject,
): Promise<{ readonly call: JsonObject; readonly outcome: Outcome }> {
  const from = connection.frames.mark;
  const invocation_id = connection.invokeOnly("probe::call", { request });
  const { function_id } = request;
  const call = await connection.expect({ type: "invokefunction", function_id: function_id! }, from);
  connection.answer(call, answer);
  const result = await connection.expect({ type: "invocationresult", invocation_id }, from);
  demand(result.error === undefined, `probe::call failed: ${JSON.stringify(result.error)}`);
  return { call, outcome: result.result as unknown as Outcome };
}

/** JSON text with sorted keys; `undefined` is `absent`. */
function canonical(value: unknown): string {
  if (value === undefined) return "absent";
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => a < b ? -1 : 1));
  });
}
