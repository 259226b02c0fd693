/**
 * Heavy bodies of HTTP requests: deep, large, and in as many chunks as bytes.
 *
 * @module
 */
import { type Heavy, honestJson, nested, type Setting } from "../heavy.ts";
import type { Peer } from "../peer.ts";
import { within } from "../waiting.ts";

/** After this the engine counts as stuck. */
const STUCK_MS = 12_000;
/** Room in a body of 16 MiB. */
const LARGE_BYTES = 15_000_000;
const CHUNKS_PER_WRITE = 10_000;
const HEAD = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n";

/** Makes `POST /heavy` a route to a function of the peer. */
export async function serveRoute(attacker: Peer): Promise<void> {
  await attacker.send({ type: "registerfunction", id: "heavy::http" });
  await attacker.send({
    type: "registertrigger",
    id: crypto.randomUUID(),
    trigger_type: "http",
    function_id: "heavy::http",
    config: { api_path: "/heavy", http_method: "POST" },
  });
  await attacker.settled(STUCK_MS);
}

/** The same, and the peer answers each request without reading its body. */
async function answerAll(attacker: Peer): Promise<void> {
  attacker.onText = (text) => {
    const id = /"invocation_id":"([^"]*)"/.exec(text.slice(0, 300))?.[1];
    if (id === undefined) return;
    const head = `{"type":"invocationresult","invocation_id":"${id}",`;
    void attacker.send(`${head}"function_id":"heavy::http","result":{"body":1}}`);
  };
  await serveRoute(attacker);
}

/** Posts a body; the status of the response. */
async function post({ engine }: Setting, body: Uint8Array): Promise<string> {
  const url = `http://127.0.0.1:${engine.httpPort}/heavy`;
  const headers = { "content-type": "application/json" };
  const signal = AbortSignal.timeout(STUCK_MS);
  const sent = body as Uint8Array<ArrayBuffer>;
  return await fetch(url, { method: "POST", body: sent, headers, signal }).then(
    async (response) => {
      await response.body?.cancel();
      return `HTTP ${response.status}`;
    },
    (error) => `no response: ${error.name}`,
  );
}

/** Posts one text of so many characters, each a chunk of its own; the status of the response. */
async function postInChunks({ engine }: Setting, count: number): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port: engine.httpPort });
  const quote = '1\r\n"\r\n';
  const encoder = new TextEncoder();
  const chunks = encoder.encode("1\r\nx\r\n".repeat(CHUNKS_PER_WRITE));
  const head = `POST /heavy HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${quote}`;
  await writeAll(conn, encoder.encode(head));
  for (let sent = 0; sent < count; sent += CHUNKS_PER_WRITE) await writeAll(conn, chunks);
  await writeAll(conn, encoder.encode(`${quote}0\r\n\r\n`));
  const into = new Uint8Array(100);
  const read = await conn.read(into);
  return read === null ? "closed" : new TextDecoder().decode(into.subarray(9, 12));
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

/** See the top of this file. */
export const BODY_ATTACKS: readonly Heavy[] = [
  {
    name: "deep HTTP body",
    async act(setting) {
      await answerAll(setting.attacker);
      const body = nested(setting.campaign.choose(500_000, 8_000_000));
      const status = await post(setting, body);
      return { done: `${status}, ${(body.length / 2 ** 20).toFixed(1)} MiB` };
    },
  },
  {
    name: "15 MB of JSON as an HTTP body",
    async act(setting) {
      await answerAll(setting.attacker);
      const body = honestJson(setting.campaign.choose(LARGE_BYTES / 8, LARGE_BYTES));
      const count = setting.campaign.choose(1, 3);
      const statuses = new Set<string>();
      for (let i = 0; i < count; i++) statuses.add(await post(setting, body));
      const broken = [...statuses].filter((status) => status !== "HTTP 200");
      return { done: `${count} requests, ${[...statuses].join(", ")}`, broken };
    },
  },
  {
    name: "HTTP bodies in chunks of one byte",
    async act(setting) {
      await answerAll(setting.attacker);
      const count = setting.campaign.choose(2, 16);
      const chunks = setting.campaign.choose(50_000, 500_000);
      const all = Array.from({ length: count }, () => postInChunks(setting, chunks));
      const statuses = await within(Promise.all(all), STUCK_MS * 2) ?? ["no response"];
      const broken = statuses.filter((status) => status !== "200");
      return { done: `${count} bodies of ${chunks} chunks, ${statuses[0]}`, broken };
    },
  },
];
