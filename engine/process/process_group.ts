/**
 * Process groups: who is in one, and how one is ended.
 *
 * A program that the engine starts leads a group of its own, so that what it started can be ended
 * with it. A process is told from a later one with the same id by the time it started.
 *
 * @module
 */

/** How long a program may take to exit after SIGTERM. */
export const STOP_GRACE_MS = 10_000;

/** A group that is to end is looked at so soon, then ever less often. */
const POLL_FIRST_MS = 10;
const POLL_MAX_MS = 200;

/** Whether somebody in the group still runs. The dead whom nobody has buried do not count. */
export async function isGroupAlive(leader: number): Promise<boolean> {
  if (!signalGroup(leader, 0)) return false;
  if (Deno.build.os !== "linux" || isRunning(await readStat(leader))) return true;
  try {
    for await (const entry of Deno.readDir("/proc")) {
      if (!/^\d+$/.test(entry.name)) continue;
      const stat = await readStat(Number(entry.name));
      if (stat?.group === leader && isRunning(stat)) return true;
    }
    return false;
  } catch {
    return true; // Too many files are open: whoever waits for its end looks again.
  }
}

/** Sends a signal to all in a group; `false` when there is nobody. */
export function signalGroup(leader: number, signal: Deno.Signal | 0): boolean {
  if (leader <= 1) return false; // 0 and 1 would mean the engine's own group or everybody.
  try {
    Deno.kill(-leader, signal);
    return true;
  } catch (thrown) {
    return thrown instanceof Deno.errors.PermissionDenied;
  }
}

/** Waits until nobody is left in a group, for `limitMs` at most; `false` when somebody is. */
export async function groupEnds(leader: number, limitMs: number): Promise<boolean> {
  const limit = performance.now() + limitMs;
  for (let wait = POLL_FIRST_MS;; wait = Math.min(wait * 1.5, POLL_MAX_MS)) {
    if (!await isGroupAlive(leader)) return true;
    if (performance.now() >= limit) return false;
    await pause(Math.min(wait, Math.max(1, limit - performance.now())));
  }
}

/** Asks a group to leave and, after `graceMs`, ends it. Returns when nobody is left. */
export async function endGroup(leader: number, graceMs: number): Promise<void> {
  if (!signalGroup(leader, "SIGTERM")) return;
  if (await groupEnds(leader, graceMs)) return;
  signalGroup(leader, "SIGKILL");
  // A process in the middle of a system call may take a moment, or for ever: not our business.
  await groupEnds(leader, 2_000);
}

/**
 * When a process started, as a text that is equal for the same process only; `undefined` when
 * there is none with this id or the system does not say.
 */
export async function startOf(pid: number): Promise<string | undefined> {
  if (Deno.build.os === "linux") {
    const boot = await Deno.readTextFile("/proc/sys/kernel/random/boot_id").catch(() => "");
    const stat = await readStat(pid);
    return stat && isRunning(stat) ? `${boot.trim()}/${stat.started}` : undefined;
  }
  const command = new Deno.Command("ps", { args: ["-o", "lstart=", "-p", `${pid}`] });
  const { stdout } = await command.output().catch(() => ({ stdout: new Uint8Array() }));
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/** What Linux says of a process. */
interface Stat {
  readonly state: string;
  readonly group: number;
  /** Clock ticks since the machine started. */
  readonly started: string;
}

function isRunning(stat: Stat | undefined): boolean {
  return stat !== undefined && stat.state !== "Z" && stat.state !== "X";
}

/** The name of a program may hold anything, so the fields are read behind it. */
async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => undefined);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, group: Number(fields[2]), started: fields[19]! };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
