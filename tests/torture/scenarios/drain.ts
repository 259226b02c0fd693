/**
 * Drain: the engine is stopped under load. Calls end with a result or an error before their
 * connection is closed, requests get a response, and the process ends.
 *
 * @module
 */
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Ledger, summaryOf } from "../ledger.ts";
import { Peer } from "../peer.ts";
import { pause, within } from "../waiting.ts";

const CALLERS = 4;
const CALLS = 50;
const TIMEOUT_MS = 60_000;
/** The drain itself takes 5 s; the rest is closing. */
const STOP_MS_MAX = 20_000;
const DURING_MS = 300;

/** See the top of this file. */
export const drain: Scenario = {
  name: "drain",
  summary: "stopped under load: 503, an error for each cut call, none hung",
  async run(campaign) {
    for (const kind of ["calls that end", "calls that are cut"]) {
      if (!campaign.wants(kind)) continue;
      const subject: Subject = await campaign.subject();
      await using _ = subject;
      await runOne(campaign, subject, kind);
    }
  },
};

async function runOne(campaign: Campaign, { engine, canary }: Subject, kind: string) {
  const start = performance.now();
  // The canary ends with the engine, so its figures mean nothing here.
  await canary[Symbol.asyncDispose]();
  const broken: string[] = [];
  using worker = await Peer.connect(engine.port);
  const answers = kind === "calls that end";
  worker.onText = (text) => {
    if (!text.startsWith('{"type":"invokefunction"') || !answers) return;
    const ids = /"invocation_id":"[^"]*","function_id":"[^"]*"/.exec(text)![0];
    void pause(1_000).then(() => worker.send(`{"type":"invocationresult",${ids},"result":{}}`));
  };
  await worker.send({ type: "registerfunction", id: "drain::slow" });
  const ids = { id: "drain-route", trigger_type: "http", function_id: "drain::slow" };
  await worker.send({ type: "registertrigger", ...ids, config: { api_path: "/slow" } });
  await worker.settled(STOP_MS_MAX);
  const callers = await Promise.all(
    Array.from({ length: CALLERS }, () => Peer.connect(engine.port)),
  );
  const ledgers = callers.map((peer, i) => new Ledger(peer, `drain${i}`));
  for (const ledger of ledgers) {
    for (let i = 0; i < CALLS; i++) await ledger.call("drain::slow", TIMEOUT_MS);
  }
  const running = statusOf(engine.httpPort);
  await pause(100);
  engine.signal("SIGTERM");
  await pause(DURING_MS);
  const during = await statusOf(engine.httpPort);
  const status = await within(engine.ended, STOP_MS_MAX);
  if (status === undefined) broken.push(`the engine runs ${STOP_MS_MAX / 1_000} s after SIGTERM`);
  else if (status.code !== 0) broken.push(`it ended with code ${status.code}`);
  for (const ledger of ledgers) broken.push(...ledger.problems());
  const ends = await Promise.all(callers.map((peer) => within(peer.ended, STOP_MS_MAX)));
  const codes = [...new Set(ends.map((end) => end?.code))];
  if (codes.some((code) => code !== 1001)) {
    broken.push(`connections closed with ${codes}, not 1001`);
  }
  const before = await running;
  if (before !== (answers ? "200" : "503")) broken.push(`the running request got ${before}`);
  if (during !== "503") broken.push(`a request during the drain got ${during}, not 503`);
  for (const peer of callers) peer.destroy();
  const seconds = (performance.now() - start) / 1_000;
  const done = `${summaryOf(ledgers)}; running request ${before}, later one ${during}`;
  campaign.add({ scenario: `drain: ${kind}`, done, broken, seconds });
}

async function statusOf(port: number): Promise<string> {
  const signal = AbortSignal.timeout(STOP_MS_MAX);
  return await fetch(`http://127.0.0.1:${port}/slow`, { signal }).then(async (response) => {
    await response.body?.cancel();
    return `${response.status}`;
  }, (error) => `no response (${error.message.slice(0, 60)})`);
}
