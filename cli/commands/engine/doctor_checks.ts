/**
 * The checks that `engine doctor` makes itself: the connection to the engine, clocks, ports, the
 * control key, microVMs, versions. The engine makes the others.
 *
 * Only Linux tells which program listens on a port, and a user other than root learns it only of
 * own programs. Nothing is sent to a port but a request for the console's page.
 *
 * @module
 */
import type { EngineInfo, VmStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import { renderDuration } from "../../render.ts";
import type { Terminal } from "../../terminal.ts";

/** The outcome of a check, in the shape of those from `engine::health::measure`. */
export interface DoctorCheck {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  /** The value that decided; `null`: none. */
  readonly measured: number | null;
  /** One sentence. */
  readonly message: string;
  /** What to do; `null` when there is nothing to do. */
  readonly remedy: string | null;
}

/** Calls that measure the round trip to the engine. */
const ROUND_TRIPS = 20;
const SLOW_TRIP_MS = 50;
const STUCK_TRIP_MS = 1_000;
const SKEW_WARN_MS = 1_000;
const SKEW_FAIL_MS = 60_000;

/** The default ports of an engine. */
export const KNOWN_PORTS = [
  { port: 49134, name: "workers", setting: "engine.port" },
  { port: 3111, name: "http", setting: "port of engine-http" },
  { port: 3113, name: "console", setting: "port of engine-console" },
] as const;

/** Fewer descriptors than this limit the connections of an ordinary engine. */
const DESCRIPTORS_FEW = 4_096;

/** Whether the engine may open enough sockets and files; `undefined`: it does not tell. */
export function checkDescriptors({ descriptors }: Partial<EngineInfo>): DoctorCheck | undefined {
  if (!descriptors) return undefined;
  const { limit, open } = descriptors;
  const isFull = open !== null && open > limit * 0.8;
  return {
    name: "descriptors",
    status: isFull || limit < DESCRIPTORS_FEW ? "warn" : "ok",
    measured: open,
    message: `The engine has ${open ?? "an unknown number"} of ${limit} file descriptors open`,
    remedy: isFull || limit < DESCRIPTORS_FEW
      ? "Each connection takes one: raise the limit of open files (ulimit -n, LimitNOFILE) and " +
        "restart the engine"
      : null,
  };
}

/** The round trip to the engine, and how far its clock is off. */
export async function checkConnection(
  engine: Pick<EngineConnection, "call">,
  terminal: Pick<Terminal, "now" | "wall">,
): Promise<DoctorCheck[]> {
  const trips: number[] = [];
  let best = Infinity;
  let skew: number | null = null;
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [began, sentAt] = [terminal.now(), terminal.wall()];
    const answer = await engine.call("engine::health::check", {});
    const trip = terminal.now() - began;
    trips.push(trip);
    const { timestamp } = (answer ?? {}) as { timestamp?: number };
    // The clock is read most exactly by the quickest answer.
    if (trip >= best || typeof timestamp !== "number") continue;
    best = trip;
    skew = Math.round(timestamp - (sentAt + trip / 2));
  }
  return [tripCheck(trips), skewCheck(skew)];
}

function tripCheck(trips: readonly number[]): DoctorCheck {
  const sorted = trips.toSorted((a, b) => a - b);
  const median = tenths(sorted[sorted.length >> 1]!);
  const longest = tenths(sorted.at(-1)!);
  const status = median >= STUCK_TRIP_MS ? "fail" : median >= SLOW_TRIP_MS ? "warn" : "ok";
  return {
    name: "round trip",
    status,
    measured: median,
    message: `A call takes ${median} ms, the longest of ${trips.length} took ${longest} ms`,
    remedy: status === "ok" ? null : "Check the load of this machine and the network to the engine",
  };
}

function skewCheck(skew: number | null): DoctorCheck {
  const name = "clock";
  if (skew === null) {
    const message = "The engine did not report its time";
    return { name, status: "warn", measured: null, message, remedy: "Update the engine" };
  }
  const off = Math.abs(skew);
  const status = off >= SKEW_FAIL_MS ? "fail" : off >= SKEW_WARN_MS ? "warn" : "ok";
  return {
    name,
    status,
    measured: off,
    message: `The engine's clock differs from this one by ${renderDuration(off)}`,
    remedy: status === "ok" ? null : "Set the clocks of both machines, best by NTP",
  };
}

/** Whether engine and command line have the same version. */
export function checkVersion(engine: string, own: string): DoctorCheck {
  const isSame = engine === own;
  return {
    name: "version",
    status: isSame ? "ok" : "warn",
    measured: null,
    message: isSame
      ? `Engine and command line are ${own}`
      : `The engine is ${engine}, this command line is ${own}`,
    remedy: isSame
      ? null
      : "Restart the engine after an update, or use the command line of its version",
  };
}

/** Whether this command line may manage workers. */
export function checkControlKey(
  { control_key }: Pick<EngineInfo, "control_key">,
  hasKey: boolean,
): DoctorCheck {
  const name = "control key";
  if (hasKey && control_key.problem === null) {
    const message = "This command line may manage workers";
    return { name, status: "ok", measured: null, message, remedy: null };
  }
  const message = control_key.problem ??
    `There is no key for this user; the engine's is ${control_key.path}`;
  const remedy = control_key.problem === null
    ? "Manage workers as the user that runs the engine, on its machine"
    : "Make that folder writable for the engine's user, then restart the engine";
  return { name, status: "warn", measured: null, message, remedy };
}

/** Whether workers in microVMs can run here. */
export function checkVm(status: VmStatus): DoctorCheck {
  const name = "microVMs";
  if (!status.ready) {
    return {
      name,
      status: "warn",
      measured: null,
      message: `Workers in microVMs cannot run here: ${status.missing.join("; ")}`,
      remedy: "Run engine vm setup, or run workers with --isolation process",
    };
  }
  if (status.accelerator === "kvm") {
    const message = "Workers in microVMs run with KVM";
    return { name, status: "ok", measured: null, message, remedy: null };
  }
  return {
    name,
    status: "warn",
    measured: null,
    message: `Workers in microVMs run slowly, without KVM: ${status.accelerator_reason}`,
    remedy: "Run workers with --isolation process, or on a machine whose KVM runs guests; " +
      "engine vm status says more",
  };
}

/** Whether a default port is free, or served by the running engine with these endpoints. */
export function checkPort(
  { port, name, setting }: typeof KNOWN_PORTS[number],
  holder: PortHolder,
  endpoints: readonly { readonly name: string; readonly url: string }[] | undefined,
): DoctorCheck {
  const check = { name: `port ${port}`, measured: null };
  const own = endpoints?.find(({ url }) => portOf(url) === port);
  if (own) {
    return { ...check, status: "ok", message: `The engine serves ${own.name}`, remedy: null };
  }
  if (!holder.isTaken) {
    return { ...check, status: "ok", message: `It is free for ${name}`, remedy: null };
  }
  if (holder.isConsole) {
    return { ...check, status: "ok", message: "An engine console serves it", remedy: null };
  }
  const who = holder.pid === null
    ? "another program"
    : `${holder.program ?? "a program"} (pid ${holder.pid})`;
  return {
    ...check,
    // A running engine uses other ports.
    status: endpoints ? "warn" : "fail",
    message: `It is taken by ${who}, so no engine can serve ${name} there`,
    remedy: `Stop that program, or set ${setting} to another port`,
  };
}

/** The check of an engine that cannot be reached. */
export function unreachable(thrown: unknown): DoctorCheck {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const [what, ...remedy] = message.split("; ");
  return {
    name: "engine",
    status: "fail",
    measured: null,
    message: what!,
    remedy: remedy.join("; ") || "Start it with: engine --config config.yaml",
  };
}

/** A check that failed to measure. */
export function unknown(name: string, thrown: unknown): DoctorCheck {
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  const message = `It could not be checked: ${reason}`;
  return { name, status: "warn", measured: null, message, remedy: "See the message" };
}

function portOf(url: string): number | undefined {
  if (!URL.canParse(url)) return undefined;
  const { port, protocol } = new URL(url);
  return Number(port) || (protocol === "https:" || protocol === "wss:" ? 443 : 80);
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/** The program that listens on a port. */
export interface PortHolder {
  readonly isTaken: boolean;
  /** Name of the program, such as `nginx`; `null`: none, or not known. */
  readonly program: string | null;
  /** Process id; `null` like `program`. */
  readonly pid: number | null;
  /** Whether it serves the engine's console. */
  readonly isConsole: boolean;
}

/** How long a port and its page may take to answer. */
const ANSWER_MS_MAX = 1_000;
/** State of a listening socket in /proc/net/tcp. */
const LISTEN_STATE = "0A";
const FREE: PortHolder = { isTaken: false, program: null, pid: null, isConsole: false };

/** Finds the program that listens on a port of the loopback address. */
export async function findPortHolder(port: number): Promise<PortHolder> {
  if (!await isListening(port)) return FREE;
  const pid = await findPid(port).catch(() => null);
  const program = pid === null
    ? null
    : await Deno.readTextFile(`/proc/${pid}/comm`).then((name) => name.trim(), () => null);
  return { isTaken: true, program, pid, isConsole: await servesConsole(port) };
}

async function isListening(port: number): Promise<boolean> {
  const connecting = Deno.connect({ hostname: "127.0.0.1", port });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), ANSWER_MS_MAX);
  });
  try {
    const connection = await Promise.race([connecting, late]);
    // A program that is too busy to answer holds the port all the same.
    if (connection !== "late") connection.close();
    else void connecting.then((later) => later.close(), () => {});
    return true;
  } catch {
    return false; // Refused.
  } finally {
    clearTimeout(timer);
  }
}

async function servesConsole(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_MS_MAX);
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { signal });
    return (await answer.text()).includes("engine-console");
  } catch {
    return false; // No HTTP, or too slow, so it is not the console.
  }
}

/** The process that holds the socket; `null` when the system does not tell. */
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

/** Inodes of the sockets that listen on a port, from the text of /proc/net/tcp. */
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
