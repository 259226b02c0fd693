/**
 * Rings and metrics belong to an engine, not to one configuration of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_supervision.ts";
import { FakeMeters } from "../../tests/fakes/fake_metrics.ts";
import { FakeTraces, newLog, storedSpan } from "../../tests/fakes/spans.ts";
import type { EngineHost } from "../kit/define.ts";
import { historyOf, ringsOf } from "./retained.ts";

Deno.test("ringsOf() returns one pair of rings per engine, at the given size", () => {
  const engine = new FakeTraces();
  const first = ringsOf(engine, { spans: 100_000, logs: 100_000 });
  first.spans.add(storedSpan());
  first.logs.add(newLog());

  const again = ringsOf(engine, { spans: 100_000, logs: 10 });
  const other = ringsOf(new FakeTraces(), { spans: 100_000, logs: 100_000 });

  assert.equal(again, first);
  assert.deepEqual([again.spans.size, again.logs.size], [1, 0]);
  assert.deepEqual([other.spans.size, other.isRestored], [0, false]);
});

const host = (meters: FakeMeters) =>
  ({ meters, directory: new FakeDirectory(), clock: new FakeClock() }) as unknown as EngineHost;

Deno.test("historyOf() returns the same history for the same engine", () => {
  const meters = new FakeMeters();

  assert.equal(historyOf(host(meters)), historyOf(host(meters)));
});

Deno.test("Two engines in one process have separate histories", () => {
  assert.notEqual(historyOf(host(new FakeMeters())), historyOf(host(new FakeMeters())));
});
