import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../../tests/fakes/fake_directory.ts";
import { FakeMeters } from "../../../tests/fakes/fake_meters.ts";
import type { EngineHost } from "../../kit/define.ts";
import { historyOf } from "./kept.ts";

const host = (meters: FakeMeters) =>
  ({ meters, directory: new FakeDirectory(), clock: new FakeClock() }) as unknown as EngineHost;

Deno.test("An engine has one past, whoever asks", () => {
  const meters = new FakeMeters();

  assert.equal(historyOf(host(meters)), historyOf(host(meters)));
});

Deno.test("Two engines in one process have pasts of their own", () => {
  assert.notEqual(historyOf(host(new FakeMeters())), historyOf(host(new FakeMeters())));
});
