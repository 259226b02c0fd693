/**
 * Opens the log and the leader's key that `engine.cluster.log` names; the client of the one that is
 * not used is not loaded.
 *
 * @module
 */
import type { Clock } from "../../ports/clock.ts";
import type { ClusterSettings } from "../../ports/config.ts";
import type { Log } from "../../ports/log.ts";
import type { LeaderKey, StateLog } from "../../ports/state_log.ts";
import type { NatsBus } from "../nats_bus.ts";

/** What opening uses. */
export interface OpenLogSetup {
  readonly settings: ClusterSettings;
  readonly bus: NatsBus;
  readonly clock: Clock;
  readonly log: Log;
}

/** An open log. */
export interface OpenLog extends AsyncDisposable {
  readonly log: StateLog;
  readonly key: LeaderKey;
}

/**
 * Waits until NATS is reached, if the log is there.
 *
 * @throws {EngineError} `store_unavailable`, also for servers that may lose what they acknowledged.
 */
export async function openLog(
  { settings, bus, clock, log: report }: OpenLogSetup,
): Promise<OpenLog> {
  const { name: cluster, copies, monitor: monitors, log: where } = settings;
  const insecure = settings.insecure || !settings.require_sync;
  await using opened = new AsyncDisposableStack();
  if (where !== "jetstream") {
    const { openPostgresKey, openPostgresLog } = await import("../postgres_log.ts");
    const log = opened.use(
      await openPostgresLog({ url: where, cluster, insecure, clock, log: report }),
    );
    const key = opened.use(openPostgresKey(where, cluster));
    return held(log, key, opened.move());
  }
  const line = await bus.connection();
  const { openJetStreamKey, openJetStreamLog } = await import("../jet_stream_log.ts");
  const setup = { line, cluster, copies, monitors, insecure, clock, log: report };
  const log = opened.use(await openJetStreamLog(setup));
  return held(log, await openJetStreamKey(setup), opened.move());
}

function held(log: StateLog, key: LeaderKey, stack: AsyncDisposableStack): OpenLog {
  return { log, key, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
