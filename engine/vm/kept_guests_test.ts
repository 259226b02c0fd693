import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type IdleGuest, KeptGuests } from "./kept_guests.ts";

class TestGuest implements IdleGuest {
  readonly key: string;
  readonly directory: string;
  readonly ended: Promise<unknown>;
  releases = 0;
  readonly end: (how: unknown) => void;

  constructor(key: string, directory = "/w") {
    this.key = key;
    this.directory = directory;
    ({ promise: this.ended, resolve: this.end } = Promise.withResolvers<unknown>());
  }

  release(): Promise<void> {
    this.releases++;
    return Promise.resolve();
  }
}

function setup() {
  const clock = new FakeClock();
  return { clock, kept: new KeptGuests<TestGuest>(clock, 1_000) };
}

Deno.test("KeptGuests.take() returns a machine with the same key once", () => {
  const { kept, clock } = setup();
  const guest = new TestGuest("a");
  kept.keep(guest);

  assert.equal(kept.take("a", "/w"), guest);
  assert.equal(kept.take("a", "/w"), undefined);
  clock.tick(1_000);
  assert.equal(guest.releases, 0);
});

Deno.test("KeptGuests releases a machine after its time", () => {
  const { kept, clock } = setup();
  const guest = new TestGuest("a");
  kept.keep(guest);

  clock.tick(999);
  assert.equal(guest.releases, 0);
  clock.tick(1);

  assert.equal(guest.releases, 1);
  assert.equal(kept.take("a", "/w"), undefined);
});

Deno.test("KeptGuests.take() releases the worker's machines with other keys", () => {
  const { kept } = setup();
  const [old, other] = [new TestGuest("a"), new TestGuest("a", "/other")];
  kept.keep(old);
  kept.keep(other);

  assert.equal(kept.take("b", "/w"), undefined);

  assert.deepEqual([old.releases, other.releases], [1, 0]);
});

Deno.test("KeptGuests keeps several equal machines of one worker", () => {
  const { kept } = setup();
  const guests = [new TestGuest("a"), new TestGuest("a")];
  for (const guest of guests) kept.keep(guest);

  assert.equal(kept.take("a", "/w"), guests[0]);
  assert.equal(kept.take("a", "/w"), guests[1]);
});

Deno.test("KeptGuests.take() returns no machine that has ended", async () => {
  const { kept, clock } = setup();
  const guest = new TestGuest("a");
  kept.keep(guest);

  guest.end("panic");
  await guest.ended;
  await Promise.resolve();

  assert.equal(kept.take("a", "/w"), undefined);
  assert.deepEqual([guest.releases, clock.waiting], [1, 0]);
});

Deno.test("KeptGuests.close() releases all machines, and later ones immediately", async () => {
  const { kept, clock } = setup();
  const guests = [new TestGuest("a"), new TestGuest("b", "/other"), new TestGuest("c")];
  kept.keep(guests[0]!);
  kept.keep(guests[1]!);

  await kept.close();
  kept.keep(guests[2]!);

  assert.deepEqual(guests.map(({ releases }) => releases), [1, 1, 1]);
  assert.equal(clock.waiting, 0);
});
