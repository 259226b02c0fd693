/**
 * All of `engine-http` but its port, with functions that are plain closures and a clock that tests
 * move by hand.
 *
 * @module
 */
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import type { Log, LogFields } from "../../engine/ports/log.ts";
import { InvocationError } from "../../sdk/typescript/wire/errors.ts";
import type { CallRequest, TriggerHandlers } from "../../sdk/typescript/options.ts";
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { parseHttpConfig } from "../../workers/http/config.ts";
import { assemble, type HttpParts, provideRoutes } from "../../workers/http/mod.ts";
import { FakeClock } from "./fake_clock.ts";

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
  readonly clock: FakeClock;
  readonly lines: LogLine[];
  readonly calls: CallRequest<Json>[];
  /** Traces nothing before a test says so. */
  readonly traces: CallRecorder;
  readonly types: TriggerHandlers;
  /** Registers a trigger for `GET /path`; the id it got. */
  route(line: string, function_id: string, more?: JsonObject): string;
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
    async trigger(request: CallRequest<Json>): Promise<unknown> {
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
  const host = { clock, log: recordingLog(lines), traces };
  const parts = assemble(worker, parseHttpConfig(config), host);
  provideRoutes(worker, parts.routes, host);
  let count = 0;
  return {
    ...parts,
    clock,
    lines,
    calls,
    traces,
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
      return await parts.fetch(
        new Request(`http://localhost:3111${path}`, { method, ...init }),
      );
    },
  };
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
