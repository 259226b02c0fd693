/**
 * Workers of the TypeScript SDK and an engine on a real socket that is gone for a minute.
 *
 * The minute passes on the worker's clock, which this test moves; dials and connections are real.
 *
 * @module
 */
import assert from "node:assert/strict";
import { registerWorker, type Worker } from "../../mod.ts";
import { FakeClock } from "../fakes/fake_clock.ts";
import { SocketEngine } from "../fakes/socket_server.ts";
import { until } from "../fakes/until.ts";

const OUTAGE_MS = 60_000;
/** A worker is connected at most this long after the engine's return. */
const RETURN_MS = 2_000;
const STEP_MS = 100;

/** Moves the worker's clock a step, and lets real dials of this machine fail or succeed. */
async function step(clock: FakeClock): Promise<void> {
  clock.tick(STEP_MS);
  await new Promise((resolve) => setTimeout(resolve, 2));
}

/** Time on the clock until the worker is connected. */
async function returnOf(worker: Worker, clock: FakeClock): Promise<number> {
  const start = clock.now();
  while (worker.connectionState !== "connected" && clock.now() - start < RETURN_MS) {
    await step(clock);
  }
  await until(() => worker.connectionState === "connected", "the last dial did not open");
  return clock.now() - start;
}

/** Accepts connections and never answers, as a network that is cut; closes them at the end. */
class SilentListener implements AsyncDisposable {
  readonly #listener: Deno.TcpListener;
  readonly #accepting: Promise<void>;
  readonly #accepted: Deno.Conn[] = [];

  constructor(port: number) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port });
    this.#listener = listener;
    this.#accepting = (async () => {
      for await (const connection of listener) this.#accepted.push(connection);
    })();
  }

  /** Frees the port; what was accepted stays open. */
  async stopListening(): Promise<void> {
    this.#listener.close();
    await this.#accepting;
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#accepted) connection.close();
    return this.#accepting;
  }
}

for (const isSilent of [false, true]) {
  const dials = isSilent ? "are not answered" : "are refused";
  Deno.test(`a worker whose dials ${dials} for a minute is back 2 s after the engine`, async () => {
    const clock = new FakeClock();
    const before = new SocketEngine();
    const { port } = before;
    await using worker = registerWorker(before.url, { clock, telemetry: false, onError() {} });
    worker.registerFunction("echo::it", (payload) => payload);
    await until(() => worker.connectionState === "connected");
    await before[Symbol.asyncDispose]();
    await until(() => worker.connectionState === "reconnecting");

    await using silent = isSilent ? new SilentListener(port) : undefined;
    while (clock.now() < OUTAGE_MS) await step(clock);
    const queued = worker.trigger({ function_id: "echo::it", payload: 7 });
    await silent?.stopListening();
    await using _after = new SocketEngine({ port });

    const returned = await returnOf(worker, clock);
    assert.ok(returned <= RETURN_MS, `back after ${returned} ms`);
    assert.equal(await queued, 7);
  });
}
