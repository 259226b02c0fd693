/**
 * Nothing that was acknowledged is lost, whenever the process that wrote it is killed.
 *
 * A program writes as fast as it can and is killed with SIGKILL at random moments, again and again
 * on the same file. This shows what survives the end of a process; that a commit is on disk before
 * it is acknowledged, for the loss of power, stands in engine/store/kv_file.ts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { decodeRecord, partsFor } from "../../engine/store/record.ts";
import { openKvStore } from "../../engine/store/kv_store.ts";
import { ORDERED_KEYS, textFor } from "../fakes/crashing_writer.ts";
import { randomFrom } from "../fakes/fake_store.ts";

const KILLS = 15;
const CLIENTS = 8;
/** For writes that are acknowledged before they are on disk. */
const ORDERED_KILLS = 5;
const FLUSH_MS = 20;
/** What a commit may take beyond its time, also on a busy machine; a killed one is found late. */
const PATIENCE_MS = 150;
/** On a busy disk it takes more of them until every client has an acknowledgement. */
const KILLS_MAX = 90;
const WRITER = new URL("../fakes/crashing_writer.ts", import.meta.url).href;

/** The last number acknowledged to each client, and the largest version to any. */
interface Acknowledged {
  readonly numbers: Map<string, number>;
  version: number;
}

Deno.test("A store killed at random moments keeps every acknowledged write, whole", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const path = `${directory}/state.db`;
    const random = randomFrom(Number(Deno.env.get("CRASH_SEED") ?? 1));
    const acknowledged: Acknowledged = { numbers: new Map(), version: 0 };
    const isEnough = (kills: number): boolean => {
      return kills >= KILLS && acknowledged.numbers.size === CLIENTS || kills >= KILLS_MAX;
    };
    for (let kills = 0; !isEnough(kills); kills++) {
      await writeUntilKilled(path, random() ** 2 * 400, acknowledged);
      await check(path, acknowledged);
    }
    assert.ok(acknowledged.numbers.size === CLIENTS, "every client was acknowledged something");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("A store killed at random keeps a prefix of what it acknowledged before the disk", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const path = `${directory}/state.db`;
    const random = randomFrom(Number(Deno.env.get("CRASH_SEED") ?? 1));
    let versionMax = 0;
    for (let kills = 0; kills < ORDERED_KILLS; kills++) {
      const lines = await linesUntilKilled([path, `${FLUSH_MS}`], 200 + random() * 400);
      const killedAt = Date.now();
      await using store = await openKvStore(path);
      const found = new Map<string, number>();
      for (const { key, value } of await store.list(["ordered"], 100)) {
        found.set(key[1]!, value as number);
      }
      const last = Math.max(...found.values());
      for (const [key, number] of found) {
        assert.equal(number % ORDERED_KEYS, Number(key));
        assert.ok(number > last - ORDERED_KEYS, "nothing is missing before the last one");
      }
      const acknowledged = lines.map((line) => line.split(" ").map(Number));
      const old = acknowledged.filter(([at]) => at! < killedAt - FLUSH_MS - PATIENCE_MS);
      assert.ok(last >= (old.at(-1)?.[1] ?? 0), "what was acknowledged long before is there");
      const versions = acknowledged.map(([, , version]) => version!);
      assert.ok(Math.min(...versions) > versionMax, "no version is used twice, lost ones neither");
      versionMax = Math.max(...versions);
      assert.ok(last <= acknowledged.at(-1)![1]! + 1_000, "nothing is there that was not written");
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

/** Runs the writer, kills it `ms` milliseconds after its first acknowledgement. */
async function writeUntilKilled(path: string, ms: number, acknowledged: Acknowledged) {
  for (const line of await linesUntilKilled([path], ms)) note(line, acknowledged);
}

/** Runs the writer, kills it `ms` milliseconds after its first line; its whole lines. */
async function linesUntilKilled(words: readonly string[], ms: number): Promise<string[]> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--unstable-kv", WRITER, ...words],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let text = "";
  for await (const more of child.stdout.pipeThrough(new TextDecoderStream())) {
    timer ??= setTimeout(() => child.kill("SIGKILL"), ms);
    text += more;
  }
  clearTimeout(timer);
  assert.equal((await child.status).signal, "SIGKILL");
  return text.split("\n").slice(0, -1);
}

function note(line: string, acknowledged: Acknowledged): void {
  const [client, number, version] = line.split(" ");
  acknowledged.numbers.set(client!, Number(number));
  acknowledged.version = Math.max(acknowledged.version, Number(version));
}

async function check(path: string, acknowledged: Acknowledged): Promise<void> {
  {
    await using store = await openKvStore(path);
    for (const [client, number] of acknowledged.numbers) {
      const left = (await store.get(["left", client]))?.value as number;
      const right = (await store.get(["right", client]))?.value as { number: number; text: string };
      assert.ok(left >= number, `client ${client}: ${number} was acknowledged, ${left} is there`);
      assert.equal(right.number, left, "both keys of a write are there, or none");
      assert.ok(right.text === textFor(Number(client), left), "the text is whole");
    }
    const [changed] = await store.write([[["probe"], () => 1]]);
    assert.ok(changed!.new!.version > acknowledged.version, "no version is used twice");
  }
  await checkParts(path);
}

/** Every part belongs to a record that is there: the next start has cleared what the crash left. */
async function checkParts(path: string): Promise<void> {
  using kv = await Deno.openKv(path);
  const expected = new Set<string>();
  for await (const { value } of kv.list<Uint8Array>({ prefix: ["entry", "right"] })) {
    const { version, bytes } = decodeRecord(value)!;
    for (let i = 0; i < partsFor(bytes); i++) expected.add(`${version} ${i}`);
  }
  const found = new Set<string>();
  for await (const { key } of kv.list({ prefix: ["part"] })) found.add(key.slice(1).join(" "));

  assert.deepEqual(found, expected);
}
