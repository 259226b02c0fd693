/**
 * Reading what strangers send never takes more than a part of the engine's thread.
 *
 * @module
 */
import assert from "node:assert/strict";
import { TELEMETRY_INTAKE_BYTES_PER_SECOND, TELEMETRY_INTAKE_MS_PER_SECOND } from "../limits.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { ReadingShare } from "./reading_share.ts";

function setup() {
  const clock = new FakeClock();
  const share = new ReadingShare(clock);
  return { clock, share, read: (ms = 0, bytes = 1) => share.read(bytes, () => clock.tick(ms)) };
}

Deno.test("ReadingShare reads so many bytes in a second and no more", () => {
  const { clock, read } = setup();

  assert.ok(read(0, TELEMETRY_INTAKE_BYTES_PER_SECOND));
  assert.equal(read(), false);
  clock.tick(1_000);
  assert.ok(read());
});

Deno.test("ReadingShare has what took long paid for in the seconds after it", () => {
  const { clock, read } = setup();

  assert.ok(read(1_000));
  const wait = 1_000 / TELEMETRY_INTAKE_MS_PER_SECOND * 1_000;
  clock.tick(wait - 1_001);
  assert.equal(read(), false);
  clock.tick(1);

  assert.ok(read());
});

Deno.test("ReadingShare counts what ends in an error like all else", () => {
  const { clock, share, read } = setup();

  assert.throws(() =>
    share.read(1, () => {
      clock.tick(TELEMETRY_INTAKE_MS_PER_SECOND);
      throw new Error("broken");
    }), /broken/);

  assert.equal(read(), false);
});
