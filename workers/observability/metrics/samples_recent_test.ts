import assert from "node:assert/strict";
import { FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import { RecentDeltas } from "./samples_recent.ts";

Deno.test("RecentDeltas remembers the last minutes and forgets what was before", () => {
  using at = new FakeMetrics();
  const recent = new RecentDeltas();
  at.sampler.listen((second) => recent.add(second));
  at.meters.call("a::b", { ms: 1, times: 3 });
  at.clock.tick(1_000);
  at.meters.call("a::b", { ms: 1, times: 4 });
  at.clock.tick(150_000);

  assert.equal(recent.read()[0]!.calls, 7);
  at.clock.tick(200_000);
  assert.deepEqual(recent.read(), []);
});
