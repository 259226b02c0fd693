/**
 * The probe worker of the TypeScript SDK; README.md says what a probe offers.
 *
 * @module
 */
import {
  type CallContext,
  type CallRequest,
  type ChannelReader,
  type ChannelWriter,
  EngineError,
  type Handler,
  InvocationError,
  isTimeout,
  type Json,
  type JsonObject,
  Logger,
  registerWorker,
} from "engine-sdk";
import * as z from "zod";

const worker = registerWorker(undefined, { token: Deno.env.get("CONFORMANCE_TOKEN") });
const logger = new Logger();

/** Sends a report to the script. */
function report(function_id: string, payload: JsonObject): void {
  void worker.trigger({
    function_id: `conformance::${function_id}`,
    payload,
    action: { type: "void" },
  });
}

/** Makes a call and describes how it ended. */
async function outcomeOf(request: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
  const progress: Json[] = [];
  try {
    const call = { ...request, onProgress: (data: Json) => void progress.push(data) };
    const result = await worker.trigger<Json, Json>({ ...call, signal } as unknown as CallRequest);
    return { ok: true, progress, ...result !== undefined && { result } };
  } catch (error) {
    return { ok: false, progress, is_timeout: isTimeout(error), error: describe(error) };
  }
}

function describe(error: unknown): JsonObject {
  if (!(error instanceof InvocationError)) return { code: "", message: String(error) };
  const { code, message, function_id, invocation_id, stacktrace, details, retryable } = error;
  const fields = { code, message, function_id, invocation_id, stacktrace, details, retryable };
  return JSON.parse(JSON.stringify(fields));
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function start(payload: JsonObject): Promise<void> {
  const { tag, request, delay_ms, cancel_after_ms, report_delay_ms } = payload;
  await sleep(Number(delay_ms ?? 0));
  const signal = cancel_after_ms === undefined
    ? undefined
    : AbortSignal.timeout(Number(cancel_after_ms));
  const outcome = await outcomeOf(request as JsonObject, signal);
  await sleep(Number(report_delay_ms ?? 0));
  report("outcome", { tag: tag!, outcome });
}

async function wait({ tag }: JsonObject, { signal }: CallContext): Promise<void> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  report("cancelled", { tag: tag! });
}

async function shutDown({ tag }: JsonObject): Promise<void> {
  const outcome = outcomeOf({ function_id: "conformance::never" });
  await worker.shutdown();
  console.log(JSON.stringify({ tag, outcome: await outcome }));
}

/** A part of a channel as a payload writes it: a text, or a number of bytes. */
const partOf = (part: Json) => typeof part === "number" ? new Uint8Array(part) : String(part);

function codeOf(error: unknown): string {
  return error instanceof EngineError ? error.code : String(error);
}

/** Reads until the end, or so many parts. */
async function readAll(reader: ChannelReader, partsMax = Infinity): Promise<JsonObject> {
  const parts: Json[] = [];
  try {
    for await (const part of reader) {
      parts.push(typeof part === "string" ? part : part.length);
      if (parts.length >= partsMax) break;
    }
    return { parts };
  } catch (error) {
    return { parts, error: codeOf(error) };
  }
}

async function writeAll(writer: ChannelWriter, payload: JsonObject): Promise<JsonObject> {
  const { parts, abort, repeats } = payload;
  try {
    do {
      for (const part of parts as Json[]) await writer.write(partOf(part));
      if (repeats) await sleep(10);
    } while (repeats);
    await (abort === undefined ? writer.close() : writer.abort(abort));
    return {};
  } catch (error) {
    return { error: codeOf(error) };
  }
}

async function passChannel(payload: JsonObject): Promise<JsonObject> {
  const { writer, reader } = await worker.createChannel();
  const call = worker.trigger<unknown, Json>({
    function_id: "conformance::take",
    payload: { reader },
  });
  const { error } = await writeAll(writer, payload);
  return { ok: error === undefined, result: await call };
}

async function takeChannel(): Promise<JsonObject> {
  const request = { function_id: "conformance::give" };
  const { reader } = await worker.trigger<Json, { reader: ChannelReader }>(request);
  return await readAll(reader);
}

/** Reports a configuration's value, now and whenever it changes. */
async function follow({ id }: JsonObject): Promise<void> {
  const live = await worker.configuration<JsonObject>(String(id));
  const tell = (value: JsonObject) => report("configured", { value });
  tell(live.value);
  live.onChange(tell);
}

const items = new Map<string, Json>();
worker.createStream("probe-items", {
  get: ({ item_id }) => items.get(item_id),
  set({ item_id, data }) {
    const old_value = items.get(item_id);
    items.set(item_id, data);
    return { old_value, new_value: data };
  },
  delete({ item_id }) {
    const old_value = items.get(item_id);
    items.delete(item_id);
    return { old_value };
  },
  list: () => [...items.values()],
  listGroups: () => ["g"],
});
const trigger = worker.registerTrigger({
  type: "http",
  function_id: "probe::echo",
  config: { api_path: "/probe", http_method: "POST" },
  metadata: { from: "probe" },
});
const extra = worker.registerFunction("probe::extra", () => null);
const type = worker.registerTriggerType({ id: "probe-watch", description: "A type of the probe" }, {
  registerTrigger({ id, function_id, config, metadata = null }) {
    const { refuse } = config as JsonObject;
    if (refuse) throw new Error(String(refuse));
    report("trigger_started", { id, function_id, config, metadata });
  },
  unregisterTrigger: ({ id }) => report("trigger_stopped", { id }),
});
const registered = { function: extra, trigger, trigger_type: type };

const functions: Record<string, Handler<JsonObject>> = {
  "probe::metadata": (_payload, metadata) => metadata,
  "probe::nothing": () => undefined,
  "probe::size": (payload) => String(payload).length,
  "probe::large": ({ chars }) => "x".repeat(Number(chars)),
  "probe::deep": ({ levels }) => {
    let value: Json = [];
    for (let level = 1; level < Number(levels); level++) value = [value];
    return value;
  },
  "probe::fail": ({ code, message, details, retryable }) => {
    const options = { details: details as JsonObject, retryable: Boolean(retryable) };
    throw new EngineError(String(code), String(message), options);
  },
  "probe::crash": ({ message }) => {
    throw new Error(String(message));
  },
  "probe::note": ({ tag }) => report("noted", { tag: tag! }),
  "probe::wait": (payload, _metadata, context) => wait(payload, context),
  "probe::progress": ({ values }, _metadata, context) => {
    for (const value of values as Json[]) context.progress(value);
  },
  "probe::late_progress": ({ value }, _metadata, context) => {
    setTimeout(() => context.progress(value!), 50);
  },
  "probe::call": ({ request }) => outcomeOf(request as JsonObject),
  "probe::start": (payload) => void start(payload),
  "probe::unregister": ({ what }) => registered[what as keyof typeof registered].unregister(),
  "probe::configuration": (payload) => void follow(payload),
  "probe::log": ({ message }) => logger.info(String(message)),
  "probe::shutdown": (payload) => void setTimeout(() => shutDown(payload), 50),
};

interface Held {
  reader: ChannelReader;
}
worker.registerFunction("probe::channel_hold", (payload: Held) => void payload.reader);
worker.registerFunction("probe::channel_read", (payload: { list: [Held]; parts_max?: number }) => {
  return readAll(payload.list[0].reader, payload.parts_max);
});
worker.registerFunction(
  "probe::channel_write",
  ({ writer, ...payload }: JsonObject & { writer: ChannelWriter }) => writeAll(writer, payload),
);
worker.registerFunction("probe::channel_pass", (payload: JsonObject) => passChannel(payload));
worker.registerFunction("probe::channel_take", takeChannel);
worker.registerFunction("probe::stream", ({ parts }: { parts: string[] }) => ({
  status_code: 201,
  headers: { "content-type": "text/plain" },
  body: parts.values(),
}));
worker.registerFunction("probe::typed", ({ items, wrong }) => ({
  sum: wrong ? "none" as unknown as number : items.reduce((sum, { n }) => sum + n, 0),
}), {
  input: z.object({ items: z.array(z.object({ n: z.int() })), wrong: z.boolean().optional() }),
  output: z.object({ sum: z.int() }),
});
worker.registerFunction("probe::echo", (payload) => payload, {
  description: "Returns its payload",
  request_format: {},
  metadata: { probe: true },
});
for (const [id, handler] of Object.entries(functions)) worker.registerFunction(id, handler);
worker.registerFunction("probe::ready", () => null);
