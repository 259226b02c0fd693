import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_supervision.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { Prepared, PrepareOptions } from "../install/prepare.ts";
import { Releases } from "./releases.ts";
import { StartSlots } from "./abortable.ts";

const MANIFEST =
  "name: w\nruntime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\nwatch: [src]\n";
const NEVER = new AbortController().signal;

/** A preparation that the test controls. */
interface Preparing {
  readonly options: PrepareOptions;
  done(dependencies?: Prepared["dependencies"]): void;
  fail(): void;
}

async function setup(manifest = MANIFEST) {
  const path = await Deno.makeTempDir();
  await Deno.writeTextFile(`${path}/engine.worker.yaml`, manifest);
  const clock = new FakeClock();
  const launcher = new FakeLauncher();
  const slots = new StartSlots(1);
  const preparing: Preparing[] = [];
  const events: string[] = [];
  const releases = new Releases({
    clock,
    slots,
    launchers: { process: launcher },
    dataDirectory: path,
    platform: "darwin",
    prepare: (_tools, options) => {
      const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
      const done = (dependencies: Prepared["dependencies"] = "none"): void =>
        resolve({ launcher, containment: undefined, env: {}, dependencies });
      preparing.push({ options, done, fail: () => reject(new Error("no network")) });
      return promise;
    },
  }, {
    reading: () => void events.push("reading"),
    read: ({ watch }) => void events.push(`read ${watch}`),
    line: ({ text }) => void events.push(text),
  });
  const entry: DirectoryEntry = { kind: "directory", name: "w", path, env: {} };
  const observed: string[] = [];
  const observer = () => ({
    phase: (state: string, what: string | null) => void observed.push(what ?? state),
    line: ({ text }: { text: string }) => void observed.push(text),
  });
  const get = (version: number, signal = NEVER) => releases.get(version, entry, observer(), signal);
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  const remove = () => Deno.remove(path, { recursive: true });
  const all = { clock, slots, preparing, events, observed, releases, get, settle };
  return { ...all, [Symbol.asyncDispose]: remove };
}

Deno.test("Releases builds one release for all callers and reports its progress to them", async () => {
  await using there = await setup();
  const { preparing, events, observed, get, settle } = there;
  const first = get(1);
  await settle();
  const second = get(1);

  preparing[0]!.options.began("installing with npm");
  preparing[0]!.options.output({ stream: "stdout", text: "added 3 packages" });
  preparing[0]!.done();

  assert.equal(await first, await second);
  assert.equal(await get(1), await first);
  assert.equal((await first)!.version, 1);
  assert.equal(preparing.length, 1);
  assert.deepEqual(events, ["reading", "read src", "added 3 packages"]);
  assert.deepEqual(observed, [
    "queued",
    "installing",
    "installing",
    "installing with npm",
    "installing with npm",
    "added 3 packages",
    "added 3 packages",
  ]);
});

Deno.test("Releases waits for a slot and gives it back also after a failure", async () => {
  await using there = await setup();
  const { preparing, slots, get, settle } = there;
  const release = await slots.take(NEVER, "start");
  const first = get(1);
  await settle();
  assert.equal(preparing.length, 0);

  release!();
  await settle();
  preparing[0]!.fail();

  await assert.rejects(first, { message: "no network" });
  assert.equal(typeof await slots.take(NEVER, "start"), "function");
});

Deno.test("Releases rejects all callers with the error of a failed build until invalidate()", async () => {
  await using there = await setup();
  const { preparing, releases, get, settle } = there;
  const first = get(1);
  await settle();
  preparing[0]!.fail();
  await assert.rejects(first, { message: "no network" });
  await assert.rejects(get(1), { message: "no network" });

  releases.invalidate();
  const again = get(1);
  await settle();
  preparing[1]!.done();

  assert.equal((await again)!.version, 1);
});

Deno.test("Releases refuses an invalid manifest after reporting that it reads it", async () => {
  await using there = await setup("name: w\nruntime: { kind: cobol }\n");

  await assert.rejects(there.get(1), { code: "manifest_invalid" });

  assert.deepEqual(there.events, ["reading"]);
});

Deno.test("Releases builds another version only after the build before has ended", async () => {
  await using there = await setup();
  const { preparing, releases, get, settle } = there;
  const leaving = new AbortController();
  const first = get(1, leaving.signal);
  await settle();

  releases.supersede(false);
  leaving.abort();
  const second = get(2);
  assert.equal(await first, undefined);
  await settle();
  assert.equal(preparing[0]!.options.signal.aborted, true);
  assert.equal(preparing.length, 1);
  preparing[0]!.fail();
  await settle();
  preparing[1]!.done();

  assert.equal((await second)!.version, 2);
});

Deno.test("Releases aborts a build when all its callers have aborted", async () => {
  await using there = await setup();
  const { preparing, releases, get, settle } = there;
  const [one, other] = [new AbortController(), new AbortController()];
  void get(1, one.signal);
  void get(1, other.signal);
  await settle();
  const { signal } = preparing[0]!.options;

  one.abort();
  await settle();
  assert.equal(signal.aborted, false);
  other.abort();
  await settle();

  assert.equal(signal.aborted, true);
  let isIdle = false;
  const idle = releases.idle().then(() => isIdle = true);
  await settle();
  assert.equal(isIdle, false);
  preparing[0]!.done();
  await idle;
  const again = get(1);
  await settle();
  preparing[1]!.done();
  assert.equal((await again)!.version, 1);
});

Deno.test("Releases reinstalls until a build has succeeded", async () => {
  await using there = await setup();
  const { preparing, releases, get, settle } = there;
  const reinstalls: boolean[] = [];
  for (const end of ["fail", "done", "done"] as const) {
    if (reinstalls.length === 0) releases.supersede(true);
    else releases.invalidate();
    const asked = get(2).catch(() => {});
    await settle();
    reinstalls.push(preparing.at(-1)!.options.reinstall);
    preparing.at(-1)![end]();
    await asked;
  }

  assert.deepEqual(reinstalls, [true, true, false]);
});

Deno.test("Releases.seenAtMs is the end of the first build of a version", async () => {
  await using there = await setup();
  const { clock, preparing, releases, get, settle } = there;
  const make = async (version: number, end: (it: Preparing) => void): Promise<void> => {
    const asked = get(version).catch(() => {});
    await settle();
    clock.tick(1_000);
    end(preparing.at(-1)!);
    await asked;
  };
  assert.equal(releases.seenAtMs, Infinity);
  await make(1, (it) => it.fail());
  const first = clock.wall();
  assert.equal(releases.seenAtMs, first);

  releases.invalidate();
  await make(1, (it) => it.done("cached"));
  assert.equal(releases.seenAtMs, first);
  releases.invalidate();
  await make(1, (it) => it.done("installed"));
  assert.equal(releases.seenAtMs, clock.wall());
  releases.supersede(false);
  assert.equal(releases.seenAtMs, Infinity);
  await make(2, (it) => it.done());

  assert.equal(releases.seenAtMs, clock.wall());
});
