/**
 * Staged cuts: connections end at each stage of their lives, in each way that a network knows.
 * Calls that were on their way end, nothing of the peer is left, and others notice nothing.
 *
 * @module
 */
import { OP } from "../../fakes/raw_ws_client.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Ledger, summaryOf } from "../ledger.ts";
import { frameOf, headerOf, Peer } from "../peer.ts";
import { Proxy } from "../proxy.ts";
import { pause } from "../waiting.ts";

/** One way to end. */
interface Cut {
  readonly name: string;
  act(port: number): Promise<void>;
}

const HEARTBEAT_MS = 1_000;
const SILENCE_MS = 3_000;
const GONE_MS_MAX = 15_000;
const FUNCTION = "cuts::held";
const HEAD = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";

/** See the top of this file. */
export const cuts: Scenario = {
  name: "cuts",
  summary: "connections cut in heads, frames and closes, delayed and black-holed",
  async run(campaign) {
    if (!campaign.wants("cuts")) return;
    const engine = [`heartbeat_ms: ${HEARTBEAT_MS}`, `silence_ms: ${SILENCE_MS}`];
    await using subject = await campaign.subject({ engine });
    await campaign.attack("cuts: at each stage", subject, { maxMs: 250 }, async () => {
      const rounds = campaign.choose(3, 50);
      for (let i = 0; i < rounds; i++) {
        await Promise.all(CUTS.map(({ act }) => act(subject.engine.port)));
      }
      const broken = await leftovers(subject);
      return { done: `${rounds} × ${CUTS.map(({ name }) => name).join(", ")}`, broken };
    });
    await campaign.attack(
      "cuts: calls of a callee that is cut",
      subject,
      { maxMs: 250 },
      () => callsCut(campaign, subject),
    );
  },
};

const CUTS: readonly Cut[] = [
  { name: "mid-head", act: (port) => sendThenClose(port, HEAD.slice(0, 40)) },
  { name: "after the head", act: (port) => sendThenClose(port, `${HEAD}\r\n`) },
  { name: "no byte", act: (port) => sendThenClose(port, "") },
  {
    name: "mid-header",
    act: (port) => asWorker(port, (peer) => peer.write(headerOf(100_000).subarray(0, 5))),
  },
  {
    name: "mid-frame",
    act: (port) =>
      asWorker(port, (peer) => peer.write(frameOf(new Uint8Array(9_000)).subarray(0, 5_000))),
  },
  {
    name: "mid-message",
    act: (port) =>
      asWorker(port, (peer) => peer.write(frameOf(new Uint8Array(9_000), OP.text, false))),
  },
  {
    name: "mid-close",
    act: (port) => asWorker(port, (peer) => peer.write(closeFrame().subarray(0, 3))),
  },
  { name: "after close", act: (port) => asWorker(port, (peer) => peer.write(closeFrame())) },
  { name: "half-closed", act: (port) => asWorker(port, (peer) => peer.endWriting()) },
];

async function sendThenClose(port: number, text: string): Promise<void> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(text));
  await pause(5);
}

/** A worker with a function, a trigger and a call on its way, until it ends. */
async function asWorker(port: number, end: (peer: Peer) => Promise<void>): Promise<void> {
  using peer = await Peer.connect(port);
  await peer.announce("cuts-worker");
  await peer.send({ type: "registerfunction", id: `cuts::f${Math.random()}` });
  const config = { api_path: `/cuts/${Math.random()}` };
  const ids = { id: crypto.randomUUID(), trigger_type: "http", function_id: "cuts::f" };
  await peer.send({ type: "registertrigger", ...ids, config });
  await peer.send({ type: "invokefunction", invocation_id: "1", function_id: "canary::echo" });
  await end(peer);
  await pause(5);
}

function closeFrame(): Uint8Array {
  return frameOf(Uint8Array.of(1000 >> 8, 1000 & 255), OP.close);
}

/** What is left of workers that have gone, when the engine has had time to notice. */
async function leftovers({ engine }: Subject): Promise<string[]> {
  using reader = await Peer.connect(engine.port);
  const end = performance.now() + GONE_MS_MAX;
  for (;;) {
    const left: string[] = [];
    for (const what of ["workers", "functions", "registered-triggers"]) {
      const text = JSON.stringify(await reader.call(`engine::${what}::list`, {}));
      const count = text.split(/"cuts-worker"|"cuts::f/).length - 1;
      if (count > 0) left.push(`${count} ${what} of workers that have gone`);
    }
    if (left.length === 0 || performance.now() > end) return left;
    await pause(100);
  }
}

/** Calls to a worker behind a proxy that is cut, and that swallows everything. */
async function callsCut(campaign: Campaign, { engine }: Subject) {
  const broken: string[] = [];
  const done: string[] = [];
  using caller = await Peer.connect(engine.port);
  for (const how of ["delay", "cut", "hole"] as const) {
    await using proxy = new Proxy(engine.port);
    using worker = await Peer.connect(proxy.port);
    const isAnswering = how === "delay";
    worker.onText = (text) => {
      if (!text.startsWith('{"type":"invokefunction"') || !isAnswering) return;
      const ids = /"invocation_id":"[^"]*","function_id":"[^"]*"/.exec(text)![0];
      void worker.send(`{"type":"invocationresult",${ids},"result":1}`);
    };
    await worker.send({ type: "registerfunction", id: FUNCTION });
    await worker.settled(GONE_MS_MAX);
    const ledger = new Ledger(caller, how);
    if (how !== "cut") proxy.mode = how;
    const start = performance.now();
    for (let i = 0; i < campaign.choose(20, 500); i++) await ledger.call(FUNCTION, 60_000);
    await pause(50);
    if (how === "cut") proxy.cut();
    const limitMs = how === "hole" ? SILENCE_MS + HEARTBEAT_MS : 2_000;
    await ledger.close(limitMs);
    const ms = performance.now() - start;
    broken.push(...ledger.problems().map((problem) => `${how}: ${problem}`));
    const expected = isAnswering ? ledger.results : ledger.errors.get("invocation_stopped") ?? 0;
    if (expected !== ledger.sent) broken.push(`${how}: ${summaryOf([ledger])}`);
    done.push(`${how}: ${summaryOf([ledger])} in ${(ms / 1e3).toFixed(1)} s`);
  }
  return { done: done.join("; "), broken };
}
