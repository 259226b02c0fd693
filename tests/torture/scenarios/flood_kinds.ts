/**
 * The kinds of floods: what a flooding peer sends, and what has to be there before.
 *
 * @module
 */
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FRESH, type Peer } from "../peer.ts";

/** One kind of flood. */
export interface Flood {
  readonly name: string;
  /** What a flooding peer sends, again and again; to `http` requests with their heads. */
  readonly messages: readonly string[];
  /** Where it connects. Default: the port of workers. */
  readonly to?: "workers" | "http" | "websocket";
  /** Path of the connection; default: that of workers. */
  readonly path?: string;
  /** Binary frames, for telemetry. */
  readonly isBinary?: boolean;
  /** Whether each message gets an answer, which then counts for the throughput. */
  readonly isAnswered?: boolean;
  /** Further lines of `workers` in config.yaml; such a flood has an engine of its own. */
  readonly workers?: readonly string[];
  /** A worker in a process of its own offers {@linkcode CALLEE} and answers at once. */
  readonly hasCallee?: boolean;
  /** What has to be there before. */
  prepare?(peer: Peer): Promise<void>;
}

/** After a flood the engine has to have handled what it read. */
export const SETTLE_MS = 20_000;
/** Function of the worker that answers at once. */
export const CALLEE = "flood::callee";
/** Path of the route and of the WebSocket on the port of HTTP. */
export const ROUTE = "/flood";
function call(functionId: string, data: string): string {
  return `{"type":"invokefunction","invocation_id":"f-${FRESH}","function_id":"${functionId}",` +
    `"data":${data}}`;
}

/** A call of which no answer is wanted. */
function send(functionId: string, data: string): string {
  return `{"type":"invokefunction","function_id":"${functionId}","action":{"type":"void"},` +
    `"data":${data}}`;
}

const TEXT = "x".repeat(60);
const KEYS = Array.from({ length: 50 }, (_, i) => `k${i}`);
const RECORD = `{"timeUnixNano":"1","severityNumber":9,"body":{"stringValue":"${TEXT}"}}`;
const LOGS = `LOGS{"resourceLogs":[{"resource":{"attributes":[]},"scopeLogs":[{"logRecords":[${
  Array.from({ length: 50 }, () => RECORD).join(",")
}]}]}]}`;
const SPAN = `{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7",` +
  `"name":"execute flood::f","kind":2,"startTimeUnixNano":"1","endTimeUnixNano":"2"}`;
const SPANS = `OTLP{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[${
  Array.from({ length: 50 }, () => SPAN).join(",")
}]}]}]}`;

/** Functions that lists have to read. */
async function registerMany(peer: Peer): Promise<void> {
  for (let i = 0; i < 200; i++) {
    void peer.send({ type: "registerfunction", id: `flood::f${i}`, description: TEXT });
  }
  await peer.settled(SETTLE_MS);
}

const GENERAL: readonly Flood[] = [
  {
    name: "calls never answered",
    messages: [call("flood::silent", `{"text":"${TEXT}"}`)],
    async prepare(peer) {
      await peer.send({ type: "registerfunction", id: "flood::silent" });
      await peer.settled(SETTLE_MS);
    },
  },
  {
    name: "calls of no function",
    messages: [call("flood::nothing", `{"text":"${TEXT}"}`)],
    isAnswered: true,
  },
  {
    name: "state sets",
    messages: KEYS.map((key) =>
      call("state::set", `{"scope":"flood","key":"${key}","value":{"text":"${TEXT}"}}`)
    ),
    isAnswered: true,
  },
  {
    name: "logs",
    messages: [send("engine::log::info", `{"message":"${TEXT}","data":{"n":1}}`)],
  },
  { name: "log frames", path: "/otel", isBinary: true, messages: [LOGS] },
  { name: "span frames", path: "/otel", isBinary: true, messages: [SPANS] },
  ...["functions", "workers", "traces", "logs"].map((what) => ({
    name: `lists of ${what}`,
    messages: [call(`engine::${what}::list`, "{}")],
    isAnswered: true,
    prepare: registerMany,
  })),
  {
    name: "registrations",
    messages: [
      `{"type":"registerfunction","id":"flood::f${FRESH}","description":"${TEXT}"}`,
      `{"type":"registerfunction","id":"flood::same","metadata":{"text":"${TEXT}"}}`,
      `{"type":"unregisterfunction","id":"flood::same"}`,
    ],
  },
  ...["http", "state", "log"].map((type) => {
    const config = type === "http" ? `{"api_path":"/f${FRESH}"}` : "{}";
    const ids = `"trigger_type":"${type}","function_id":"flood::f"`;
    return {
      name: `triggers of type ${type}`,
      messages: [
        `{"type":"registertrigger","id":"t${FRESH}",${ids},"config":${config}}`,
        `{"type":"registertrigger","id":"same",${ids},"config":${config}}`,
        `{"type":"unregistertrigger","id":"same","trigger_type":"${type}"}`,
      ],
    };
  }),
  { name: "pings", messages: ['{"type":"ping"}'], isAnswered: true },
  {
    name: "messages of 1 MiB",
    messages: [call("flood::nothing", `{"text":"${"x".repeat(1024 * 1024 / 20)}"}`)],
    isAnswered: true,
  },
];

const VALUE = `{"text":"${TEXT}"}`;
const REQUEST = `GET ${ROUTE}?text=${TEXT} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;

/** Registers a trigger that calls the worker that answers at once. */
async function bind(peer: Peer, trigger_type: string, config: JsonObject): Promise<void> {
  const ids = { id: `flood-${trigger_type}`, trigger_type, function_id: CALLEE };
  await peer.send({ type: "registertrigger", ...ids, config });
  await peer.settled(SETTLE_MS);
}

const QUEUE = ["  - name: engine-queue"];
const STREAM = ["  - name: engine-stream", "    config: { port: 0 }"];

/** Floods of what other built-in workers offer. */
const BUILTINS: readonly Flood[] = [
  {
    name: "jobs that wait",
    workers: QUEUE,
    messages: [
      `{"type":"invokefunction","invocation_id":"f-${FRESH}","function_id":"flood::job",` +
      `"action":{"type":"enqueue","queue":"default"},"data":${VALUE}}`,
    ],
    isAnswered: true,
  },
  {
    name: "jobs that run",
    workers: QUEUE,
    messages: [
      `{"type":"invokefunction","invocation_id":"f-${FRESH}","function_id":"${CALLEE}",` +
      `"action":{"type":"enqueue","queue":"default"},"data":${VALUE}}`,
    ],
    isAnswered: true,
    hasCallee: true,
  },
  {
    name: "published messages",
    workers: ["  - name: engine-pubsub"],
    messages: [call("publish", `{"topic":"flood.t","data":${VALUE}}`)],
    isAnswered: true,
    hasCallee: true,
    prepare: (peer) => bind(peer, "subscribe", { topic: "flood.*" }),
  },
  {
    name: "stream items",
    workers: STREAM,
    messages: KEYS.map((key) =>
      call(
        "stream::set",
        `{"stream_name":"flood","group_id":"g","item_id":"${key}","data":${VALUE}}`,
      )
    ),
    isAnswered: true,
  },
  {
    name: "stream events",
    workers: STREAM,
    messages: [
      call(
        "stream::send",
        `{"stream_name":"flood","group_id":"g","type":"typing","data":${VALUE}}`,
      ),
    ],
    isAnswered: true,
    hasCallee: true,
    prepare: (peer) => bind(peer, "stream", { stream_name: "flood" }),
  },
  {
    name: "configurations",
    workers: ["  - name: engine-configuration"],
    messages: KEYS.slice(0, 10).map((id) =>
      call("configuration::set", `{"id":"${id}","value":${VALUE}}`)
    ),
    isAnswered: true,
    async prepare(peer) {
      const schema = { type: "object", properties: { text: { type: "string" } } };
      for (const id of KEYS.slice(0, 10)) {
        void peer.send({
          type: "invokefunction",
          function_id: "configuration::register",
          action: { type: "void" },
          data: { id, schema },
        });
      }
      await peer.settled(SETTLE_MS);
    },
  },
  {
    name: "cron triggers",
    workers: ["  - name: engine-cron"],
    messages: [["t" + FRESH, FRESH], ["same", "0"]].map(([id, metadata]) =>
      `{"type":"registertrigger","id":"${id}","trigger_type":"cron","function_id":"flood::f",` +
      `"config":{"expression":"0 0 9 * * MON-FRI"},"metadata":{"n":"${metadata}"}}`
    ).concat('{"type":"unregistertrigger","id":"same","trigger_type":"cron"}'),
  },
  {
    name: "channels",
    workers: [],
    messages: [call("engine::channels::create", "{}")],
    isAnswered: true,
  },
  {
    name: "HTTP requests",
    workers: [],
    to: "http",
    messages: [REQUEST],
    isAnswered: true,
    hasCallee: true,
    prepare: (peer) => bind(peer, "http", { api_path: ROUTE, http_method: "GET" }),
  },
  {
    name: "WebSocket messages",
    workers: [],
    to: "websocket",
    messages: [VALUE],
    isAnswered: true,
    hasCallee: true,
    prepare: (peer) => bind(peer, "websocket", { api_path: ROUTE }),
  },
];

/** All of them. */
export const FLOODS: readonly Flood[] = [...GENERAL, ...BUILTINS];
