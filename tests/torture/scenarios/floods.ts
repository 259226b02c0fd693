/**
 * Floods: 1 to 16 peers send as fast as the engine reads, and a canary is served all the same.
 *
 * @module
 */
import { OP } from "../../fakes/raw_ws_client.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Batch, frameOf, FRESH, Peer } from "../peer.ts";
import { within } from "../waiting.ts";

/** One kind of flood. */
interface Flood {
  readonly name: string;
  /** What a flooding peer sends, again and again. */
  readonly messages: readonly string[];
  /** Path of the connection; default: that of workers. */
  readonly path?: string;
  /** Binary frames, for telemetry. */
  readonly isBinary?: boolean;
  /** Whether each message gets an answer, which then counts for the throughput. */
  readonly isAnswered?: boolean;
  /** What has to be there before. */
  prepare?(peer: Peer): Promise<void>;
}

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
/** After a flood the engine has to have handled what it read. */
const SETTLE_MS = 20_000;

/** See the top of this file. */
export const floods: Scenario = {
  name: "floods",
  summary: "1 to 16 flooding peers of each kind; the canary's p99 and longest wait",
  async run(campaign) {
    let subject: Subject | undefined;
    for (const flood of FLOODS) {
      if (!campaign.wants(flood.name)) continue;
      for (const count of campaign.choose(SHORT_PEERS, PEERS)) {
        // After a flood that it has not handled, the next one goes to a new engine.
        if (campaign.rows.at(-1)?.broken.length !== 0) {
          await subject?.[Symbol.asyncDispose]();
          subject = undefined;
        }
        subject ??= await campaign.subject();
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
  const options = { isCounting: true, ...flood.path === undefined ? {} : { path: flood.path } };
  using helper = await Peer.connect(engine.port, { isCounting: true });
  await flood.prepare?.(helper);
  const peers: Peer[] = [];
  for (let i = 0; i < count; i++) peers.push(await Peer.connect(engine.port, options));
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

/** How many of the answers say that nothing was done: a rate of refusals is not throughput. */
function refusedOf(peers: readonly Peer[]): string {
  const sum = (of: (peer: Peer) => number): number =>
    peers.reduce((all, peer) => all + of(peer), 0);
  const overloaded = sum(({ sample }) => sample.overloaded);
  if (overloaded === 0) return "";
  const share = 100 * overloaded / sum(({ sample }) => sample.size);
  return `, ${share.toFixed(1)} % of them overloaded`;
}

/** Sends until the time is over; returns the number of messages. */
async function pour(peer: Peer, flood: Flood, index: number, end: number): Promise<number> {
  const { messages, isBinary } = flood;
  const repeated = Array.from({ length: BATCH }, (_, i) => messages[i % messages.length]!);
  const batch = isBinary ? binaryBatch(messages) : new Batch(repeated, index * 1e9);
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

function call(functionId: string, data: string): string {
  return `{"type":"invokefunction","invocation_id":"f-${FRESH}","function_id":"${functionId}",` +
    `"data":${data}}`;
}

/** A call of which no answer is wanted. */
function send(functionId: string, data: string): string {
  return `{"type":"invokefunction","function_id":"${functionId}","action":{"type":"void"},` +
    `"data":${data}}`;
}

const TEXT = "x".repeat(60);
const KEYS = Array.from({ length: 50 }, (_, i) => `k${i}`);
const RECORD = `{"timeUnixNano":"1","severityNumber":9,"body":{"stringValue":"${TEXT}"}}`;
const LOGS = `LOGS{"resourceLogs":[{"resource":{"attributes":[]},"scopeLogs":[{"logRecords":[${
  Array.from({ length: 50 }, () => RECORD).join(",")
}]}]}]}`;
const SPAN = `{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7",` +
  `"name":"execute flood::f","kind":2,"startTimeUnixNano":"1","endTimeUnixNano":"2"}`;
const SPANS = `OTLP{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[${
  Array.from({ length: 50 }, () => SPAN).join(",")
}]}]}]}`;

/** Functions that lists have to read. */
async function registerMany(peer: Peer): Promise<void> {
  for (let i = 0; i < 200; i++) {
    void peer.send({ type: "registerfunction", id: `flood::f${i}`, description: TEXT });
  }
  await peer.settled(SETTLE_MS);
}

const FLOODS: readonly Flood[] = [
  {
    name: "calls never answered",
    messages: [call("flood::silent", `{"text":"${TEXT}"}`)],
    async prepare(peer) {
      await peer.send({ type: "registerfunction", id: "flood::silent" });
      await peer.settled(SETTLE_MS);
    },
  },
  {
    name: "calls of no function",
    messages: [call("flood::nothing", `{"text":"${TEXT}"}`)],
    isAnswered: true,
  },
  {
    name: "state sets",
    messages: KEYS.map((key) =>
      call("state::set", `{"scope":"flood","key":"${key}","value":{"text":"${TEXT}"}}`)
    ),
    isAnswered: true,
  },
  {
    name: "logs",
    messages: [send("engine::log::info", `{"message":"${TEXT}","data":{"n":1}}`)],
  },
  { name: "log frames", path: "/otel", isBinary: true, messages: [LOGS] },
  { name: "span frames", path: "/otel", isBinary: true, messages: [SPANS] },
  ...["functions", "workers", "traces", "logs"].map((what) => ({
    name: `lists of ${what}`,
    messages: [call(`engine::${what}::list`, "{}")],
    isAnswered: true,
    prepare: registerMany,
  })),
  {
    name: "registrations",
    messages: [
      `{"type":"registerfunction","id":"flood::f${FRESH}","description":"${TEXT}"}`,
      `{"type":"registerfunction","id":"flood::same","metadata":{"text":"${TEXT}"}}`,
      `{"type":"unregisterfunction","id":"flood::same"}`,
    ],
  },
  ...["http", "state", "log"].map((type) => {
    const config = type === "http" ? `{"api_path":"/f${FRESH}"}` : "{}";
    const ids = `"trigger_type":"${type}","function_id":"flood::f"`;
    return {
      name: `triggers of type ${type}`,
      messages: [
        `{"type":"registertrigger","id":"t${FRESH}",${ids},"config":${config}}`,
        `{"type":"registertrigger","id":"same",${ids},"config":${config}}`,
        `{"type":"unregistertrigger","id":"same","trigger_type":"${type}"}`,
      ],
    };
  }),
  { name: "pings", messages: ['{"type":"ping"}'], isAnswered: true },
  {
    name: "messages of 1 MiB",
    messages: [call("flood::nothing", `{"text":"${"x".repeat(1024 * 1024 / 20)}"}`)],
    isAnswered: true,
  },
];
