/**
 * Engines of a cluster whose keeper, broker and database are killed and cut off, while counters are
 * incremented: no answered increment may be missing, none may count twice, and the time without
 * answers is bounded.
 *
 * @module
 */
import type { EngineProcess } from "../../fakes/engine_process.ts";
import type { Worker } from "../../../mod.ts";
import { until } from "../../fakes/until.ts";
import { startEngine } from "../../cluster/cluster_process.ts";
import { Counters } from "../../cluster/counters.ts";
import {
  type Nats,
  startNats,
  startPostgres,
  withoutNats,
  withoutPostgres,
} from "../../cluster/servers.ts";
import type { Campaign, Scenario } from "../campaign.ts";
import { Proxy } from "../proxy.ts";
import { pause } from "../waiting.ts";

const LANES = 16;
/** Increments after a fault that show that the state is kept again. */
const AGAIN = 100;
/** Bounds of the time without answers. */
const KEEPER_MS = 2_000;
const NATS_MS = 12_000;
/** A keeper that is cut off refuses writes after so long. */
const REFUSE_MS = 4_000;
/** Share of the gaps that is within the bounds. */
const P99 = 0.99;

/** Three engines; the first one never keeps the state, and serves the workers. */
interface Cluster extends AsyncDisposable {
  readonly engines: readonly EngineProcess[];
  readonly worker: Worker;
  keeper(): EngineProcess;
}

/** See the top of this file. */
export const cluster: Scenario = {
  name: "cluster",
  summary: "keepers, NATS nodes and Postgres killed, keepers cut off",
  async run(campaign) {
    if (withoutNats) return;
    if (campaign.wants("cluster: keeper")) await killKeepers(campaign);
    if (campaign.wants("cluster: NATS")) await killNodes(campaign);
    if (!withoutPostgres && campaign.wants("cluster: Postgres")) await killPostgres(campaign);
    if (campaign.wants("cluster: partition")) await cutKeepers(campaign);
  },
};

async function killKeepers(campaign: Campaign): Promise<void> {
  await using nats = await startNats({ count: 3 });
  await using it = await startCluster(nats.urls.map(() => nats.urls), "jetstream");
  await attack(campaign, "cluster: keeper killed", it, campaign.choose(2, 40), KEEPER_MS, {
    async act() {
      const keeper = it.keeper();
      await keeper.kill("SIGKILL");
      return () => keeper.start();
    },
  });
}

async function killNodes(campaign: Campaign): Promise<void> {
  await using nats = await startNats({ count: 3 });
  await using it = await startCluster(nats.urls.map(() => nats.urls), "jetstream");
  await attack(campaign, "cluster: NATS node killed", it, campaign.choose(2, 20), NATS_MS, {
    async act(round) {
      const node = nats.nodes[round % 3]!;
      await node.kill();
      return async () => {
        await pause(500);
        await node.start();
      };
    },
  });
}

async function killPostgres(campaign: Campaign): Promise<void> {
  await using nats = await startNats({ jetstream: false });
  await using postgres = await startPostgres();
  await using it = await startCluster(Array(3).fill(nats.urls), postgres.url);
  await attack(campaign, "cluster: Postgres killed", it, campaign.choose(1, 20), NATS_MS, {
    async act() {
      await postgres.kill();
      await pause(500);
      await postgres.start();
      return () => Promise.resolve();
    },
  });
  await attack(
    campaign,
    "cluster: keeper killed, Postgres",
    it,
    campaign.choose(1, 20),
    KEEPER_MS,
    {
      async act() {
        const keeper = it.keeper();
        await keeper.kill("SIGKILL");
        return () => keeper.start();
      },
    },
  );
}

/** Cuts the keeper off from all of NATS; a worker of its own then writes there. */
async function cutKeepers(campaign: Campaign): Promise<void> {
  const start = performance.now();
  await using nats = await startNats({ count: 3 });
  await using net = cables(nats);
  await using it = await startCluster(net.urls, "jetstream");
  const rounds = campaign.choose(1, 10);
  const factor = campaign.choose(3, 1);
  const broken: string[] = [];
  const refusals: number[] = [];
  const gaps: number[] = [];
  const all = new Counters(it.worker, "majority", LANES);
  const minorities: Counters[] = [];
  for (let round = 0; round < rounds; round++) {
    await until(() => recovered(all));
    const keeper = it.keeper();
    const inside = keeper.connect("inside");
    const minority = new Counters(inside, `minority${round}-`, 4);
    minorities.push(minority);
    await until(() => minority.answered > 20);
    const before = all.answered;
    all.measure();
    const cutAt = performance.now();

    net.cut(it.engines.indexOf(keeper), true);
    await pause(LEASE_OVER_MS);
    refusals.push(minority.lastAt - cutAt);
    await until(() => all.answered > before + AGAIN, () => keeper.stderr.slice(-2_000));
    gaps.push(all.gapMs);

    net.cut(it.engines.indexOf(keeper), false);
    const then = minority.answered;
    await until(() => minority.answered > then + 20, () => keeper.stderr.slice(-2_000));
    broken.push(...await minority.wrong(it.worker));
    await inside.shutdown();
  }
  broken.push(...await all.wrong(it.worker));
  const worst = Math.max(...refusals);
  if (worst > REFUSE_MS * factor) broken.push(`the minority wrote for ${Math.round(worst)} ms`);
  const done = `${rounds} keepers cut off: the last write there was answered ` +
    `${Math.round(worst)} ms after, others waited ${Math.round(Math.max(...gaps))} ms at most; ` +
    `${all.outcomes}; cut off in the last round: ${minorities.at(-1)!.outcomes}`;
  const seconds = (performance.now() - start) / 1_000;
  campaign.add({ scenario: "cluster: partition", done, broken, seconds });
}

/** When a keeper that is cut off has been replaced. */
const LEASE_OVER_MS = 6_000;

interface Fault {
  /** Breaks something; the result mends it. */
  act(round: number): Promise<() => Promise<void>>;
}

async function attack(
  campaign: Campaign,
  scenario: string,
  it: Cluster,
  rounds: number,
  boundMs: number,
  fault: Fault,
): Promise<void> {
  const start = performance.now();
  const counters = new Counters(it.worker, `${scenario}/`, LANES);
  const gaps: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await until(() => recovered(counters));
    const before = counters.answered;
    counters.measure();
    const mend = await fault.act(round);
    await until(
      () => counters.answered > before + AGAIN,
      () => it.engines.map(({ stderr }) => stderr.slice(-1_500)).join("\n---\n"),
    );
    gaps.push(counters.gapMs);
    await mend();
  }
  const broken = await counters.wrong(it.worker);
  gaps.sort((a, b) => a - b);
  const [median, p99, worst] = [0.5, P99, 1].map((share) =>
    Math.round(gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))]!)
  );
  const factor = campaign.choose(5, 1);
  if (p99! > boundMs * factor) broken.push(`p99 of the gaps is ${p99} ms`);
  const done = `${rounds} times: gap ${median} ms in the median, ${p99} ms p99, ${worst} ms at ` +
    `most; ${counters.outcomes}`;
  campaign.add({ scenario, done, broken, seconds: (performance.now() - start) / 1_000 });
}

/** Whether increments are answered again, for a while. */
async function recovered(counters: Counters): Promise<boolean> {
  const before = counters.answered;
  await pause(1_000);
  return counters.answered > before + AGAIN;
}

async function startCluster(
  nats: readonly (readonly string[])[],
  log: string,
): Promise<Cluster> {
  const settings = ["    keeper: false\n", "", ""];
  const engines = await Promise.all(
    settings.map((more, i) => startEngine(`e${i}`, { nats: nats[i]!, log, settings: more })),
  );
  const worker = engines[0]!.connect("counting");
  await until(async () => {
    const payload = { scope: "counters", key: "none" };
    await worker.trigger({ function_id: "state::get", payload });
    return true;
  }, () => engines.map(({ stderr }) => stderr).join("\n"));
  return {
    engines,
    worker,
    keeper: () => {
      const now = engines.slice(1).map((engine) => [numberOf(engine), engine] as const);
      return now.toSorted(([a], [b]) => b - a)[0]![1];
    },
    async [Symbol.asyncDispose]() {
      await worker.shutdown();
      await Promise.all(engines.map((engine) => engine[Symbol.asyncDispose]()));
    },
  };
}

/** Of the last message when an engine last took the state over: the largest is the keeper's. */
function numberOf({ stderr }: EngineProcess): number {
  const found = [...stderr.matchAll(/this engine keeps the state.*?number"?[=:] ?(\d+)/g)].at(-1);
  return Number(found?.[1] ?? 0);
}

/** A proxy between each engine and each node. */
function cables(nats: Nats) {
  const proxies = Array.from({ length: 3 }, () => nats.nodes.map(({ port }) => new Proxy(port)));
  return {
    urls: proxies.map((row) => row.map(({ port }) => `nats://127.0.0.1:${port}`)),
    cut(engine: number, isCut: boolean): void {
      for (const proxy of proxies[engine]!) {
        proxy.mode = isCut ? "hole" : "pass";
        if (!isCut) proxy.cut(); // Bytes are missing in its connections.
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.flat().map((proxy) => proxy[Symbol.asyncDispose]()));
    },
  };
}
