import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { registerWorker } from "../typescript/register_worker.ts";
import { offerConnection, testConnection } from "./hook.ts";

Deno.test("registerWorker() connects to the offered engine, and to no other after it", async () => {
  const [first, second] = [new FakeDial(), new FakeDial()];
  const own = new FakeDial();
  const takeBackFirst = offerConnection({ dial: first.dial, clock: new FakeClock() });
  const takeBackSecond = offerConnection({ dial: second.dial, clock: new FakeClock() });

  await using _latest = registerWorker("ws://127.0.0.1:1");
  await using _other = registerWorker("ws://127.0.0.1:1", { dial: own.dial });
  takeBackSecond();
  await using _earlier = registerWorker();
  takeBackFirst();
  takeBackFirst();

  assert.deepEqual([first, second, own].map(({ transports }) => transports.length), [1, 1, 1]);
  assert.equal(testConnection(), undefined);
});
