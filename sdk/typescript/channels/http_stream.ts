/**
 * Responses of HTTP handlers that are streams (PROTOCOL 6.4): a handler returns a stream, an async
 * iterable or a generator, as the result or as its `body`, and it is written to the channel
 * `response` of the payload.
 *
 * The call is answered at once, without a value, so that a stream may go on for longer than any
 * call. When the client leaves, the iteration ends and the signal of the call is aborted.
 *
 * @module
 */
import { EngineError, thrownText } from "../wire/errors.ts";
import type { Json } from "../wire/protocol.ts";
import { ChannelWriter } from "./writer.ts";

/** The type of server-sent events. */
const EVENT_STREAM = "text/event-stream";
/** The fields of a server-sent event. */
const EVENT_FIELDS = ["event", "data", "id", "retry"];

const encoder = new TextEncoder();

/** A response that is to be streamed. */
interface Streamed {
  readonly writer: ChannelWriter;
  readonly items: AsyncIterator<unknown> | Iterator<unknown>;
  readonly status: unknown;
  readonly headers: unknown;
}

/** The response in a handler's result; `undefined` if it is none, or there is no place for it. */
export function streamedResponse(
  payload: Json | undefined,
  result: unknown,
): Streamed | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const writer = (payload as { response?: unknown } | null | undefined)?.response;
  if (!(writer instanceof ChannelWriter)) return undefined;
  const whole = itemsOf(result);
  if (whole) return { writer, items: whole, status: undefined, headers: undefined };
  const { body, status_code, statusCode, headers } = result as Record<string, unknown>;
  const items = itemsOf(body);
  return items && { writer, items, status: status_code ?? statusCode, headers };
}

/** What a stream yields; `undefined` for other values. Lists and texts are values. */
function itemsOf(value: unknown): Streamed["items"] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { next, getReader, [Symbol.asyncIterator]: iterate } = value as {
    next?: unknown;
    getReader?: unknown;
    [Symbol.asyncIterator]?: () => AsyncIterator<unknown>;
  };
  if (typeof iterate === "function") return iterate.call(value);
  // Some platforms cannot iterate over a ReadableStream.
  if (typeof getReader === "function") return readerOf(value as ReadableStream<unknown>);
  return typeof next === "function" ? value as Iterator<unknown> : undefined;
}

function readerOf(stream: ReadableStream<unknown>): AsyncIterator<unknown> {
  const reader = stream.getReader();
  return {
    next: () => reader.read() as Promise<IteratorResult<unknown>>,
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** Writes a response to its end; never rejects. `gone` is called if the client leaves before. */
export async function sendStream(streamed: Streamed, gone: () => void): Promise<void> {
  const { writer, items } = streamed;
  let isDone = false;
  const left = (): void => {
    gone();
    void end(items);
  };
  writer.signal.addEventListener("abort", left, { once: true });
  try {
    // Connects while the handler makes its first item.
    const known = sendKnown(streamed);
    known.catch(() => {}); // Awaited below, unless there is no first item.
    let item = await items.next();
    const type = await known ?? await sendType(streamed, item.done ? undefined : item.value);
    while (!item.done) {
      await writer.write(encodeItem(item.value, type));
      item = await items.next();
    }
    isDone = true;
    await writer.close();
  } catch (error) {
    writer.signal.removeEventListener("abort", left);
    await writer.abort(thrownText(error));
    if (!isDone) await end(items);
  }
}

/** Lets the handler clean up. */
async function end(items: Streamed["items"]): Promise<void> {
  try {
    await items.return?.();
  } catch {
    // No caller is left to receive it.
  }
}

/** Sends the status, and the headers if they have the content type, which it returns. */
async function sendKnown({ writer, status, headers }: Streamed): Promise<string | undefined> {
  if (status !== undefined && status !== null) {
    await writer.write(JSON.stringify({ type: "set_status", status_code: status }));
  }
  const type = contentType(headers);
  if (type !== undefined) await writer.write(JSON.stringify({ type: "set_headers", headers }));
  return type?.toLowerCase();
}

/** Sends headers without a content type, which depends on the first item. */
async function sendType({ writer, headers }: Streamed, first: unknown): Promise<string> {
  const type = typeof first === "string" ? "text/plain; charset=utf-8" : "";
  const all = type === "" ? headers : withType(headers, type);
  if (all !== undefined && all !== null) {
    await writer.write(JSON.stringify({ type: "set_headers", headers: all }));
  }
  return type;
}

function contentType(headers: unknown): string | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  const pairs: [string, unknown][] = Array.isArray(headers)
    ? headers.map((line) => {
      const [name = "", ...value] = String(line).split(":");
      return [name, value.join(":")];
    })
    : Object.entries(headers);
  const found = pairs.find(([name]) => name.trim().toLowerCase() === "content-type")?.[1];
  return found === undefined ? undefined : String(found).trim();
}

function withType(headers: unknown, type: string): unknown {
  if (Array.isArray(headers)) return [...headers, `content-type: ${type}`];
  return { ...headers as object | undefined, "content-type": type };
}

/** @throws {EngineError} `serialization_error` for what the content type has no form for. */
function encodeItem(item: unknown, type: string): Uint8Array {
  if (typeof item === "string") return encoder.encode(item);
  if (item instanceof Uint8Array) return item;
  if (item instanceof ArrayBuffer) return new Uint8Array(item);
  if (type.startsWith(EVENT_STREAM)) return encoder.encode(eventOf(item));
  const message = "A response that is a stream carries strings and Uint8Array; objects need the " +
    `content-type ${EVENT_STREAM}`;
  throw new EngineError("serialization_error", message);
}

/**
 * An object as a server-sent event: one with no other keys than `event`, `data`, `id` and `retry`
 * gives these fields, any other value is the data.
 */
export function eventOf(item: unknown): string {
  const isObject = typeof item === "object" && item !== null && !Array.isArray(item);
  const keys = isObject ? Object.keys(item) : [];
  const isEvent = keys.length > 0 && keys.every((key) => EVENT_FIELDS.includes(key));
  const fields = (isEvent ? item : { data: item }) as Record<string, unknown>;
  let text = "";
  for (const name of EVENT_FIELDS) {
    const value = fields[name];
    if (value === undefined) continue;
    const line = typeof value === "string" ? value : JSON.stringify(value) ?? "null";
    // A line break would end the field; data may have several lines.
    for (
      const part of name === "data" ? line.split(/\r\n|\r|\n/) : [line.replace(/[\r\n]/g, " ")]
    ) {
      text += `${name}: ${part}\n`;
    }
  }
  return `${text}\n`;
}
