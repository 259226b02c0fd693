/**
 * A router on a fake clock, with connections that record; with a caller and a callee, a provider and
 * an originator of triggers, or a recorder of its calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  INFLIGHT_BYTES_MAX,
  INFLIGHT_CALLS_MAX,
  INVOCATION_TIMEOUT_MS,
} from "../../engine/config/config.ts";
import {
  noopObserver,
  type PeerInfo,
  Router,
  type RouterSettings,
} from "../../engine/core/router.ts";
import { type Absences, NO_ABSENCES } from "../../engine/ports/absences.ts";
import type { CallObserver } from "../../engine/ports/call_observer.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import { NO_SERVED_FUNCTIONS, type ServedFunctions } from "../../engine/ports/served.ts";
import type { SchemaCheck, Schemas } from "../../engine/ports/schemas.ts";
import type { CallSpan, TelemetryFrame, TraceSettings } from "../../engine/ports/telemetry.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type {
  EngineMessage,
  InvokeFunction,
  Json,
  JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeConnection, type FakePeer, fakePeer } from "./fake_connection.ts";

/** The settings of PROTOCOL 12. */
export const DEFAULT_SETTINGS: RouterSettings = {
  invocation_timeout_ms: INVOCATION_TIMEOUT_MS,
  validate_payloads: true,
  max_inflight_calls_per_worker: INFLIGHT_CALLS_MAX,
  max_inflight_bytes_per_worker: INFLIGHT_BYTES_MAX,
};

/** Understands `type: "object"` and `required`, and nothing else. */
export const fakeSchemas: Schemas = {
  compile(schema: Json): SchemaCheck {
    const { type, required = [] } = schema as JsonObject;
    if (type !== "object") throw new EngineError("invalid_schema", "only objects are understood");
    return (value) =>
      (required as string[])
        .filter((name) => (value as JsonObject | null)?.[name] === undefined)
        .map((name) => ({ path: "", message: `must have required property '${name}'` }));
  },
};

/** A worker connected to a fake router, with the ids it was greeted with. */
export interface FakeWorker extends FakePeer {
  readonly worker_id: string;
  readonly reattach_token: string;
}

/** A router and what a test needs of it. */
export interface FakeRouter {
  readonly router: Router;
  readonly clock: FakeClock;
  /** What was reported, in order. */
  readonly events: EngineEvent[];
  /** Telemetry frames of all connections. */
  readonly telemetry: TelemetryFrame[];
  /** How often schemas were to be prepared. */
  prepared(): number;
  /** Opens a connection; its greeting is taken already. */
  open(info?: Partial<PeerInfo>): FakeWorker;
  /** Opens a connection of a built-in worker. */
  openBuiltin(name: string): FakeWorker;
}

/** Ids are UUIDs that count up. `observe` makes the observer of its calls. */
export function fakeRouter(
  settings: Partial<RouterSettings> = {},
  observe: (clock: FakeClock) => CallObserver = () => noopObserver,
  memory: MemoryBudget = UNLIMITED_MEMORY,
  absences: Absences = NO_ABSENCES,
  served: ServedFunctions = NO_SERVED_FUNCTIONS,
  schemas: Schemas = fakeSchemas,
): FakeRouter {
  const clock = new FakeClock();
  const events: EngineEvent[] = [];
  const telemetry: TelemetryFrame[] = [];
  let ids = 0;
  let prepared = 0;
  const newId = () => `00000000-0000-4000-9000-${String(++ids).padStart(12, "0")}`;
  const router = new Router({
    clock,
    schemas: { ...schemas, prepare: () => Promise.resolve(void prepared++) },
    settings: { ...DEFAULT_SETTINGS, ...settings },
    newId,
    report: (event) => events.push(event),
    observer: observe(clock),
    memory,
    absences,
    served,
    telemetry: ({ bytes, ...frame }) => telemetry.push({ ...frame, bytes: bytes.slice() }),
  });
  const open = (info: Partial<PeerInfo> = {}): FakeWorker => {
    const connection = new FakeConnection(newId());
    const peer = { address: "127.0.0.1", launch_id: null, builtin: null, ...info };
    const remote = fakePeer(connection, router.open(connection, peer));
    const [greeting] = connection.take();
    if (greeting?.type !== "workerregistered") throw new Error("a worker is greeted first");
    const { worker_id, reattach_token } = greeting;
    return { ...remote, worker_id, reattach_token };
  };
  const openBuiltin = (builtin: string) => open({ builtin, address: null });
  return { router, clock, events, telemetry, prepared: () => prepared, open, openBuiltin };
}

/** A call as a worker receives it. */
export type HandedCall = InvokeFunction & { invocation_id: string };

const ALL = ["cancel", "timeout", "progress"];

/** A router with a worker that offers `f` and a caller. */
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

/** Announces a worker with its capabilities. */
export function announce(worker: FakeWorker, capabilities = ALL, name = "w"): void {
  const data = { name, capabilities };
  worker.say({ type: "invokefunction", function_id: "engine::workers::register", data });
}

/** Calls `f`; `fields` replace or add fields of the message. */
export function call(
  worker: FakeWorker,
  invocation_id: string,
  fields: Partial<InvokeFunction> = {},
): void {
  worker.say({ type: "invokefunction", invocation_id, function_id: "f", data: 1, ...fields });
}

/** The calls that a worker has received since the last time. */
export function handed({ connection }: FakeWorker): HandedCall[] {
  return connection.take().filter((message) => message.type === "invokefunction")
    .map((message) => message as HandedCall);
}

/** Answers a call that a worker has received. */
export function answer(worker: FakeWorker, invocation_id: string, result: unknown = "done"): void {
  worker.say({ type: "invocationresult", invocation_id, function_id: "f", result });
}

/** The results since the last time: the value or the error code, by invocation id. */
export function results({ connection }: FakeWorker): Record<string, unknown> {
  return Object.fromEntries(
    connection.take().filter((message) => message.type === "invocationresult")
      .map(({ invocation_id, error, result }) => [invocation_id, error?.code ?? result]),
  );
}

/** The one message that a worker has received since the last time. */
export function only({ connection }: FakeWorker): EngineMessage {
  const messages = connection.take();
  assert.equal(messages.length, 1);
  return messages[0]!;
}

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
export function withTriggerType(builtin: string | null = null): TriggerSetup {
  const engine = fakeRouter();
  const provider = engine.open({ builtin });
  provider.say(TYPE);
  return { ...engine, provider, originator: engine.open() };
}

/** The trigger messages that a provider has received since the last time: type and id of each. */
export function triggersSentTo({ connection }: FakeWorker): string[] {
  return connection.take().map((message) => `${message.type} ${"id" in message ? message.id : ""}`);
}

/** The provider accepts or rejects a trigger. */
export function answerTrigger(
  provider: FakeWorker,
  id: string,
  error?: { code: string; message: string },
): void {
  const { trigger_type, function_id } = TRIGGER;
  provider.say({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
}

/** Everything is recorded. */
export const RECORD_ALL: TraceSettings = {
  enabled: true,
  ratio: 1,
  rules: [],
  memory_bytes: 1024 * 1024,
  payload_chars: 200,
};

/** The router and its recorder. */
export interface RecordedRouter extends Calling {
  readonly recorder: CallRecorder;
  /** The calls that ended since last time, in that order. */
  take(): CallSpan[];
}

/** As {@linkcode calling}; what was recorded so far is taken. */
export function recordedRouter(
  settings: Partial<TraceSettings> = {},
  routing: Partial<RouterSettings> = {},
): RecordedRouter {
  let recorder!: CallRecorder;
  const engine = calling(routing, (clock) => {
    recorder = new CallRecorder({ clock });
    recorder.configure({ ...RECORD_ALL, ...settings });
    return recorder;
  });
  let cursor = 0;
  const take = (): CallSpan[] => {
    const next = recorder.ended(cursor, 1_000_000);
    cursor = next.cursor;
    return next.spans;
  };
  take();
  return { ...engine, recorder, take };
}
