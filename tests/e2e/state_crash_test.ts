/**
 * State that was acknowledged over the wire is there after the engine was killed, with as many
 * changes in flight as share one commit and more.
 *
 * tests/e2e/crash_test.ts does the same to the store alone, far more often and with values of all sizes.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const IN_FLIGHT = 1_024;
/** The engine is killed when so many changes were acknowledged in a round. */
const ROUNDS = [1, 700, 3_000];

/** Of each key: what was acknowledged last, and what was sent last. */
interface Written {
  readonly acknowledged: number[];
  readonly sent: number[];
  /** Nothing more is to be sent. */
  isOver: boolean;
}

Deno.test("an engine killed with 1,024 changes in flight has all that it acknowledged", async () => {
  await using engine = await EngineProcess.start();
  await using worker = engine.connect();
  const zeros = () => Array.from({ length: IN_FLIGHT }, () => 0);
  const written: Written = { acknowledged: zeros(), sent: zeros(), isOver: false };

  for (const enough of ROUNDS) {
    await until(() => get(worker, 0).then(() => true), () => engine.stderr);
    written.isOver = false;
    const ended = Promise.withResolvers<void>();
    let count = 0;
    const writers = written.sent.map((_, key) =>
      writeOn(worker, key, written, () => {
        if (++count === enough) ended.resolve();
      })
    );
    await ended.promise;
    written.isOver = true;
    await engine.kill("SIGKILL");
    await Promise.all(writers);
    await engine.start();
    await check(engine, worker, written);
  }
});

/** Writes to a key what comes next, again and again, until the engine is gone. */
async function writeOn(
  worker: Worker,
  key: number,
  written: Written,
  onAcknowledged: () => void,
): Promise<void> {
  const { acknowledged, sent } = written;
  for (let isThere = true; isThere && !written.isOver;) {
    const value = ++sent[key]!;
    const payload = { scope: "crash", key: `${key}`, value };
    isThere = await worker.trigger({ function_id: "state::set", payload }).then(() => {
      acknowledged[key] = value;
      onAcknowledged();
      return true;
    }, () => false); // Cut by the kill.
  }
}

async function check(engine: EngineProcess, worker: Worker, written: Written): Promise<void> {
  const { acknowledged, sent } = written;
  await until(() => get(worker, 0).then(() => true), () => engine.stderr);
  const stored = await Promise.all(sent.map((_, key) => get(worker, key)));
  for (const [key, value] of stored.entries()) {
    const about = `key ${key}: ${acknowledged[key]} acknowledged, ${
      sent[key]
    } sent, ${value} there`;
    assert.ok(value >= acknowledged[key]! && value <= sent[key]!, about);
  }
}

/** The value of a key; 0 when there is none. */
async function get(worker: Worker, key: number): Promise<number> {
  const payload = { scope: "crash", key: `${key}` };
  const value = await worker.trigger({ function_id: "state::get", payload, timeout_ms: 5_000 });
  return value as number | undefined ?? 0;
}
