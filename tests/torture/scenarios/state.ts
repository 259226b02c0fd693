/**
 * State: the engine is killed while peers write, again and again, and its disk fills up. What was
 * acknowledged is there, and nothing that was never written.
 *
 * @module
 */
import type { Campaign, Scenario } from "../campaign.ts";
import type { Engine } from "../engine.ts";
import { Peer } from "../peer.ts";
import { pause } from "../waiting.ts";

const WRITERS = 64;
const DISK_BYTES = 24 * 1024 * 1024;
const CALL_MS_MAX = 20_000;
const FILL_WRITES_MAX = 2_000;

/** Last number acknowledged and sent, by key. */
interface Written {
  readonly acknowledged: number[];
  readonly sent: number[];
}

/** See the top of this file. */
export const state: Scenario = {
  name: "state",
  summary: "kill -9 while peers write, and a full disk: acknowledged writes are there",
  async run(campaign) {
    if (campaign.wants("kill -9")) await kills(campaign);
    if (campaign.wants("full disk")) await fullDisk(campaign);
  },
};

async function kills(campaign: Campaign): Promise<void> {
  const start = performance.now();
  const directory = await Deno.makeTempDir({ prefix: "engine-torture-state-" });
  const zeros = () => Array.from({ length: WRITERS }, () => 0);
  const written: Written = { acknowledged: zeros(), sent: zeros() };
  const broken: string[] = [];
  const rounds = campaign.choose(2, 25);
  try {
    for (let round = 0; round < rounds; round++) {
      await using engine = await campaign.engine({ directory });
      broken.push(...await missing(engine, written));
      const writing = write(engine, written);
      await pause(100 + campaign.random.below(campaign.choose(300, 1_000)));
      engine.signal("SIGKILL");
      await engine.ended;
      await writing;
    }
    await using engine = await campaign.engine({ directory });
    broken.push(...await missing(engine, written));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
  const acknowledged = written.acknowledged.reduce((sum, each) => sum + each, 0);
  if (acknowledged === 0) broken.push("no write was acknowledged");
  const done = `${rounds} kills, ${acknowledged} writes acknowledged`;
  const seconds = (performance.now() - start) / 1_000;
  campaign.add({ scenario: "state: kill -9", done, broken, seconds });
}

/** Each writer counts upward in its key, until the engine is gone. */
async function write({ port }: Engine, { acknowledged, sent }: Written): Promise<void> {
  using peer = await Peer.connect(port);
  await Promise.all(sent.map(async (_, key) => {
    while (!peer.isOver) {
      const value = ++sent[key]!;
      const answer = await peer.call("state::set", { scope: "kill", key: `${key}`, value });
      if (answer !== undefined && !answer.error) acknowledged[key] = value;
    }
  }));
}

/** Keys whose value is older than what was acknowledged, or was never sent. */
async function missing({ port }: Engine, { acknowledged, sent }: Written): Promise<string[]> {
  using peer = await Peer.connect(port);
  const problems: string[] = [];
  for (const [key, least] of acknowledged.entries()) {
    const answer = await peer.call("state::get", { scope: "kill", key: `${key}` }, CALL_MS_MAX);
    const value = Number(answer?.result ?? 0);
    if (answer !== undefined && !answer.error && value >= least && value <= sent[key]!) continue;
    problems.push(`key ${key}: ${least} acknowledged, ${value} found`);
  }
  return problems.slice(0, 5);
}

async function fullDisk(campaign: Campaign): Promise<void> {
  const scenario = "state: full disk";
  const start = performance.now();
  const directory = await Deno.makeTempDir({ prefix: "engine-torture-disk-" });
  const seconds = () => (performance.now() - start) / 1_000;
  const options = `size=${DISK_BYTES},mode=0700`;
  if (!await succeeds("mount", "-t", "tmpfs", "-o", options, "tmpfs", directory)) {
    await Deno.remove(directory);
    const skipped = "a disk of its own needs the right to mount a tmpfs (root)";
    campaign.add({ scenario, done: "", broken: [], skipped, seconds: seconds() });
    return;
  }
  const broken: string[] = [];
  let done = "";
  try {
    done = await fill(campaign, directory, broken);
  } catch (error) {
    broken.push(`the scenario failed: ${error}`);
  } finally {
    await succeeds("umount", "--lazy", directory);
    await Deno.remove(directory, { recursive: true });
  }
  campaign.add({ scenario, done, broken, seconds: seconds() });
}

async function fill(campaign: Campaign, directory: string, broken: string[]): Promise<string> {
  const value = "v".repeat(200_000);
  const kept: string[] = [];
  let code = "";
  let health = "";
  {
    await using subject = await campaign.subject({ directory });
    const { engine, canary } = subject;
    using peer = await Peer.connect(engine.port);
    for (let i = 0; i < FILL_WRITES_MAX && code === ""; i++) {
      const place = { scope: "disk", key: `${i}`, value };
      const answer = await peer.call("state::set", place, CALL_MS_MAX);
      const error = answer?.error as { code: string } | undefined;
      if (answer === undefined) broken.push(`write ${i} has no answer`);
      if (answer === undefined || error) code = error?.code ?? "none";
      else kept.push(`${i}`);
    }
    if (code === "") broken.push("the disk did not fill");
    broken.push(...await unreadable(peer, kept, value));
    const checked = await peer.call("engine::health::check", {}, CALL_MS_MAX);
    health = String((checked?.result as { status?: string } | undefined)?.status ?? "no answer");
    if (health === "healthy") broken.push("engine::health::check says healthy on a full disk");
    const report = await canary.report();
    if (report.end !== null || report.failed > 0) broken.push("the canary was disturbed");
    if (!engine.isAlive) broken.push(`the engine ended: ${engine.output.slice(-500)}`);
  }
  // Room again: the next start finds everything and takes writes.
  await succeeds("mount", "-o", `remount,size=${4 * DISK_BYTES}`, directory);
  await using engine = await campaign.engine({ directory });
  using peer = await Peer.connect(engine.port);
  broken.push(...await unreadable(peer, kept, value));
  const again = await peer.call("state::set", { scope: "disk", key: "again", value: 1 });
  if (again === undefined || again.error) broken.push("no write with room again");
  return `${kept.length} writes of 200 KB, then ${code}; health ${health}; kill -9, room, start`;
}

async function unreadable(peer: Peer, keys: readonly string[], value: string): Promise<string[]> {
  const lost: string[] = [];
  for (const key of keys) {
    const answer = await peer.call("state::get", { scope: "disk", key }, CALL_MS_MAX);
    if (answer?.result !== value) lost.push(key);
  }
  return lost.length === 0 ? [] : [`${lost.length} acknowledged writes cannot be read`];
}

async function succeeds(command: string, ...args: string[]): Promise<boolean> {
  const options = { args, stdin: "null", stdout: "null", stderr: "null" } as const;
  return await new Deno.Command(command, options).output()
    .then(({ success }) => success, () => false);
}
