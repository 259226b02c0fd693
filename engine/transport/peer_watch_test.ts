import assert from "node:assert/strict";
import { PeerWatch, PONG_MS } from "./peer_watch.ts";

Deno.test("PeerWatch asks for a ping at each interval", () => {
  const watch = new PeerWatch(0, 100, 30);
  const found = [10, 29, 30, 40, 59, 60].map((now) => {
    watch.wasHeard = true;
    return watch.check(now, false, true);
  });

  assert.deepEqual(found, [undefined, undefined, "ping", undefined, undefined, "ping"]);
});

Deno.test("PeerWatch asks for the first ping at the given time, then at each interval", () => {
  const watch = new PeerWatch(0, 100, 30, 10);
  const found = [9, 10, 39, 40].map((now) => {
    watch.wasHeard = true;
    return watch.check(now, false, true);
  });

  assert.deepEqual(found, [undefined, "ping", undefined, "ping"]);
});

Deno.test("PeerWatch suspects a peer although a ping is due at every check", () => {
  const watch = new PeerWatch(0, 10_000, 100);
  const found = [1_000, 2_000, 3_000].map((now) => watch.check(now, false, true));

  assert.deepEqual(found, ["ping", "suspect", "ping"]);
});

Deno.test("PeerWatch finds a peer silent when that long has passed since the last check with data", () => {
  const watch = new PeerWatch(0, 100, 1_000);
  assert.equal(watch.check(50, false, true), undefined);
  assert.equal(watch.check(149, false, true), undefined);
  assert.equal(watch.check(150, false, true), "silent");
});

Deno.test("PeerWatch does not find a peer silent while reading is paused", () => {
  const watch = new PeerWatch(0, 100, 1_000);
  assert.equal(watch.check(1, false, true), undefined);
  assert.equal(watch.check(500, true, true), undefined);
  assert.equal(watch.check(599, false, true), undefined);
  assert.equal(watch.check(600, false, true), "silent");
});

Deno.test("PeerWatch finds a peer stuck only when it takes nothing of the queue", () => {
  const watch = new PeerWatch(0, 100, 1_000);
  const look = (now: number, isIdle: boolean): unknown => {
    watch.wasHeard = true;
    return watch.check(now, false, isIdle);
  };
  assert.equal(look(10, false), undefined);
  assert.equal(look(90, true), undefined);
  assert.equal(look(189, false), undefined);
  watch.hasMoved = true;
  assert.equal(look(190, false), undefined);
  assert.equal(look(290, false), "stuck");
});

Deno.test("PeerWatch.stuckMsMax lets a peer that is heard read nothing for longer", () => {
  const watch = new PeerWatch(0, 100, 1_000);
  watch.stuckMsMax = 300;
  const found: unknown[] = [];

  for (let now = 50; now <= 350; now += 50) {
    watch.wasHeard = true;
    found.push(watch.check(now, false, now === 50));
  }

  assert.deepEqual(found, [...Array(6).fill(undefined), "stuck"]);
});

Deno.test("PeerWatch.takeActivity() says once that something arrived or was written", () => {
  const watch = new PeerWatch(0, 100, 1_000);
  watch.takeActivity();

  assert.equal(watch.takeActivity(), false);
  watch.wasHeard = true;
  assert.equal(watch.takeActivity(), true);
  watch.hasMoved = true;
  assert.equal(watch.takeActivity(), true);
  assert.equal(watch.takeActivity(), false);
});

Deno.test("PeerWatch suspects a peer that leaves a ping unanswered, at each ping", () => {
  const watch = new PeerWatch(0, 60_000, 20_000);
  const found: string[] = [];

  for (let now = 1_000; now < 50_000; now += 1_000) {
    const finding = watch.check(now, false, true);
    if (finding) found.push(`${finding} ${now}`);
  }

  assert.deepEqual(found, ["ping 20000", "suspect 22000", "ping 40000", "suspect 42000"]);
});

Deno.test("PeerWatch does not suspect a peer that answers, or that this side does not read", () => {
  for (const isPaused of [false, true]) {
    const watch = new PeerWatch(0, 60_000, 20_000);
    const found: string[] = [];

    for (let now = 1_000; now < 50_000; now += 1_000) {
      const finding = watch.check(now, isPaused, true);
      if (finding) found.push(finding);
      if (finding === "ping") watch.wasHeard = !isPaused;
    }

    assert.deepEqual(found, ["ping", "ping"]);
  }
});

Deno.test("PeerWatch.probe() asks at once, and what came before it is no answer", () => {
  const watch = new PeerWatch(0, 60_000, 20_000);
  watch.check(1_000, false, true);
  watch.wasHeard = true;

  assert.equal(watch.probe(1_500), true);
  assert.equal(watch.probe(1_600), false, "an answer is awaited");
  assert.equal(watch.check(2_000, false, true), undefined);
  assert.equal(watch.check(3_000, false, true), undefined);
  assert.equal(watch.check(1_500 + PONG_MS, false, true), "suspect");
});

Deno.test("PeerWatch does not suspect a peer when this side stood still", () => {
  const watch = new PeerWatch(0, 60_000, 20_000);
  watch.check(1_000, false, true);
  watch.probe(1_000);

  assert.equal(watch.check(9_000, false, true), undefined);
  watch.wasHeard = true;
  assert.equal(watch.check(10_000, false, true), undefined);
  assert.equal(watch.check(12_000, false, true), undefined);
});
