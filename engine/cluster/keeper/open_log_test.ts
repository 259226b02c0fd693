import assert from "node:assert/strict";
import { keptLog } from "../../../tests/cluster/kept_log.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import type { ClusterSettings } from "../../ports/config.ts";
import { NatsBus } from "../nats_bus.ts";
import { openLog } from "./open_log.ts";

const SETTINGS: ClusterSettings = {
  name: "test",
  nats: ["nats://127.0.0.1:1"],
  insecure: false,
  engine_name: "a",
  log: "jetstream",
  keeper: true,
  copies: 3,
  require_sync: true,
  monitor: [],
  far_calls: 16,
};

Deno.test("openLog() waits for NATS, and ends with the bus", async () => {
  const [clock, log] = [new FakeClock(), keptLog()];
  const bus = new NatsBus({ settings: SETTINGS, clock, log });

  const opening = openLog({ settings: SETTINGS, bus, clock, log });
  await bus[Symbol.asyncDispose]();

  await assert.rejects(opening, /the engine stops/);
});
