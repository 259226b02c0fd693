/**
 * Processes that a launch started and that left its process group, such as by `setsid`.
 *
 * They are known by the id of the launch, which is in the environment of every program and which
 * what it starts inherits. Only Linux lets that be read; elsewhere nothing is found. What clears
 * its environment as well as leaving the group is not found either.
 *
 * @module
 */

/** Only an id that nothing else can have says whose a process is. */
const UNIQUE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Strays that are to end are looked at so soon, then ever less often. */
const POLL_FIRST_MS = 10;
const POLL_MAX_MS = 200;
/** A process that was killed may take so long to go. */
const KILLED_MS = 2_000;

/** Ids of the living processes that have this launch in their environment, sorted. */
export async function straysOf(launchId: string | null): Promise<number[]> {
  if (Deno.build.os !== "linux" || launchId === null || !UNIQUE.test(launchId)) return [];
  const entry = `ENGINE_LAUNCH_ID=${launchId}`;
  const found = await Promise.all(
    pidsHere().filter((pid) => Number.isInteger(pid) && pid !== Deno.pid).map(async (pid) => {
      // Other users' are not to be read, and of those that are dead it is empty.
      const text = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
      return text.split("\0").includes(entry) ? [pid] : [];
    }),
  );
  return found.flat().sort((one, other) => one - other);
}

/** Asks the strays of a launch to leave; after `graceMs`, ends them. Returns when none is left. */
export async function endStrays(launchId: string | null, graceMs: number): Promise<void> {
  const asked = new Set<number>();
  const began = performance.now();
  for (let wait = POLL_FIRST_MS;; wait = Math.min(wait * 1.5, POLL_MAX_MS)) {
    const strays = await straysOf(launchId);
    const passed = performance.now() - began;
    if (strays.length === 0 || passed > graceMs + KILLED_MS) return;
    for (const pid of strays) {
      if (passed > graceMs) send(pid, "SIGKILL");
      else if (!asked.has(pid)) send(pid, "SIGTERM");
      asked.add(pid);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function pidsHere(): number[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name));
  } catch {
    return []; // Too many files are open: then no environment can be read either.
  }
}

function send(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // It has gone meanwhile, or is not ours to end.
  }
}
