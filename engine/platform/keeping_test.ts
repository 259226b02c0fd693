import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { KEEP_AGAIN_MS, LocalKeeping } from "./keeping.ts";

function setup() {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const keeping = new LocalKeeping({ clock, log: recordingLog(lines) });
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return { clock, lines, keeping, settle };
}

/** Resolves when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

Deno.test("a single engine has every role at once, until it gives it up", async () => {
  const { keeping } = setup();
  const events: string[] = [];

  const kept = keeping.keep("cron", async (signal) => {
    events.push("began");
    await aborted(signal);
    events.push("ended");
  });
  assert.deepEqual(events, ["began"]);
  await kept[Symbol.asyncDispose]();

  assert.deepEqual(events, ["began", "ended"]);
});

Deno.test("work that fails is logged and runs again after a pause", async () => {
  const { clock, lines, keeping, settle } = setup();
  let runs = 0;

  const kept = keeping.keep("cron", async (signal) => {
    if (++runs === 1) throw new Error("oh");
    await aborted(signal);
  });
  await settle();
  assert.deepEqual(lines.map(({ fields }) => fields), [{ role: "cron", reason: "oh" }]);
  clock.tick(KEEP_AGAIN_MS - 1);
  await settle();
  assert.equal(runs, 1);
  clock.tick(1);
  await settle();

  assert.equal(runs, 2);
  await kept[Symbol.asyncDispose]();
});

Deno.test("a role that is given up during the pause is not taken again", async () => {
  const { clock, keeping, settle } = setup();
  const kept = keeping.keep("cron", () => Promise.reject(new Error("oh")));
  await settle();

  await kept[Symbol.asyncDispose]();

  assert.equal(clock.waiting, 0);
});
