/**
 * Who listens on a port of this machine.
 *
 * That somebody listens is found by dialling; who it is only Linux tells, and only of programs of
 * the same user unless one is root. Nothing is sent but a request for the console's page.
 *
 * @module
 */

/** What was found at a port. */
export interface PortHolder {
  readonly isTaken: boolean;
  /** Name of the program, such as `nginx`; `null`: nobody, or nobody can tell. */
  readonly program: string | null;
  /** Process id; `null` like `program`. */
  readonly pid: number | null;
  /** It serves the engine's console. */
  readonly isConsole: boolean;
}

/** How long a dialled port and its page may take, in milliseconds. */
const PATIENCE_MS = 1_000;
const LISTEN_STATE = "0A";
const FREE: PortHolder = { isTaken: false, program: null, pid: null, isConsole: false };

/** Looks at a port of the loopback address. */
export async function findPortHolder(port: number): Promise<PortHolder> {
  if (!await isListening(port)) return FREE;
  const pid = await findPid(port).catch(() => null);
  const program = pid === null
    ? null
    : await Deno.readTextFile(`/proc/${pid}/comm`).then((name) => name.trim(), () => null);
  return { isTaken: true, program, pid, isConsole: await servesConsole(port) };
}

async function isListening(port: number): Promise<boolean> {
  const dialled = Deno.connect({ hostname: "127.0.0.1", port });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), PATIENCE_MS);
  });
  try {
    const line = await Promise.race([dialled, late]);
    // A program that is too busy to answer has the port all the same.
    if (line !== "late") line.close();
    else void dialled.then((later) => later.close(), () => {});
    return true;
  } catch {
    return false; // Refused.
  } finally {
    clearTimeout(timer);
  }
}

async function servesConsole(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { signal });
    return (await answer.text()).includes("engine-console");
  } catch {
    return false; // No HTTP, or too slow: not the console.
  }
}

/** The process that holds the socket; `null` where nobody tells. */
async function findPid(port: number): Promise<number | null> {
  const inodes = new Set([
    ...await listeningInodes("/proc/net/tcp", port),
    ...await listeningInodes("/proc/net/tcp6", port),
  ]);
  if (inodes.size === 0) return null;
  for await (const { name } of Deno.readDir("/proc")) {
    if (/^\d+$/.test(name) && await holdsSocket(name, inodes)) return Number(name);
  }
  return null;
}

/** Numbers of the sockets that listen on a port. */
export function parseListeners(table: string, port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    return local?.endsWith(`:${hex}`) && state === LISTEN_STATE && inode ? [inode] : [];
  });
}

async function listeningInodes(path: string, port: number): Promise<string[]> {
  return parseListeners(await Deno.readTextFile(path).catch(() => ""), port);
}

async function holdsSocket(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  try {
    for await (const { name } of Deno.readDir(`/proc/${pid}/fd`)) {
      const target = await Deno.readLink(`/proc/${pid}/fd/${name}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined && inodes.has(inode)) return true;
    }
  } catch {
    // Another user's process, or one that has just ended.
  }
  return false;
}
