/**
 * Subscribers: thousands of clients follow one group of a stream that changes a hundred times a
 * second, some of them without ever reading, and the canary is served all the same.
 *
 * @module
 */
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { descriptorLimit } from "../../../engine/platform/descriptors.ts";
import type { Campaign, Scenario } from "../campaign.ts";
import { Peer } from "../peer.ts";
import { within } from "../waiting.ts";

const SUBSCRIBERS = 10_000;
const SHORT_SUBSCRIBERS = 200;
/** Of them, those that read nothing. */
const FROZEN_SHARE = 1 / 100;
const EVENTS_PER_SECOND = 100;
const SECONDS = 10;
const SHORT_SECONDS = 1;
/** Connections that are opened at once. */
const CONNECTING = 50;
/** Of the descriptors that the ports share, a process has these for either way to connect. */
const OWN_PORT_SHARE = 7 / 64;
const WORKER_PORT_SHARE = 26 / 64;
const P99_MS = 100;
const MAX_MS = 250;
const PEAK_MIB = 1_024;
/** How long the last events may take to reach everyone. */
const SETTLE_MS = 20_000;
const GROUP = { stream_name: "load", group_id: "g" };
const JOIN: JsonObject = {
  type: "join",
  data: { subscriptionId: "s", streamName: "load", groupId: "g" },
};

/** See the top of this file. */
export const subscribers: Scenario = {
  name: "subscribers",
  summary: "up to 10,000 clients follow one stream with 100 events a second",
  run: (campaign) => run(campaign),
};

async function run(campaign: Campaign): Promise<void> {
  const files = descriptorLimit();
  const [own, path] = [OWN_PORT_SHARE, WORKER_PORT_SHARE].map((share) => Math.floor(files * share));
  const count = campaign.choose(SHORT_SUBSCRIBERS, Math.min(SUBSCRIBERS, own! + path!));
  const name = `subscribers: ${count.toLocaleString("en")} of one stream`;
  if (!campaign.wants(name)) return;
  const workers = ["  - name: engine-stream", "    config: { port: 0, connections_max: 20000 }"];
  await using subject = await campaign.subject({ workers });
  const { engine } = subject;
  const frozen = Math.ceil(count * FROZEN_SHARE);
  // One way after the other, so that the frozen ones are at both.
  const addresses = Array.from(
    { length: count },
    (_, i) =>
      i % 2 === 0 && i / 2 < own!
        ? { port: engine.portOf("streams"), path: "/" }
        : { port: engine.port, path: "/stream" },
  );
  const peers = await connect(addresses, frozen);
  using writer = await Peer.connect(engine.port, { isCounting: true });
  try {
    const bounds = { p99Ms: P99_MS, maxMs: MAX_MS, peakMib: PEAK_MIB };
    await campaign.attack(name, subject, bounds, async () => {
      const seconds = campaign.choose(SHORT_SECONDS, SECONDS);
      const start = performance.now();
      const sent = await send(writer, seconds);
      const reading = peers.slice(frozen);
      // Each has got one message more, its first one.
      const isDone = () => reading.every(({ received }) => received > sent);
      const lateMs = await settle(isDone);
      const broken: string[] = [];
      const ended = reading.filter(({ isOver }) => isOver);
      if (ended.length > 0) broken.push(`${ended.length} cut: ${(await ended[0]!.ended).reason}`);
      const short = reading.filter(({ received }) => received <= sent).length;
      if (short > 0) broken.push(`${short} subscribers have missed events`);
      const took = (performance.now() - start - lateMs) / 1_000;
      const rate = Math.round(sent / took);
      const total = Math.round(sent * reading.length / (took + lateMs / 1_000));
      const done = `${sent} events, ${rate}/s, ${total.toLocaleString("en")} deliveries/s, ` +
        `the last ${Math.round(lateMs)} ms late, ${frozen} never read`;
      return { done, broken };
    });
  } finally {
    for (const peer of peers) peer.destroy();
  }
}

/** Where a subscriber connects. */
interface Address {
  readonly port: number;
  readonly path: string;
}

async function connect(addresses: readonly Address[], frozen: number): Promise<Peer[]> {
  const peers: Peer[] = [];
  for (let at = 0; at < addresses.length; at += CONNECTING) {
    const some = addresses.slice(at, at + CONNECTING).map(async ({ port, path }, i) => {
      const isFrozen = at + i < frozen;
      const peer = await Peer.connect(port, { path, isCounting: true, isFrozen });
      await peer.send(JOIN);
      return peer;
    });
    peers.push(...await Promise.all(some));
  }
  await settle(() => peers.slice(frozen).every(({ received }) => received > 0));
  return peers;
}

/** Makes events at their rate, whether or not the engine keeps up; returns their number. */
async function send(writer: Peer, seconds: number): Promise<number> {
  const total = seconds * EVENTS_PER_SECOND;
  const start = performance.now();
  for (let sent = 0; sent < total;) {
    const due = Math.min(total, (performance.now() - start) / 1_000 * EVENTS_PER_SECOND);
    for (; sent < due; sent++) {
      const data = { ...GROUP, type: "tick", data: { at: sent, text: "x".repeat(60) } };
      const function_id = "stream::send";
      void writer.send({ type: "invokefunction", function_id, action: { type: "void" }, data });
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return total;
}

/** Waits until something is so; returns the milliseconds that it took. */
async function settle(isSo: () => boolean): Promise<number> {
  const start = performance.now();
  const waiting = (async () => {
    while (!isSo() && performance.now() - start < SETTLE_MS) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  await within(waiting, SETTLE_MS + 1_000);
  return performance.now() - start;
}
