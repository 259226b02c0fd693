/**
 * Queues: the engine is killed again and again while jobs come and go, a million jobs wait, and one
 * of a hundred lanes is blocked.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { until } from "../../fakes/until.ts";
import type { Campaign, Scenario } from "../campaign.ts";
import type { Engine } from "../engine.ts";
import { Peer } from "../peer.ts";
import { pause } from "../waiting.ts";

const FUNCTION = "torture::job";
const CONCURRENCY = 5;
const PRODUCERS = 64;
const SETTLE_MS_MAX = 60_000;
/** Jobs that are on their way to the disk while a million are added. */
const IN_FLIGHT = 1_024;
/** While a million jobs come, and when they wait. */
const PEAK_MIB = 450;
const WAITING_MIB = 250;
/** After so long without use, the store gives its cache back. */
const IDLE_MS = 35_000;
const P99_MS = 50;
const MAX_MS = 250;
const LANES = 100;
const JOBS_OF_A_LANE = 20;
/** How long the other lanes may take while one is blocked, and the short form's. */
const LANES_MS = 10_000;
const WORKERS = [
  "  - name: engine-queue",
  "    config:",
  "      queues:",
  `        kills: { concurrency: ${CONCURRENCY} }`,
  "        lanes: { type: fifo, message_group_field: lane, concurrency: 200 }",
];

/** See the top of this file. */
export const queues: Scenario = {
  name: "queues",
  summary: "kill -9 while jobs come and go, a million that wait, a blocked lane of a hundred",
  async run(campaign) {
    if (campaign.wants("queues: kill -9")) await kills(campaign);
    if (campaign.wants("queues: many jobs wait")) await many(campaign);
    if (campaign.wants("queues: a blocked lane")) await lanes(campaign);
  },
};

/** What became of the jobs, over all lives of the engine. */
interface Ledger {
  readonly acknowledged: Set<number>;
  /** How often each job was done. */
  readonly done: Map<number, number>;
  next: number;
}

async function kills(campaign: Campaign): Promise<void> {
  const start = performance.now();
  const directory = await Deno.makeTempDir({ prefix: "engine-torture-queues-" });
  const ledger: Ledger = { acknowledged: new Set(), done: new Map(), next: 0 };
  const rounds = campaign.choose(2, 50);
  const jobs = campaign.choose(400, 10_000);
  const broken: string[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      await using engine = await campaign.engine({ directory, workers: WORKERS });
      using _worker = await work(engine, (job) => count(ledger, job as number));
      const producing = produce(engine, ledger, jobs * round / rounds);
      // Somewhere within its jobs, those of the rounds before included.
      await pause(campaign.random.below(campaign.choose(300, 600)));
      engine.signal("SIGKILL");
      await engine.ended;
      await producing;
    }
    await using engine = await campaign.engine({ directory, workers: WORKERS });
    using _worker = await work(engine, (job) => count(ledger, job as number));
    await produce(engine, ledger, jobs);
    const isDone = () => [...ledger.acknowledged].every((job) => ledger.done.has(job));
    await until(isDone, () => engine.output, SETTLE_MS_MAX).catch(() => {});
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
  const { acknowledged, done } = ledger;
  const lost = [...acknowledged].filter((job) => !done.has(job)).length;
  const again = [...done.values()].reduce((sum, times) => sum + times - 1, 0);
  if (lost > 0) broken.push(`${lost} acknowledged jobs were not done`);
  const running = rounds * CONCURRENCY;
  if (again > running) broken.push(`${again} done again, though at most ${running} were running`);
  if (acknowledged.size < jobs) broken.push(`only ${acknowledged.size} jobs were acknowledged`);
  campaign.add({
    scenario: "queues: kill -9",
    done: `${rounds} kills, ${acknowledged.size} jobs acknowledged, ${lost} lost, ${again} again`,
    broken,
    seconds: (performance.now() - start) / 1_000,
  });
}

function count({ done }: Ledger, job: number): Promise<void> {
  done.set(job, (done.get(job) ?? 0) + 1);
  return pause(1);
}

/** Enqueues until so many are acknowledged, or the engine is gone. */
async function produce({ port }: Engine, ledger: Ledger, enough: number): Promise<void> {
  const { acknowledged } = ledger;
  if (acknowledged.size >= enough) return;
  using peer = await Peer.connect(port).catch(() => undefined);
  if (!peer) return; // It is gone already.
  await Promise.all(Array.from({ length: PRODUCERS }, async () => {
    while (!peer.isOver && acknowledged.size < enough) {
      const job = ledger.next++;
      const request = { queue: "kills", function_id: FUNCTION, data: job };
      const answer = await peer.call("engine::queue::enqueue", request);
      if (answer !== undefined && !answer.error) acknowledged.add(job);
    }
  }));
}

/** A worker whose function does the jobs. */
async function work(engine: Engine, handle: (data: Json) => Promise<void>): Promise<Peer> {
  const peer = await Peer.connect(engine.port);
  peer.onText = (text) => {
    const { type, invocation_id, function_id, data = null } = JSON.parse(text) as JsonObject;
    if (type !== "invokefunction") return;
    void handle(data).then(() => {
      void peer.send({
        type: "invocationresult",
        invocation_id: invocation_id!,
        function_id: function_id!,
      });
    });
  };
  await peer.send({ type: "registerfunction", id: FUNCTION });
  return peer;
}

async function many(campaign: Campaign): Promise<void> {
  const jobs = campaign.choose(5_000, 1_000_000);
  const name = `queues: many jobs wait`;
  await using subject = await campaign.subject({ workers: WORKERS });
  const { engine } = subject;
  const bounds = { p99Ms: P99_MS, maxMs: MAX_MS, peakMib: PEAK_MIB };
  await campaign.attack(`${name}, before`, subject, bounds, async () => {
    await pause(campaign.choose(200, 5_000));
    const { p50_ms } = await subject.canary.report();
    return { done: `calls p50 ${p50_ms.toFixed(2)} ms` };
  });
  await campaign.attack(`${name}, while they come`, subject, bounds, async () => {
    const start = performance.now();
    const refused = await enqueueMany(engine.port, jobs);
    const rate = Math.round(jobs / (performance.now() - start) * 1_000);
    const broken = refused === 0 ? [] : [`${refused} were refused`];
    return { done: `${jobs.toLocaleString("en")} jobs, ${rate.toLocaleString("en")}/s`, broken };
  });
  await campaign.attack(`${name}, afterwards`, subject, bounds, async () => {
    await pause(campaign.choose(300, IDLE_MS));
    using peer = await Peer.connect(engine.port);
    const answer = await peer.call("engine::queue::stats", { queue: "default" });
    const { waiting } = (answer?.result ?? {}) as { waiting?: number };
    const { rss_mib, p50_ms } = await subject.canary.report();
    const broken: string[] = [];
    if (waiting !== jobs) broken.push(`${waiting} jobs wait`);
    if (rss_mib > WAITING_MIB) broken.push(`${rss_mib.toFixed(0)} MiB are resident`);
    const done = `${rss_mib.toFixed(0)} MiB resident; calls p50 ${p50_ms.toFixed(2)} ms`;
    return { done, broken };
  });
}

/** Puts so many jobs of no worker into a queue; returns how many were refused. */
async function enqueueMany(port: number, jobs: number): Promise<number> {
  using peer = await Peer.connect(port);
  const finished = Promise.withResolvers<void>();
  let [sent, answered, refused] = [0, 0, 0];
  const fill = (): void => {
    for (; sent < jobs && sent - answered < IN_FLIGHT; sent++) {
      const data = { number: sent, text: "x".repeat(80) };
      const action = { type: "enqueue", queue: "default" };
      const call = { type: "invokefunction", invocation_id: `${sent}`, function_id: "no::one" };
      void peer.send({ ...call, action, data });
    }
  };
  peer.onText = (text) => {
    if (!text.includes('"invocationresult"')) return;
    answered++;
    if (text.includes('"error":')) refused++;
    if (answered === jobs) finished.resolve();
    else if (sent - answered < IN_FLIGHT / 2) fill();
  };
  fill();
  await Promise.race([finished.promise, peer.ended]);
  return refused + jobs - answered;
}

async function lanes(campaign: Campaign): Promise<void> {
  const ofALane = campaign.choose(3, JOBS_OF_A_LANE);
  const expected = (LANES - 1) * ofALane;
  await using subject = await campaign.subject({ workers: WORKERS });
  const { engine } = subject;
  const never = new Promise<void>(() => {});
  const seen = new Map<number, number[]>();
  let done = 0;
  using _worker = await work(engine, async (data) => {
    const { lane, number } = data as { lane: number; number: number };
    seen.set(lane, [...seen.get(lane) ?? [], number]);
    if (lane === 0) return await never;
    await pause(1);
    done++;
  });
  // Too short for a p99.
  await campaign.attack("queues: a blocked lane", subject, { maxMs: MAX_MS }, async () => {
    const start = performance.now();
    using peer = await Peer.connect(engine.port);
    for (let number = 0; number < ofALane; number++) {
      await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
        const data = { lane, number };
        await peer.call("engine::queue::enqueue", { queue: "lanes", function_id: FUNCTION, data });
      }));
    }
    await until(() => done >= expected, () => engine.output, SETTLE_MS_MAX).catch(() => {});
    const took = performance.now() - start;
    const broken: string[] = [];
    if (done !== expected) broken.push(`${done} of ${expected} jobs of the other lanes are done`);
    if (took > LANES_MS) broken.push(`they took ${Math.round(took)} ms`);
    const mixed = [...seen.values()].filter((all) => all.some((each, at) => each !== at)).length;
    if (mixed > 0) broken.push(`${mixed} lanes lost their order`);
    if (seen.get(0)?.length !== 1) broken.push("the blocked lane gave out more than one job");
    return { done: `${done} jobs of 99 lanes in ${Math.round(took)} ms`, broken };
  });
}
