/**
 * A router on a clock that stands still, with lines that record.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  INFLIGHT_BYTES_MAX,
  INFLIGHT_CALLS_MAX,
  INVOCATION_TIMEOUT_MS,
} from "../../engine/config/config.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  noopObserver,
  type PeerInfo,
  Router,
  type RouterSettings,
} from "../../engine/core/router.ts";
import type { CallObserver } from "../../engine/ports/call_observer.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import type { SchemaCheck, Schemas } from "../../engine/ports/schemas.ts";
import type { TelemetryFrame } from "../../engine/ports/telemetry.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeConnection, type FakeLine, fakeLine } from "./fake_connection.ts";

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

/** A line of a fake router, and what its peer was told when it opened. */
export interface FakeWorker extends FakeLine {
  readonly worker_id: string;
  readonly reattach_token: string;
}

/** A router and what a test needs of it. */
export interface FakeRouter {
  readonly router: Router;
  readonly clock: FakeClock;
  /** What was reported, in order. */
  readonly events: EngineEvent[];
  /** Telemetry that came on the lines. */
  readonly telemetry: TelemetryFrame[];
  /** Opens a line; what it is greeted with is taken already. */
  open(info?: Partial<PeerInfo>): FakeWorker;
  /** Opens a line of a worker inside the engine. */
  openBuiltin(name: string): FakeWorker;
}

/** Makes one; ids are UUIDs that count up. `observe` makes an observer of its calls. */
export function fakeRouter(
  settings: Partial<RouterSettings> = {},
  observe: (clock: FakeClock) => CallObserver = () => noopObserver,
): FakeRouter {
  const clock = new FakeClock();
  const events: EngineEvent[] = [];
  const telemetry: TelemetryFrame[] = [];
  let ids = 0;
  const newId = () => `00000000-0000-4000-9000-${String(++ids).padStart(12, "0")}`;
  const router = new Router({
    clock,
    schemas: fakeSchemas,
    settings: { ...DEFAULT_SETTINGS, ...settings },
    newId,
    report: (event) => events.push(event),
    observer: observe(clock),
    telemetry: ({ bytes, ...frame }) => telemetry.push({ ...frame, bytes: bytes.slice() }),
  });
  const open = (info: Partial<PeerInfo> = {}): FakeWorker => {
    const connection = new FakeConnection(newId());
    const peer = { address: "127.0.0.1", launch_id: null, builtin: null, ...info };
    const line = fakeLine(connection, router.open(connection, peer));
    const [greeting] = connection.take();
    if (greeting?.type !== "workerregistered") throw new Error("a worker is greeted first");
    const { worker_id, reattach_token } = greeting;
    return { ...line, worker_id, reattach_token };
  };
  const openBuiltin = (builtin: string) => open({ builtin, address: null });
  return { router, clock, events, telemetry, open, openBuiltin };
}
