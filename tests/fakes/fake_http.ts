/**
 * All of `engine-http` but its port, with functions that are plain closures and a clock that tests
 * move by hand.
 *
 * @module
 */
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import type { Absence } from "../../engine/ports/absences.ts";
import type { FunctionView } from "../../engine/ports/directory.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import type { Log, LogFields } from "../../engine/ports/log.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { InvocationError } from "../../sdk/typescript/wire/errors.ts";
import type { CallRequest, TriggerHandlers } from "../../sdk/typescript/options.ts";
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { RequestBody } from "../../workers/kit/http/body.ts";
import { CHUNKED } from "../../workers/kit/http/head.ts";
import { BodyReadTurns, type ByteStream, Input } from "../../workers/kit/http/input.ts";
import type { ServedRequest, ServedResponse } from "../../workers/kit/http/response.ts";
import { parseHttpConfig } from "../../workers/http/config.ts";
import { assemble, type HttpParts, provideRoutes } from "../../workers/http/mod.ts";
import { FakeClock } from "./fake_clock.ts";

/** Enough for every test that does not fill it. */
const FAKE_MEMORY_BYTES = 256 * 1024 * 1024;

/** A function as the fake engine runs it. */
export type FakeFunction = (request: CallRequest<Json>) => unknown;

/** One line that was logged. */
export interface LogLine {
  readonly level: string;
  readonly text: string;
  readonly fields: LogFields;
}

/** What tests look at. */
export interface FakeHttp extends Omit<HttpParts, "fetch"> {
  /** What a port calls. */
  readonly serve: HttpParts["fetch"];
  readonly clock: FakeClock;
  readonly lines: LogLine[];
  readonly calls: CallRequest<Json>[];
  /** Traces nothing before a test says so. */
  readonly traces: CallRecorder;
  readonly types: TriggerHandlers;
  /** Registers a trigger for `GET /path`; the id it got. */
  route(line: string, function_id: string, more?: JsonObject): string;
  readonly memory: MemoryBudget;
  /** Functions that the directory knows, by id. */
  readonly views: Map<string, FunctionView>;
  /** Why functions are not there, by id. */
  readonly absences: Map<string, Absence>;
  /** Sends `GET /path`. */
  fetch(line: string, init?: RequestInit): Promise<Response>;
}

/** `functions`: the handlers that answer calls, by function id. */
export function fakeHttp(
  config: Json = {},
  functions: Record<string, FakeFunction> = {},
): FakeHttp {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const calls: CallRequest<Json>[] = [];
  let types: TriggerHandlers | undefined;
  const worker = {
    async trigger(sent: CallRequest<Json>): Promise<unknown> {
      const { payload } = sent as { payload: unknown };
      const isText = payload instanceof JsonText;
      const request = isText ? { ...sent, payload: JSON.parse(payload.text) } : sent;
      calls.push(request);
      if (request.signal?.aborted) throw failure("cancelled", "Invocation cancelled");
      const run = functions[request.function_id];
      if (!run) throw failure("function_not_found", `Function ${request.function_id} not found`);
      return await run(request);
    },
    registerTriggerType(_type: unknown, handlers: TriggerHandlers) {
      types = handlers;
      return { id: "http", unregister() {} };
    },
  } as unknown as Worker;
  const traces = new CallRecorder({ clock });
  const memory = createMemoryBudget(FAKE_MEMORY_BYTES, queueMicrotask);
  const views = new Map<string, FunctionView>();
  const directory = {
    function: (_namespace: string, id: string) => views.get(id),
    worker: () => undefined,
  };
  const absences = new Map<string, Absence>();
  const absenceOf = (id: string): Absence | undefined => absences.get(id);
  const host = { clock, log: recordingLog(lines), traces, memory, directory, absenceOf };
  const parts = assemble(worker, parseHttpConfig(config), host);
  provideRoutes(worker, parts, host);
  let count = 0;
  return {
    ...parts,
    serve: parts.fetch,
    clock,
    lines,
    calls,
    traces,
    memory,
    views,
    absences,
    types: types!,
    route(line, function_id, more = {}) {
      const [http_method, api_path] = line.split(" ") as [string, string];
      const id = `t${++count}`;
      const trigger = { id, trigger_type: "http", function_id, metadata: undefined };
      const instance = { ...trigger, config: { http_method, api_path, ...more } };
      void types!.registerTrigger({ ...instance, namespace: undefined });
      return id;
    },
    async fetch(line, init = {}) {
      const [method, path] = line.split(" ") as [string, string];
      const request = new Request(`http://localhost:3111${path}`, { method, ...init });
      return responseOf(await parts.fetch(servedRequest(request, init)), method);
    },
  };
}

/** A request as the port hands it over; a body that is a stream comes in chunks, as it does. */
export function servedRequest(request: Request, init: RequestInit = {}): ServedRequest {
  const { url, method, headers, signal } = request;
  const at = url.indexOf("/", url.indexOf("://") + 3);
  const isStream = init.body instanceof ReadableStream;
  const declared = headers.get("content-length");
  const text = typeof init.body === "string" ? new TextEncoder().encode(init.body) : undefined;
  const bytes = text ?? (init.body instanceof Uint8Array ? init.body : undefined);
  const length = isStream && declared === null ? CHUNKED : Number(declared ?? bytes?.length ?? 0);
  const chunks = isStream ? (init.body as ReadableStream<Uint8Array>) : new Blob(
    bytes ? [bytes as Uint8Array<ArrayBuffer>] : [],
  ).stream();
  const input = new Input(bytesOf(chunks, length === CHUNKED), new BodyReadTurns({ after: later }));
  return {
    method,
    target: at < 0 ? "" : url.slice(at),
    headers: Object.fromEntries(headers),
    headersJson: JSON.stringify(Object.fromEntries(headers)),
    body: new RequestBody(input, length, undefined),
    client: { name: "192.0.2.1", sockets: 1, running: 0 },
    watch(gone) {
      if (signal.aborted) gone();
      else signal.addEventListener("abort", gone, { once: true });
    },
  };
}

function later(_ms: number, task: () => void): () => void {
  queueMicrotask(task);
  return () => {};
}

/** A connection on which a body arrives. */
function bytesOf(body: ReadableStream<Uint8Array>, isChunked: boolean): ByteStream {
  const reader = body.getReader();
  let rest: Uint8Array = new Uint8Array();
  let isOver = false;
  return {
    async read(into) {
      while (rest.length === 0) {
        if (isOver) return null;
        const { done, value = new Uint8Array() } = await reader.read();
        isOver = done;
        rest = isChunked ? chunkOf(value, done) : value;
      }
      const part = rest.subarray(0, into.length);
      into.set(part);
      rest = rest.subarray(part.length);
      return part.length;
    },
    write: (sent) => Promise.resolve(sent.length),
    closeWrite: () => Promise.resolve(),
    close() {},
  };
}

function chunkOf(value: Uint8Array, isLast: boolean): Uint8Array {
  const encoder = new TextEncoder();
  if (isLast) return encoder.encode("0\r\n\r\n");
  if (value.length === 0) return value;
  const head = encoder.encode(`${value.length.toString(16)}\r\n`);
  return new Uint8Array([...head, ...value, 13, 10]);
}

/** What a client gets of a response. */
export function responseOf({ status, headers, body }: ServedResponse, method: string): Response {
  const sent = method === "HEAD" ? null : body as BodyInit | null;
  return new Response(sent, { status, headers: headers.map(([name, value]) => [name, value]) });
}

/** A log that records its lines. */
export function recordingLog(lines: LogLine[]): Log {
  const write = (level: string) => (text: string, fields: LogFields = {}): void => {
    lines.push({ level, text, fields });
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
}

/** What a failed call throws. */
export function failure(
  code: string,
  message: string,
  more: Partial<ErrorBody> = {},
): InvocationError {
  return new InvocationError({ code, message, ...more }, "some::function");
}

/** Runs all pending microtasks. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

/** A request with a JSON body. */
export function json(body: string): RequestInit {
  return { body, headers: { "content-type": "application/json" } };
}
