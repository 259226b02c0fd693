/**
 * Accounting: workers are killed and frozen at random while others call them. Each call of a
 * connected caller ends exactly once, at the latest by its deadline.
 *
 * @module
 */
import { Callee } from "../callee.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Ledger, summaryOf } from "../ledger.ts";
import { Peer } from "../peer.ts";
import { pause } from "../waiting.ts";

const FUNCTION = "accounting::echo";
const CALLERS = 4;
const CALLEES = 4;
const DELAY_MS = 20;
const TIMEOUT_MS = 3_000;
/** Calls of one caller on their way. */
const WINDOW = 100;
const FREEZE_MS_MAX = 1_500;
/** Beyond the deadline of a call, on a machine that starts processes all the time. */
const LATE_MS_MAX = 2_000;

/** See the top of this file. */
export const accounting: Scenario = {
  name: "accounting",
  summary: "callers and callees killed and frozen: each call ends exactly once",
  async run(campaign) {
    if (!campaign.wants("accounting")) return;
    await using subject = await campaign.subject();
    await campaign.attack("accounting", subject, { maxMs: 250 }, () => attack(campaign, subject));
  },
};

async function attack(campaign: Campaign, { engine }: Subject) {
  await using stack = new AsyncDisposableStack();
  const callees: Callee[] = [];
  stack.defer(async () => {
    for (const callee of callees) await callee[Symbol.asyncDispose]();
  });
  const start = () => Callee.start(engine.port, FUNCTION, DELAY_MS);
  callees.push(...await Promise.all(Array.from({ length: CALLEES }, start)));
  const ledgers: Ledger[] = [];
  const end = performance.now() + campaign.choose(3_000, 60_000);
  const isOver = (): boolean => performance.now() > end || !engine.isAlive;
  const load = Array.from({ length: CALLERS }, async (_, i) => {
    using peer = await Peer.connect(engine.port);
    const ledger = new Ledger(peer, `caller${i}`);
    ledgers.push(ledger);
    while (!isOver()) {
      while (ledger.open < WINDOW) void ledger.call(FUNCTION, TIMEOUT_MS);
      await pause(2);
    }
    await ledger.close(TIMEOUT_MS);
  });
  const [kills, freezes, leavers] = await disturb(campaign, engine.port, callees, start, isOver);
  await Promise.all(load);
  const broken = ledgers.flatMap((ledger) => ledger.problems());
  const longest = Math.max(...ledgers.map(({ longestMs }) => longestMs));
  if (longest > TIMEOUT_MS + LATE_MS_MAX) {
    broken.push(`a call took ${longest.toFixed(0)} ms; its deadline was ${TIMEOUT_MS} ms`);
  }
  if (ledgers.every(({ results }) => results === 0)) broken.push("no call had a result");
  const done = `${kills} kills, ${freezes} freezes, ${leavers} callers cut; ${summaryOf(ledgers)}`;
  return { done, broken };
}

/** Kills, freezes and replaces callees, and cuts callers with calls on their way. */
async function disturb(
  { random, isShort }: Campaign,
  port: number,
  callees: Callee[],
  start: () => Promise<Callee>,
  isOver: () => boolean,
): Promise<readonly [number, number, number]> {
  let [kills, freezes, leavers] = [0, 0, 0];
  const thaws: Promise<void>[] = [];
  while (!isOver()) {
    await pause(random.below(isShort ? 300 : 400));
    const index = random.below(callees.length);
    const callee = callees[index]!;
    if (random.once(3)) {
      const peer = await Peer.connect(port);
      const ledger = new Ledger(peer, "leaver");
      for (let i = 0; i < 20; i++) void ledger.call(FUNCTION, TIMEOUT_MS);
      await pause(random.below(20));
      peer.destroy();
      leavers++;
    } else if (random.once(2)) {
      callee.signal("SIGSTOP");
      freezes++;
      thaws.push(pause(random.below(FREEZE_MS_MAX)).then(() => callee.signal("SIGCONT")));
    } else {
      await callee[Symbol.asyncDispose]();
      kills++;
      callees[index] = await start();
    }
  }
  await Promise.all(thaws);
  return [kills, freezes, leavers];
}
