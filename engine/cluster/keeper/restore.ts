/**
 * Puts a backup in place of the state of a cluster, whose engines may run.
 *
 * A message in the log says that the state was replaced, from which on the writes of the keeper
 * before are refused; the backup follows as a snapshot of everything up to that message. Without
 * that snapshot no engine takes the state over, so a restore that ends half-way leaves a cluster
 * that waits for another restore, never one with half a state.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ClusterSettings } from "../../ports/config.ts";
import type { Log } from "../../ports/log.ts";
import { isNotOwner, type StateLog } from "../../ports/state_log.ts";
import type { StateCheck } from "../../ports/store.ts";
import { encodeChanges } from "../../store/log_changes.ts";
import { copyBackup } from "../../store/offline_state.ts";
import { piecesOf } from "../../store/state_view.ts";
import { NatsBus } from "../nats_bus.ts";
import { type OpenLog, openLog } from "./open_log.ts";

/** How long NATS may take to be reached, where the log is there. */
const NATS_MS = 10_000;
/** Attempts to become the last one in the log, while a keeper writes. */
const ATTEMPTS = 50;

/** What a restore works with. */
export interface RestoreSetup {
  readonly settings: ClusterSettings;
  /** An intact copy of the backup is made there first; it is removed afterwards. */
  readonly copy: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Restores a backup; what verifying it found.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` when it is not intact, `store_unavailable` when the log
 * cannot be opened; nothing has changed then.
 */
export async function restoreCluster(backup: string, setup: RestoreSetup): Promise<StateCheck> {
  const { settings, copy, clock, log } = setup;
  const check = copyBackup(backup, copy);
  try {
    await using bus = new NatsBus({ settings, clock, log });
    bus.start();
    if (settings.log === "jetstream") await reach(bus, setup);
    await using opened = await openLog({ settings, bus, clock, log });
    using kv = await Deno.openKv(copy);
    await replaceState(opened, kv);
    return check;
  } finally {
    for (const end of ["", "-wal", "-shm"]) await Deno.remove(`${copy}${end}`).catch(() => {});
  }
}

/** @throws {EngineError} `store_unavailable` when NATS is not reached in time. */
async function reach(bus: NatsBus, { settings, clock }: RestoreSetup): Promise<void> {
  let cancel = (): void => {};
  const late = new Promise<false>((resolve) => {
    cancel = clock.after(NATS_MS, () => resolve(false));
  });
  const isReached = await Promise.race([bus.connection(), late]);
  cancel();
  if (isReached !== false) return;
  const message = `NATS cannot be reached at ${settings.nats.join(", ")} (${bus.problem}); ` +
    "nothing was restored";
  throw new EngineError("store_unavailable", message);
}

/** Replaces the state in a log by what a database has, and makes the keeper read it anew. */
export async function replaceState(
  { log, key }: Pick<OpenLog, "log" | "key">,
  kv: Deno.Kv,
): Promise<void> {
  const number = await appendRestored(log);
  await log.snapshot(piecesOf(kv), number);
  const leader = await key.read();
  // Its next renewal is refused, and the one who takes the state over has it as it is now.
  if (leader && leader.life !== "") await key.write("", leader.revision).catch(ignoreRenewed);
}

async function appendRestored(log: StateLog): Promise<number> {
  for (let attempt = 1;; attempt++) {
    try {
      return await log.append(encodeChanges([["restored"]]), (await log.end()).number);
    } catch (thrown) {
      if (!isNotOwner(thrown) || attempt === ATTEMPTS) throw thrown;
    }
  }
}

/** A keeper that renewed at that moment steps down with its next write instead. */
function ignoreRenewed(thrown: unknown): void {
  if (!(thrown instanceof EngineError) || !isNotOwner(thrown)) throw thrown;
}
