import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { put } from "../../../tests/fakes/fake_store.ts";
import { keptLog } from "../../../tests/cluster/kept_log.ts";
import { MemoryLogServer } from "../../../tests/cluster/memory_log.ts";
import { UNLIMITED_MEMORY } from "../../ports/memory.ts";
import { StateView } from "../../store/state_view.ts";
import { KeptStore } from "./kept_store.ts";
import { GONE_MS, Keeper, LEASE_MS, STOP_MS } from "./keeper.ts";

/** One engine of a test, with a clock of its own: one whose clock stands still is stopped. */
interface Engine extends AsyncDisposable {
  readonly life: string;
  readonly clock: FakeClock;
  readonly keeper: Keeper;
  readonly kept: KeptStore;
  readonly view: StateView;
  /** Whether its built-in workers run. */
  serves: boolean;
  /** Whether it reaches the key. */
  isCut: boolean;
}

async function start(
  server: MemoryLogServer,
  life: string,
  options: {
    readonly mayKeep?: boolean;
    readonly gone?: Set<string>;
    /** Stops it while it writes the key for the first time. */
    readonly endsAtWrite?: boolean;
    /** How far its clock is ahead of those of other engines. */
    readonly aheadMs?: number;
  } = {},
): Promise<Engine> {
  const directory = await Deno.makeTempDir();
  const report = keptLog();
  const clock = new FakeClock(Date.UTC(2025, 10, 21, 12) + (options.aheadMs ?? 0));
  const view = await StateView.open(`${directory}/view.sqlite`, report);
  const kept = new KeptStore();
  const { mayKeep = true, gone = new Set() } = options;
  const engine = { life, clock, kept, view, serves: false, isCut: false };
  let asked = 0;
  const key = server.openKey(() => {
    if (engine.isCut) throw new Error("no answer");
    if (options.endsAtWrite && ++asked === 1) void keeper[Symbol.asyncDispose]();
  });
  const keeper = new Keeper({
    ...{ life, key, view, kept, mayKeep, clock, report, log: server.open() },
    memory: UNLIMITED_MEMORY,
    isReachable: () => true,
    isGone: (other) => Promise.resolve(gone.has(other)),
    serve: (isKept) => Promise.resolve(void (engine.serves = isKept)),
  });
  return Object.assign(engine, {
    keeper,
    async [Symbol.asyncDispose]() {
      await keeper[Symbol.asyncDispose]();
      view[Symbol.dispose]();
      await Deno.remove(directory, { recursive: true });
    },
  });
}

/** Lets time pass for some engines until a condition holds; how much. */
async function pass(engines: readonly Engine[], holds: () => boolean): Promise<number> {
  let ms = 0;
  while (!holds()) {
    assert.ok((ms += 25) < 60_000, `not within a minute: ${holds}`);
    for (const { clock } of engines) clock.tick(25);
    // The views are files: what they wait for is not the clock.
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return ms;
}

Deno.test("one of several engines keeps the state, the others follow it", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a");
  await using b = await start(server, "b");
  await using c = await start(server, "c", { mayKeep: false });

  await pass([a, b, c], () => a.serves || b.serves);
  await pass([a, b, c], () => c.clock.now() > 10_000);

  assert.equal([a, b, c].filter(({ serves }) => serves).length, 1);
  const keeper = a.serves ? a : b;
  assert.deepEqual([a.keeper.keeper, c.keeper.keeper], [keeper.life, keeper.life]);
  await put(keeper.kept, ["k"], 1);
  await pass([a, b, c], () => c.view.applied === server.last);
  assert.equal(keeper.keeper.takeovers, 1);
  await pass([a, b, c], () => c.keeper.followed.behind === 0);
  assert.equal(c.keeper.followed.applied, server.last);
  assert.ok(c.keeper.followed.seen_ms_ago! <= 1_000);
  await assert.rejects(c.kept.get(["k"]), { code: "store_unavailable" });
});

Deno.test("an engine that stops while it takes the key gives it back, and ends", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a", { endsAtWrite: true });
  await using b = await start(server, "b", { mayKeep: false });

  await pass([a, b], () => b.clock.now() > 1_000);

  assert.equal(a.keeper.takeovers, 0);
  assert.equal(a.serves, false);
  assert.equal(b.keeper.keeper, undefined);
  await a.keeper[Symbol.asyncDispose]();
});

Deno.test("another engine takes over soon when NATS has no connection to the keeper", async () => {
  const server = new MemoryLogServer();
  const gone = new Set<string>();
  await using a = await start(server, "a", { gone });
  await pass([a], () => a.serves);
  await put(a.kept, ["k"], 1);
  await using b = await start(server, "b", { gone });
  await pass([a, b], () => b.clock.now() > 3_000);

  gone.add("a");
  const ms = await pass([b], () => b.serves);

  assert.ok(ms >= 100 && ms < GONE_MS + 800, `${ms} ms`);
  assert.equal((await b.kept.get(["k"]))?.value, 1);
  await assert.rejects(put(a.kept, ["k"], 2)); // The log refuses it, whatever its clock says.
});

Deno.test("a keeper that hangs is replaced after its lease, and answers nothing then", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a");
  await pass([a], () => a.serves);
  await put(a.kept, ["k"], 1);
  await using b = await start(server, "b");
  await pass([a, b], () => b.clock.now() > 3_000);

  const ms = await pass([b], () => b.serves);
  assert.ok(ms > LEASE_MS - 600 && ms < LEASE_MS + 1_500, `${ms} ms`);
  await put(b.kept, ["k"], 2);
  a.clock.tick(ms);

  await assert.rejects(a.kept.get(["k"]), { code: "store_unavailable" });
  await pass([a, b], () => !a.serves);
  assert.equal(b.serves, true);
});

Deno.test("a keeper that cannot renew stops before another one may take over", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a");
  await pass([a], () => a.serves);
  await using b = await start(server, "b");
  await pass([a, b], () => b.clock.now() > 3_000);

  a.isCut = true;
  const stopped = await pass([a, b], () => !a.serves);
  assert.equal(b.serves, false);
  const taken = stopped + await pass([a, b], () => b.serves);

  assert.ok(stopped <= STOP_MS + 100 && stopped > STOP_MS - 600, `${stopped} ms`);
  assert.ok(taken >= LEASE_MS - 500, `${taken} ms`);
});

Deno.test("a keeper that stops in order leaves the state to another one at once", async () => {
  const server = new MemoryLogServer();
  const a = await start(server, "a");
  await pass([a], () => a.serves);
  await using b = await start(server, "b");
  await pass([a, b], () => b.clock.now() > 3_000);

  await a[Symbol.asyncDispose]();
  const ms = await pass([b], () => b.serves);

  assert.equal(a.serves, false);
  assert.ok(ms < 500, `${ms} ms`);
});

Deno.test("a new keeper waits for what it was reading of the log", async () => {
  const server = new MemoryLogServer();
  const a = await start(server, "a");
  await pass([a], () => a.serves);
  await using b = await start(server, "b");
  const slow = Promise.withResolvers<void>();
  server.beforeRead = () => slow.promise;
  for (let i = 0; i < 10; i++) await put(a.kept, ["k"], i);
  await pass([a, b], () => b.clock.now() > 2_000);
  server.beforeRead = () => {}; // Only that one is slow.

  await a[Symbol.asyncDispose]();
  await pass([b], () => b.clock.now() > 4_000);
  assert.equal(b.serves, false);
  slow.resolve();
  await pass([b], () => b.serves);

  assert.equal((await b.kept.get(["k"]))?.value, 9);
  await put(b.kept, ["k"], 10);
});

Deno.test("a write without an answer makes the keeper step down, and perhaps again keeper", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a");
  await pass([a], () => a.serves);
  server.beforeAnswer = () => {
    server.beforeAnswer = () => {};
    throw new Error("no leader");
  };

  await assert.rejects(put(a.kept, ["k"], 1), { code: "SET_ERROR", details: { unknown: true } });
  await assert.rejects(a.kept.get(["k"]), { code: "store_unavailable" });
  await pass([a], () => !a.serves);
  await pass([a], () => a.serves);

  assert.equal((await a.kept.get(["k"]))?.value, 1);
  assert.equal(a.keeper.takeovers, 2);
});

Deno.test("calls wait for a keeper only while there was one not long ago", async () => {
  const server = new MemoryLogServer();
  await using a = await start(server, "a");
  await pass([a], () => a.serves);
  await pass([a], () => a.clock.now() > 30_000);
  assert.equal(a.keeper.isExpected, true);

  a.isCut = true;
  await pass([a], () => !a.serves);
  assert.equal(a.keeper.isExpected, true);
  await pass([a], () => !a.keeper.isExpected);
});

Deno.test("who keeps the state, and when, does not depend on what clocks show", async () => {
  const MINUTE_MS = 60_000;
  const server = new MemoryLogServer();
  await using a = await start(server, "a", { aheadMs: 10 * MINUTE_MS });
  await using b = await start(server, "b", { aheadMs: -10 * MINUTE_MS });
  a.clock.tick(MINUTE_MS); // Their counts from the start differ, too.
  const all = [a, b];
  await pass(all, () => a.serves || b.serves);

  for (let round = 0; round < 2; round++) {
    const [keeper, other] = a.serves ? [a, b] : [b, a];
    await put(keeper.kept, ["round"], round);
    const quietSince = other.clock.now();
    await pass(all, () => {
      assert.equal(other.serves, false, `round ${round}: two engines serve`);
      return other.clock.now() - quietSince > LEASE_MS + 500;
    });

    keeper.isCut = true;
    const stopped = await pass(all, () => !keeper.serves);
    assert.equal(other.serves, false, `round ${round}: taken before it was given up`);
    const taken = stopped + await pass(all, () => other.serves);

    assert.ok(stopped > STOP_MS - 600 && stopped <= STOP_MS + 100, `${stopped} ms`);
    assert.ok(taken >= LEASE_MS - 500 && taken < LEASE_MS + 1_500, `${taken} ms`);
    assert.equal((await other.kept.get(["round"]))?.value, round);
    await assert.rejects(put(keeper.kept, ["round"], -1), { code: "store_unavailable" });
    keeper.isCut = false;
  }
  assert.deepEqual(all.map(({ keeper }) => keeper.takeovers).toSorted(), [1, 2]);
});
