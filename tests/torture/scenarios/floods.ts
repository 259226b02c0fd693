/**
 * Floods: 1 to 16 peers send as fast as the engine reads, and a canary is served all the same.
 *
 * @module
 */
import { OP } from "../../fakes/raw_ws_client.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Callee } from "../callee.ts";
import { HttpPeer } from "../http_peer.ts";
import { Batch, frameOf, Peer } from "../peer.ts";
import { within } from "../waiting.ts";
import { CALLEE, type Flood, FLOODS, ROUTE, SETTLE_MS } from "./flood_kinds.ts";

const PEERS = [1, 4, 16];
const SHORT_PEERS = [4];
const FLOOD_MS = 4_000;
const SHORT_FLOOD_MS = 700;
const P99_MS = 50;
const MAX_MS = 250;
/** Messages of one write. */
const BATCH = 200;
/** What a write may take beyond the time of the flood. */
const STOP_MS = 1_000;

/** See the top of this file. */
export const floods: Scenario = {
  name: "floods",
  summary: "1 to 16 flooding peers of each kind; the canary's p99 and longest wait",
  async run(campaign) {
    let subject: Subject | undefined;
    for (const flood of FLOODS) {
      if (!campaign.wants(flood.name)) continue;
      if (flood.workers !== undefined) {
        await subject?.[Symbol.asyncDispose]();
        subject = undefined;
      }
      for (const count of campaign.choose(SHORT_PEERS, PEERS)) {
        // After a flood that it has not handled, the next one goes to a new engine.
        if (campaign.rows.at(-1)?.broken.length !== 0) {
          await subject?.[Symbol.asyncDispose]();
          subject = undefined;
        }
        subject ??= await campaign.subject({ workers: flood.workers ?? [] });
        await run(campaign, subject, flood, count);
      }
    }
    await subject?.[Symbol.asyncDispose]();
  },
};

async function run(
  campaign: Campaign,
  subject: Subject,
  flood: Flood,
  count: number,
): Promise<void> {
  const { engine } = subject;
  const name = `floods: ${flood.name}, ${count} ${count === 1 ? "peer" : "peers"}`;
  await using callee = new AsyncDisposableStack();
  if (flood.hasCallee) callee.use(await Callee.start(engine.port, CALLEE, 0));
  using helper = await Peer.connect(engine.port, { isCounting: true });
  await flood.prepare?.(helper);
  const peers: Flooder[] = [];
  for (let i = 0; i < count; i++) peers.push(await connect(flood, subject));
  try {
    await campaign.attack(name, subject, { p99Ms: P99_MS, maxMs: MAX_MS }, async () => {
      const ms = campaign.choose(SHORT_FLOOD_MS, FLOOD_MS);
      const start = performance.now();
      const sent = await Promise.all(peers.map((peer, i) => pour(peer, flood, i, start + ms)));
      const seconds = (performance.now() - start) / 1_000;
      const received = peers.reduce((sum, peer) => sum + peer.received, 0);
      const total = sent.reduce((sum, each) => sum + each, 0);
      const broken: string[] = [];
      const cut = peers.filter((peer) => peer.isOver);
      if (cut.length > 0) broken.push(`${cut.length} peers cut: ${(await cut[0]!.ended).reason}`);
      using other = await Peer.connect(engine.port);
      if (await other.settled(SETTLE_MS) === undefined) broken.push("the engine is stuck");
      const rate = (amount: number) => Math.round(amount / seconds).toLocaleString("en");
      const answers = flood.isAnswered ? `, ${rate(received)} answers/s${refusedOf(peers)}` : "";
      return { done: `${rate(total)} messages/s sent${answers}`, broken };
    });
  } finally {
    for (const peer of peers) peer.destroy();
  }
}

/** A peer that floods, by whichever way. */
type Flooder = Pick<Peer, "write" | "destroy" | "isOver" | "ended" | "received" | "sample">;

async function connect({ path, to = "workers" }: Flood, { engine }: Subject): Promise<Flooder> {
  const options = { isCounting: true, ...path === undefined ? {} : { path } };
  switch (to) {
    case "http":
      return await HttpPeer.connect(engine.httpPort);
    case "websocket":
      return await Peer.connect(engine.httpPort, { isCounting: true, path: ROUTE });
    case "workers":
      return await Peer.connect(engine.port, options);
  }
}

/** How many of the answers say that nothing was done: a rate of refusals is not throughput. */
function refusedOf(peers: readonly Flooder[]): string {
  const sum = (of: (peer: Flooder) => number): number =>
    peers.reduce((all, peer) => all + of(peer), 0);
  const overloaded = sum(({ sample }) => sample.overloaded);
  if (overloaded === 0) return "";
  const share = 100 * overloaded / sum(({ sample }) => sample.size);
  return `, ${share.toFixed(1)} % of them overloaded`;
}

/** Sends until the time is over; returns the number of messages. */
async function pour(peer: Flooder, flood: Flood, index: number, end: number): Promise<number> {
  const batch = batchOf(flood, index);
  let sent = 0;
  while (performance.now() < end && !peer.isOver) {
    const left = Math.max(0, end - performance.now());
    const written = peer.write(batch.renew()).then(() => true);
    // The engine reads no more than it can handle; what is unsent when the time is over stays so.
    if (await within(written, left + STOP_MS) === undefined) break;
    sent += batch.frames;
  }
  return sent;
}

function batchOf(
  { messages, isBinary, to }: Flood,
  index: number,
): Pick<Batch, "renew" | "frames"> {
  const repeated = Array.from({ length: BATCH }, (_, i) => messages[i % messages.length]!);
  if (to === "http") {
    const bytes = new TextEncoder().encode(repeated.join(""));
    return { frames: BATCH, renew: () => bytes };
  }
  return isBinary ? binaryBatch(messages) : new Batch(repeated, index * 1e9);
}

function binaryBatch(messages: readonly string[]): Pick<Batch, "renew" | "frames"> {
  const frames = messages.map((text) => frameOf(new TextEncoder().encode(text), OP.binary));
  const bytes = new Uint8Array(frames.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const frame of frames) {
    bytes.set(frame, at);
    at += frame.length;
  }
  return { frames: frames.length, renew: () => bytes };
}
