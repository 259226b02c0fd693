/**
 * Soak: mixed load at a rate that leaves the engine half idle, with workers that join and leave,
 * for minutes or hours. Resident memory may not grow once the engine is warm.
 *
 * @module
 */
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { OP } from "../../fakes/raw_ws_client.ts";
import { frameOf, Peer } from "../peer.ts";
import { slopeOf } from "../report.ts";
import { pause } from "../waiting.ts";

/** Growth that is allowed in a run of at least {@linkcode BOUND_MINUTES}. */
const SLOPE_MIB_PER_MINUTE = 0.2;
const BOUND_MINUTES = 60;
/** Tables and heaps find their size in this part of the run, at most in so many minutes. */
const WARM_UP_SHARE = 1 / 3;
const WARM_UP_MINUTES_MAX = 15;
const SAMPLE_MS = 1_000;
const SHORT_MS = 6_000;
const CALLERS = 4;
/** Of each kind of load. */
const PAUSE_MS = 5;
const KEYS = 200;
const WAIT_MS_MAX = 250;
const CALL_MS_MAX = 10_000;

/** What was done so far. */
interface Counts {
  calls: number;
  writes: number;
  requests: number;
  joins: number;
  telemetry: number;
  failed: number;
}

/** See the top of this file. */
export const soak: Scenario = {
  name: "soak",
  summary: "mixed load for --minutes: growth of memory after a warm-up, and the canary",
  async run(campaign) {
    if (!campaign.wants("soak")) return;
    await using subject = await campaign.subject();
    await campaign.attack(
      "soak",
      subject,
      { maxMs: WAIT_MS_MAX },
      () => soakFor(campaign, subject),
    );
  },
};

async function soakFor(campaign: Campaign, subject: Subject) {
  const ms = campaign.isShort ? SHORT_MS : campaign.options.minutes * 60_000;
  const counts: Counts = { calls: 0, writes: 0, requests: 0, joins: 0, telemetry: 0, failed: 0 };
  const start = performance.now();
  const end = start + ms;
  const isOver = (): boolean => performance.now() > end || !subject.engine.isAlive;
  const samples: { minutes: number; mib: number }[] = [];
  await using worker = await echoWorker(subject.engine.port, "soak::echo");
  await Promise.all([
    ...Array.from({ length: CALLERS }, () => makeCalls(subject, counts, isOver)),
    writeState(campaign, subject, counts, isOver),
    sendRequests(subject, counts, isOver),
    joinAndLeave(campaign, subject, counts, isOver),
    sendTelemetry(subject, counts, isOver),
    (async () => {
      while (!isOver()) {
        const { rss_mib } = await subject.canary.report();
        samples.push({ minutes: (performance.now() - start) / 60_000, mib: rss_mib });
        await pause(SAMPLE_MS);
      }
    })(),
  ]);
  void worker;
  return outcomeOf(campaign, counts, samples, ms / 60_000);
}

function outcomeOf(
  campaign: Campaign,
  counts: Counts,
  samples: readonly { minutes: number; mib: number }[],
  minutes: number,
) {
  const warmUp = Math.min(minutes * WARM_UP_SHARE, WARM_UP_MINUTES_MAX);
  const warm = samples.filter((sample) => sample.minutes >= warmUp);
  const slope = slopeOf(warm.map(({ minutes, mib }) => [minutes, mib]));
  const broken: string[] = [];
  if (counts.failed > 0) broken.push(`${counts.failed} calls, requests or writes failed`);
  if (minutes >= BOUND_MINUTES && slope > SLOPE_MIB_PER_MINUTE) {
    broken.push(`memory grew by ${slope.toFixed(2)} MiB a minute; the bound is 0.2`);
  }
  const { calls, writes, requests, joins, telemetry } = counts;
  const done =
    `${minutes.toFixed(1)} min: ${calls} calls, ${writes} writes, ${requests} requests, ` +
    `${joins} joins, ${telemetry} telemetry frames; ${warm[0]?.mib.toFixed(0)} to ` +
    `${warm.at(-1)?.mib.toFixed(0)} MiB, ` +
    (campaign.isShort ? "too short for a slope" : `slope ${slope.toFixed(2)} MiB/min`);
  return { done, broken };
}

/** A worker that answers every call of its function. */
async function echoWorker(port: number, id: string): Promise<Peer & AsyncDisposable> {
  const peer = await Peer.connect(port);
  peer.onText = (text) => {
    if (!text.startsWith('{"type":"invokefunction"')) return;
    const [, call, name] = /"invocation_id":"([^"]*)","function_id":"([^"]*)"/.exec(text)!;
    const ids = `"invocation_id":"${call}","function_id":"${name}"`;
    void peer.send(`{"type":"invocationresult",${ids},"result":{"body":{"ok":true}}}`);
  };
  await peer.announce("soak-worker");
  await peer.send({ type: "registerfunction", id });
  const route = { api_path: `/${id.replace("::", "/")}`, http_method: "POST" };
  const ids = { id: crypto.randomUUID(), trigger_type: "http", function_id: id };
  await peer.send({ type: "registertrigger", ...ids, config: route });
  await peer.settled(CALL_MS_MAX);
  return Object.assign(peer, { [Symbol.asyncDispose]: () => Promise.resolve(peer.destroy()) });
}

async function makeCalls({ engine }: Subject, counts: Counts, isOver: () => boolean) {
  using caller = await Peer.connect(engine.port);
  await caller.announce("soak-caller");
  for (; !isOver(); counts.calls++) {
    const answer = await caller.call("soak::echo", { text: "x".repeat(200) }, CALL_MS_MAX);
    if (answer === undefined || answer.error) counts.failed++;
    await pause(PAUSE_MS);
  }
}

async function writeState(
  { random }: Campaign,
  { engine }: Subject,
  counts: Counts,
  isOver: () => boolean,
) {
  using caller = await Peer.connect(engine.port);
  for (; !isOver(); counts.writes++) {
    const place = { scope: "soak", key: `k${random.below(KEYS)}` };
    const value = "v".repeat(random.below(4_000));
    const answer = random.once(10)
      ? await caller.call("state::delete", place, CALL_MS_MAX)
      : await caller.call("state::set", { ...place, value }, CALL_MS_MAX);
    if (answer === undefined || answer.error) counts.failed++;
    await pause(PAUSE_MS);
  }
}

async function sendRequests({ engine }: Subject, counts: Counts, isOver: () => boolean) {
  const url = `http://127.0.0.1:${engine.httpPort}/soak/echo`;
  for (; !isOver(); counts.requests++) {
    const signal = AbortSignal.timeout(CALL_MS_MAX);
    const body = JSON.stringify({ text: "x".repeat(500) });
    const headers = { "content-type": "application/json" };
    const ok = await fetch(url, { method: "POST", body, headers, signal })
      .then(async (response) => (await response.json()).ok === true, () => false);
    if (!ok) counts.failed++;
    await pause(PAUSE_MS);
  }
}

async function joinAndLeave(
  { random }: Campaign,
  { engine }: Subject,
  counts: Counts,
  isOver: () => boolean,
) {
  while (!isOver()) {
    const id = `soak::guest${random.below(1_000)}`;
    await using guest = await echoWorker(engine.port, id);
    using caller = await Peer.connect(engine.port);
    const answer = await caller.call(id, {}, CALL_MS_MAX);
    if (answer === undefined || answer.error) counts.failed++;
    // Half of them leave with a call of theirs on its way.
    if (random.once(2)) void guest.call("soak::echo", {}, 1_000);
    counts.joins++;
    await pause(10 * PAUSE_MS);
  }
}

async function sendTelemetry({ engine }: Subject, counts: Counts, isOver: () => boolean) {
  using telemetry = await Peer.connect(engine.port, { path: "/otel" });
  const encoder = new TextEncoder();
  for (; !isOver(); counts.telemetry += 2) {
    const now = `${Date.now()}000000`;
    const record = { timeUnixNano: now, severityNumber: 9, body: { stringValue: "soak" } };
    const logs = { resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] };
    const ids = { traceId: hex(32), spanId: hex(16), name: "execute soak::echo", kind: 2 };
    const span = { ...ids, startTimeUnixNano: now, endTimeUnixNano: now };
    const spans = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
    await telemetry.write(frameOf(encoder.encode(`LOGS${JSON.stringify(logs)}`), OP.binary));
    await telemetry.write(frameOf(encoder.encode(`OTLP${JSON.stringify(spans)}`), OP.binary));
    await pause(4 * PAUSE_MS);
  }
}

function hex(digits: number): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, digits).padEnd(digits, "0");
}
