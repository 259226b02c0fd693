/**
 * Rings belong to an engine, not to one configuration of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeTraces } from "../../../tests/fakes/recorded.ts";
import { newLog, storedSpan } from "../../../tests/fakes/spans.ts";
import { ringsOf } from "./kept.ts";

Deno.test("ringsOf() is the same for one engine, another for another, at the size asked for", () => {
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
