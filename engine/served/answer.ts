/**
 * From the answer of a URL to the outcome of a call: PROTOCOL 2.2.
 *
 * A body is counted while it arrives and held within the memory of the process; one that is too
 * large ends the request. What is no success and what is no JSON becomes an error. JSON is passed
 * on as it came, byte for byte, after it was checked: a result is part of a frame.
 *
 * @module
 */
import type { IncomingMessage } from "node:http";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { parsingProblem } from "../core/wire/members.ts";
import type { TaskQueue } from "../platform/task_queue.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { requestFailure } from "./request_failure.ts";

/** Largest body that is read of an answer that is no success. */
export const ERROR_BYTES_MAX = 64 * 1024;
/**
 * Parts in which a body may come, beside one per {@linkcode PART_BYTES}: each part costs a piece of
 * work and an object, so that 16 bodies of 500,000 parts took 6 s and 2 GiB.
 */
export const PARTS_MAX = 10_000;
const PART_BYTES = 64;
/** Characters of a code, and of a message, in such a body. */
const CODE_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 4_096;
/** JSON from this size on is checked one value after another. */
const LARGE_BYTES = 1024 * 1024;

/** What {@linkcode readAnswer} works with. */
export interface AnswerPorts {
  /** Largest body. */
  readonly limitBytes: number;
  readonly memory: MemoryBudget;
  /** Ends the reading; its reason is what is thrown. */
  readonly signal: AbortSignal;
  /** Checks of large JSON, one after another. */
  readonly checks: TaskQueue;
}

/** JSON of an answer with room around it, to be disposed of. */
export interface ResultFrame extends Disposable {
  /** `head`, the JSON and `tail`; `undefined` for an empty body. */
  readonly bytes: Uint8Array | undefined;
}

const encoder = new TextEncoder();

/**
 * Reads the answer of `url`: the JSON between `head` and `tail`.
 *
 * @throws {EngineError} `http_error` or the code in the body, `invalid_response`,
 * `http_request_failed`; the reason of the signal.
 */
export async function readAnswer(
  url: URL,
  answer: IncomingMessage,
  head: string,
  ports: AnswerPorts,
): Promise<ResultFrame> {
  const status = answer.statusCode ?? 0;
  const isSuccess = status >= 200 && status < 300;
  const body = new Body(ports.memory);
  try {
    const coding = answer.headers["content-encoding"];
    if (!isSuccess) throw await errorOf(url, status, answer, body, ports);
    if (coding !== undefined && coding !== "identity") {
      throw invalid(url, `is encoded as ${coding.slice(0, 64)}, which was not asked for`);
    }
    const isWhole = await body.read(answer, ports.limitBytes, ports.signal).catch((thrown) => {
      throw ports.signal.aborted ? ports.signal.reason : requestFailure(url, thrown);
    });
    if (isWhole === "no memory") throw requestFailure(url, NO_MEMORY);
    if (isWhole === "too many parts") {
      throw invalid(url, `comes in more than ${PARTS_MAX} small parts; let it come in larger ones`);
    }
    if (isWhole === "too large") {
      const { limitBytes } = ports;
      throw invalid(url, `has more than ${limitBytes} bytes (engine.max_message_bytes)`);
    }
    const frame = body.between(encoder.encode(head), "}");
    const start = encoder.encode(head).length;
    const isEmpty = isBlank(frame, start, frame.length - 1);
    if (!isEmpty) await checkJson(url, answer, frame.subarray(start, frame.length - 1), ports);
    return { bytes: isEmpty ? undefined : frame, [Symbol.dispose]: () => body.release() };
  } catch (thrown) {
    answer.destroy();
    body.release();
    throw thrown;
  }
}

const NO_MEMORY = "answers with more than the engine's memory has room for now (engine.memory_mb)";

/** The error of an answer that is no success. */
async function errorOf(
  url: URL,
  status: number,
  answer: IncomingMessage,
  body: Body,
  { signal }: AnswerPorts,
): Promise<EngineError> {
  const read = await body.read(answer, ERROR_BYTES_MAX, signal).catch(() => "broken");
  if (signal.aborted) throw signal.reason;
  const { code, message } = read === "whole" ? errorIn(body.between(new Uint8Array(), "")) : {};
  const text = message ?? `HTTP ${status}`;
  const details = { url: url.origin, status };
  // Whether the handler had started is not known.
  return new EngineError(code ?? "http_error", text, { details, retryable: false });
}

/** Code and message of a JSON body, as far as it has them. */
function errorIn(bytes: Uint8Array): { code?: string; message?: string } {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(bytes)) as { error?: JsonObject };
    const { code, message } = error ?? {};
    const isCode = typeof code === "string" && code !== "" && code.length <= CODE_CHARS_MAX;
    return {
      ...isCode && { code },
      ...typeof message === "string" && { message: message.slice(0, MESSAGE_CHARS_MAX) },
    };
  } catch {
    return {}; // It is not JSON, or something else than an object.
  }
}

/** @throws {EngineError} `invalid_response` when the bytes are no JSON that may be passed on. */
async function checkJson(
  url: URL,
  answer: IncomingMessage,
  bytes: Uint8Array,
  { checks, signal }: AnswerPorts,
): Promise<void> {
  const check = (): void => {
    const costly = parsingProblem(bytes, 0, bytes.length);
    if (costly !== undefined) throw invalid(url, costly);
    try {
      JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch {
      const type = answer.headers["content-type"]?.slice(0, 128) ?? "no content-type";
      throw invalid(url, `is no JSON (${type}); a function has to answer with JSON or nothing`);
    }
  };
  if (bytes.length < LARGE_BYTES) return check();
  await checks.run(async () => {
    await new Promise((resolve) => setTimeout(resolve)); // Others have their turn in between.
    if (signal.aborted) throw signal.reason;
    check();
  });
}

function invalid(url: URL, why: string): EngineError {
  const details = { url: url.origin };
  return new EngineError("invalid_response", `The answer of ${url.origin} ${why}`, { details });
}

const BOM = [0xef, 0xbb, 0xbf];

/** Whether there is nothing but white space. A byte order mark becomes white space. */
function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  if (BOM.every((code, at) => start + at < end && bytes[start + at] === code)) {
    bytes.fill(0x20, start, start + BOM.length);
  }
  for (let at = start; at < end; at++) {
    const code = bytes[at]!;
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false;
  }
  return true;
}

/** Why no more of a body is read. */
type Stopped = "too large" | "too many parts" | "no memory";

/** A body that is collected. */
class Body {
  readonly #memory: MemoryBudget;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #taken = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** Reads until the end, or as far as there is room. */
  async read(
    answer: IncomingMessage,
    limitBytes: number,
    signal: AbortSignal,
  ): Promise<"whole" | Stopped> {
    const end = (): void => void answer.destroy();
    if (signal.aborted) throw signal.reason;
    signal.addEventListener("abort", end, { once: true });
    try {
      if (Number(answer.headers["content-length"] ?? 0) > limitBytes) return "too large";
      const stopped = await this.#collect(answer, limitBytes);
      if (stopped !== undefined) return stopped;
      if (signal.aborted) throw signal.reason;
      return "whole";
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  /**
   * Takes the parts as they come, until one has no place. An iterator would have up to 65,536 parts
   * of one byte in the stream's buffer before it counts the first.
   */
  #collect(answer: IncomingMessage, limitBytes: number): Promise<Stopped | undefined> {
    return new Promise((resolve, reject) => {
      answer.on("error", reject);
      answer.on("close", () => reject(new Error("the connection was closed")));
      answer.on("end", () => resolve(undefined));
      answer.on("data", (chunk: Uint8Array) => {
        const stopped = answer.destroyed ? undefined : this.#add(chunk, limitBytes);
        if (stopped === undefined) return;
        resolve(stopped);
        answer.destroy();
      });
    });
  }

  #add(chunk: Uint8Array, limitBytes: number): Stopped | undefined {
    if (this.#bytes + chunk.length > limitBytes) return "too large";
    // Once as it came, and once as part of the frame.
    if (!this.#memory.take("bodies", 2 * chunk.length)) return "no memory";
    this.#taken += 2 * chunk.length;
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    return this.#chunks.length > PARTS_MAX + this.#bytes / PART_BYTES
      ? "too many parts"
      : undefined;
  }

  /** The whole body in one buffer. */
  between(head: Uint8Array, tail: string): Uint8Array {
    const frame = new Uint8Array(head.length + this.#bytes + tail.length);
    frame.set(head);
    let at = head.length;
    for (const chunk of this.#chunks) {
      frame.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks = [];
    frame.set(encoder.encode(tail), at);
    return frame;
  }

  release(): void {
    if (this.#taken > 0) this.#memory.release("bodies", this.#taken);
    this.#taken = 0;
    this.#chunks = [];
  }
}
