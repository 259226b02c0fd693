/**
 * Which delivery a trigger joins that is equal to others.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { Random } from "../../tests/fakes/random.ts";
import { EqualDeliveries } from "./equal_deliveries.ts";
import { Peer } from "./peer.ts";

interface Delivery {
  readonly members: Map<Peer, true>;
  isRefused: boolean;
}

function peer(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

/** Registers an equal trigger of a worker; returns the delivery that has it. */
function register(equals: EqualDeliveries<Delivery>, owner: Peer): Delivery {
  let delivery = equals.find(owner);
  if (!delivery) {
    delivery = { members: new Map(), isRefused: false };
    equals.add(delivery);
  }
  delivery.members.set(owner, true);
  equals.joined(owner);
  return delivery;
}

function unregister(equals: EqualDeliveries<Delivery>, owner: Peer, delivery: Delivery): void {
  delivery.members.delete(owner);
  equals.left(owner);
  if (delivery.members.size === 0) equals.remove(delivery);
}

Deno.test("workers share a delivery, and a second trigger of one gets another", () => {
  const equals = new EqualDeliveries<Delivery>();
  const [a, b] = [peer("a"), peer("b")];

  const first = register(equals, a);
  assert.equal(register(equals, b), first);
  const second = register(equals, a);
  assert.notEqual(second, first);
  assert.equal(register(equals, b), second);
  unregister(equals, a, first);
  assert.equal(register(equals, a), first);
});

Deno.test("a delivery that was refused is not joined", () => {
  const equals = new EqualDeliveries<Delivery>();
  register(equals, peer("a")).isRefused = true;

  assert.equal(equals.find(peer("b")), undefined);
});

Deno.test("in any order, each worker finds a delivery it has not joined whenever there is one", () => {
  const random = new Random(4);
  const equals = new EqualDeliveries<Delivery>();
  const peers = ["a", "b", "c"].map(peer);
  const held: [Peer, Delivery][] = [];
  for (let step = 0; step < 5_000; step++) {
    if (held.length > 0 && random.once(2)) {
      const [one] = held.splice(random.below(held.length), 1);
      unregister(equals, ...one!);
    } else {
      const owner = random.pick(peers);
      held.push([owner, register(equals, owner)]);
    }
    const all = new Set(held.map(([, delivery]) => delivery));
    assert.equal(equals.size, all.size);
    for (const owner of peers) {
      const free = [...all].filter(({ members }) => !members.has(owner));
      assert.equal(equals.find(owner) !== undefined, free.length > 0);
    }
  }
});

Deno.test("thousands of equal triggers of one worker are added and removed without a search", () => {
  const equals = new EqualDeliveries<Delivery>();
  let looks = 0;
  class Counted extends Map<Peer, true> {
    override has(key: Peer): boolean {
      looks++;
      return super.has(key);
    }
  }
  for (const owner of [peer("a"), peer("b")]) {
    for (let i = 0; i < 5_000; i++) {
      let delivery = equals.find(owner);
      if (!delivery) equals.add(delivery = { members: new Counted(), isRefused: false });
      delivery.members.set(owner, true);
      equals.joined(owner);
    }
  }

  assert.equal(equals.size, 5_000);
  assert.ok(looks <= 10_000, `${looks} looks`);
});
