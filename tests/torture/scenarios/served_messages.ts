/**
 * Heavy messages for HTTP-served functions: payloads that go to a URL, and what the URL answers.
 *
 * @module
 */
import {
  callWith,
  type Heavy,
  honestJson,
  joined,
  list,
  mib,
  nested,
  repeated,
  type Setting,
  STUCK_MS,
} from "../heavy.ts";

/** Lines below `engine:` in config.yaml. */
export const SERVED_ENGINE: readonly string[] = [
  'http_functions: { allow: ["http://127.0.0.1:*"], allow_private: true }',
];

const encoder = new TextEncoder();
const HONEST_BYTES = 60 * 1024 * 1024;
const HONEST_WAIT_MS_MAX = 1_000;
/** Bytes of one write of an answer in small chunks. */
const CHUNKS_PER_WRITE = 10_000;
/** Calls that wait for their answers at once. */
const CALLS_AT_ONCE = 16;

/** Writes the answer of a request whose head and body were read. */
type Answer = (conn: Deno.Conn) => Promise<void>;

/** A service that reads requests and answers each with what a test makes of bytes. */
class Service implements AsyncDisposable {
  readonly url: string;
  readonly #listener: Deno.TcpListener;
  readonly #answer: Answer;
  readonly #running: Promise<void>;

  constructor(answer: Answer) {
    this.#answer = answer;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.url = `http://127.0.0.1:${this.#listener.addr.port}/`;
    this.#running = this.#accept();
  }

  async #accept(): Promise<void> {
    const serving: Promise<void>[] = [];
    for await (const conn of this.#listener) serving.push(this.#serve(conn));
    await Promise.all(serving);
  }

  /** A connection that the engine ends early is what some answers are for. */
  async #serve(conn: Deno.Conn): Promise<void> {
    try {
      await readRequest(conn);
      await this.#answer(conn);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
    } finally {
      conn.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#running;
  }
}

/** Reads a request with a `content-length`. */
async function readRequest(conn: Deno.Conn): Promise<void> {
  const into = new Uint8Array(64 * 1024);
  let head = "";
  let left = Infinity;
  while (left > 0) {
    const count = await conn.read(into);
    if (count === null) return;
    if (left !== Infinity) {
      left -= count;
      continue;
    }
    head += new TextDecoder("latin1").decode(into.subarray(0, count));
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) continue;
    const length = Number(/^content-length: *(\d+)/im.exec(head.slice(0, end))?.[1] ?? 0);
    left = length - (head.length - end - 4);
  }
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

/** An answer with a status and a body of a known length. */
function whole(body: Uint8Array, status: string = "200 OK", more: string = ""): Answer {
  const length = `Content-Length: ${body.length}\r\n${more}Connection: close`;
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`;
  return (conn) => writeAll(conn, joined(head, body));
}

/** An answer of one text, each character of which is a chunk of its own. */
function inChunks(count: number): Answer {
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  const chunks = encoder.encode("1\r\nx\r\n".repeat(CHUNKS_PER_WRITE));
  return async (conn) => {
    await writeAll(conn, encoder.encode(`${head}1\r\n"\r\n`));
    for (let sent = 0; sent < count; sent += CHUNKS_PER_WRITE) await writeAll(conn, chunks);
    await writeAll(conn, encoder.encode('1\r\n"\r\n0\r\n\r\n'));
  };
}

/** Calls a function that the service answers; `times` at once. */
async function callServed(
  setting: Setting,
  answer: Answer,
  data: Uint8Array | string = "{}",
  times: number = 1,
): Promise<string> {
  await using service = new Service(answer);
  const { attacker } = setting;
  const invocation = { url: service.url, method: "POST", timeout_ms: STUCK_MS };
  await attacker.send({ type: "registerfunction", id: "heavy::served", invocation });
  await attacker.settled(STUCK_MS);
  const all = Array.from({ length: times }, () => callWith(setting, "heavy::served", data));
  const outcomes = new Set(await Promise.all(all));
  await attacker.send({ type: "unregisterfunction", id: "heavy::served" });
  return `${times} × ${[...outcomes].join(", ")}`;
}

/** The same for some answers, one after the other. */
async function callAll(setting: Setting, bodies: readonly Uint8Array[]): Promise<string> {
  const done: string[] = [];
  for (const body of bodies) {
    const outcome = await callServed(setting, whole(body));
    done.push(`${mib(body.length)}: ${outcome.slice(outcome.lastIndexOf(": ") + 2)}`);
  }
  return done.join(", ");
}

/** See the top of this file. */
export const SERVED_ATTACKS: readonly Heavy[] = [
  {
    name: "heavy payloads for an HTTP-served function",
    async act(setting) {
      const count = setting.campaign.choose(50_000, 900_000);
      const members = list(count, (i) => `{"k${i}":1}`);
      const done: string[] = [];
      for (const payload of [nested(count * 5), encoder.encode(members)]) {
        done.push(await callServed(setting, whole(encoder.encode("1")), payload));
      }
      return { done: done.join("; ") };
    },
  },
  {
    name: "60 MiB of JSON for an HTTP-served function, and as its answer",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const json = honestJson(setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES));
      return { done: await callServed(setting, whole(json), json) };
    },
  },
  {
    name: "deep, wide and broken answers of a URL",
    async act(setting) {
      const count = setting.campaign.choose(50_000, 900_000);
      const wide = `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",")}}`;
      const bodies = [
        nested(count * 5),
        nested(count * 10, true),
        encoder.encode(wide),
        repeated('"', "x", count * 10, ""),
        repeated("", "\xff", count * 5, ""),
      ];
      return { done: await callAll(setting, bodies) };
    },
  },
  {
    name: "16 answers of a URL in chunks of one byte",
    async act(setting) {
      const chunks = setting.campaign.choose(20_000, 500_000);
      const times = setting.campaign.choose(2, CALLS_AT_ONCE);
      return { done: await callServed(setting, inChunks(chunks), "{}", times) };
    },
  },
  {
    name: "large errors and heads of a URL",
    async act(setting) {
      const bytes = setting.campaign.choose(1_000_000, 20_000_000);
      const error = repeated('{"error":{"code":"E","message":"', "m", bytes, '"}}');
      const failed = await callServed(setting, whole(error, "500 Internal Server Error"));
      const headers = Array.from({ length: bytes / 50 }, (_, i) => `X-${i}: ${"h".repeat(30)}\r\n`);
      const headed = await callServed(
        setting,
        whole(encoder.encode("1"), "200 OK", headers.join("")),
      );
      return { done: `${failed}; ${headed}` };
    },
  },
];
