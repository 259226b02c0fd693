/**
 * Frozen peers: a replica that is stopped is suspect within the heartbeat, new calls go to the
 * other one, and its own calls end when it is cut.
 *
 * @module
 */
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { Callee } from "../callee.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Ledger, summaryOf } from "../ledger.ts";
import { Peer } from "../peer.ts";
import { Proxy } from "../proxy.ts";
import { pause } from "../waiting.ts";

const HEARTBEAT_MS = 1_000;
const SILENCE_MS = 4_000;
/** A machine that is busy may be late by this. */
const SLACK_MS = 2_000;
const FUNCTION = "frozen::echo";
const CALLS = 20;

/** See the top of this file. */
export const frozen: Scenario = {
  name: "frozen",
  summary: "a stopped and a black-holed replica: suspect, avoided, then cut",
  async run(campaign) {
    for (const how of ["stopped", "black-holed"] as const) {
      if (!campaign.wants(how)) continue;
      const engine = [`heartbeat_ms: ${HEARTBEAT_MS}`, `silence_ms: ${SILENCE_MS}`];
      await using subject = await campaign.subject({ engine });
      await campaign.attack(
        `frozen: ${how} replica`,
        subject,
        { maxMs: 250 },
        () => freeze(campaign, subject, how),
      );
    }
  },
};

async function freeze(_: Campaign, { engine }: Subject, how: "stopped" | "black-holed") {
  const broken: string[] = [];
  await using proxy = new Proxy(engine.port);
  await using good = await Callee.start(engine.port, FUNCTION, 0);
  await using bad = await Callee.start(proxy.port, FUNCTION, 0);
  using caller = await Peer.connect(engine.port);
  const name = `callee-${bad.pid}`;
  const freeze = (): void => how === "stopped" ? bad.signal("SIGSTOP") : void (proxy.mode = "hole");
  freeze();
  const start = performance.now();
  const suspect = await since(start, HEARTBEAT_MS * 2 + SLACK_MS, async () => {
    const view = await viewOf(caller, name);
    return view === undefined || view.suspect === true;
  });
  if (suspect === undefined) broken.push("it is not suspect within two heartbeats");
  const ledger = new Ledger(caller, how);
  for (let i = 0; i < CALLS; i++) await ledger.call(FUNCTION, HEARTBEAT_MS);
  await ledger.close(HEARTBEAT_MS);
  broken.push(...ledger.problems());
  if (ledger.results < CALLS) {
    broken.push(`${CALLS - ledger.results} calls went to it: ${summaryOf([ledger])}`);
  }
  const cut = await since(start, SILENCE_MS + HEARTBEAT_MS + SLACK_MS, async () => {
    return await viewOf(caller, name) === undefined;
  });
  if (cut === undefined) broken.push("it is not cut after the silence");
  void good;
  const seconds = (ms: number | undefined) =>
    ms === undefined ? "never" : `${(ms / 1e3).toFixed(1)} s`;
  return {
    done: `suspect after ${seconds(suspect)}, cut after ${seconds(cut)}; ${summaryOf([ledger])}`,
    broken,
  };
}

/** Time until something holds; `undefined` if it does not in time. */
async function since(
  start: number,
  limitMs: number,
  holds: () => Promise<boolean>,
): Promise<number | undefined> {
  for (;;) {
    if (await holds()) return performance.now() - start;
    if (performance.now() - start > limitMs) return undefined;
    await pause(50);
  }
}

async function viewOf(peer: Peer, name: string): Promise<JsonObject | undefined> {
  const answer = await peer.call("engine::workers::list", {});
  const { workers } = answer?.result as { workers: JsonObject[] };
  return workers.find((worker) => worker.name === name);
}
