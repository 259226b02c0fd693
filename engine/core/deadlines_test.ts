/**
 * Many deadlines on one timer.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { Deadlines, type Due } from "./deadlines.ts";

interface Item extends Due {
  readonly name: string;
}

const item = (name: string): Item => ({ name, due: 0, place: -1 });

function setup(): { clock: FakeClock; deadlines: Deadlines<Item>; passed: string[] } {
  const clock = new FakeClock();
  const passed: string[] = [];
  const deadlines = new Deadlines<Item>(clock, ({ name }) => passed.push(`${name}@${clock.now()}`));
  return { clock, deadlines, passed };
}

Deno.test("Deadlines fire in order of their due time, on one timer", () => {
  const { clock, deadlines, passed } = setup();
  deadlines.add(item("late"), 300);
  deadlines.add(item("early"), 100);
  deadlines.add(item("middle"), 200);

  assert.equal(clock.waiting, 1);
  clock.tick(99);
  assert.deepEqual(passed, []);
  clock.tick(1_000);

  assert.deepEqual(passed, ["early@100", "middle@200", "late@300"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Deadlines.remove() removes one item, once, and keeps the others", () => {
  const { clock, deadlines, passed } = setup();
  const [a, b, c] = [item("a"), item("b"), item("c")];
  deadlines.add(a, 10);
  deadlines.add(b, 20);
  deadlines.add(c, 30);

  deadlines.remove(a);
  deadlines.remove(a);
  deadlines.remove(item("stranger"));
  clock.tick(100);

  assert.deepEqual(passed, ["b@20", "c@30"]);
});

Deno.test("Deadlines accept items that are added while others fire", () => {
  const { clock, passed } = setup();
  const deadlines: Deadlines<Item> = new Deadlines(clock, ({ name }) => {
    passed.push(`${name}@${clock.now()}`);
    if (name === "first") deadlines.add(item("second"), 5);
  });
  deadlines.add(item("first"), 10);

  clock.tick(50);

  assert.deepEqual(passed, ["first@10", "second@15"]);
});

Deno.test("Deadlines.clear() cancels the timer", () => {
  const { clock, deadlines, passed } = setup();
  deadlines.add(item("a"), 10);

  deadlines.clear();
  clock.tick(100);

  assert.deepEqual([clock.waiting, deadlines.size, passed.length], [0, 0, 0]);
});

Deno.test("Deadlines keep their order through thousands of random changes", () => {
  const { clock, deadlines } = setup();
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48_271) % 0x7fffffff) % below;
  const waiting = new Set<Item>();
  let last = 0;
  const checked: Deadlines<Item> = new Deadlines(clock, (due) => {
    assert.ok(waiting.delete(due), "an item runs once, and not after it was removed");
    assert.ok(due.due >= last && due.due <= clock.now(), "an item runs in order and not early");
    last = due.due;
  });
  for (let step = 0; step < 20_000; step++) {
    const choice = random(10);
    if (choice < 5) {
      const fresh = item(`${step}`);
      waiting.add(fresh);
      checked.add(fresh, random(1_000));
    } else if (choice < 8) {
      const [some] = waiting;
      if (some) {
        waiting.delete(some);
        checked.remove(some);
      }
    } else {
      clock.tick(random(20));
    }
    assert.equal(checked.size, waiting.size);
  }

  clock.tick(2_000);
  assert.equal(waiting.size, 0);
  assert.equal(deadlines.size, 0);
});
