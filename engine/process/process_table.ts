/**
 * Which processes there are on this machine, and what each of them uses.
 *
 * Linux says so in `/proc`, macOS through `ps`; of other systems nothing is known.
 *
 * @module
 */

/** One process. */
export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Id of its process group. */
  readonly group: number;
  /** `false` of the dead whom nobody has buried. */
  readonly isAlive: boolean;
  /** A signal holds it until another lets it go on. A debugger's hold does not count. */
  readonly isHalted?: true;
  /** Processor time it has used since it started, in milliseconds. */
  readonly cpuMs: number;
}

/** All processes at one moment. */
export interface ProcessTable {
  readonly rows: readonly ProcessRow[];
  /** Resident memory of these processes, in bytes; of those that are gone: nothing. */
  memoryOf(pids: readonly number[]): Promise<number>;
}

/** Reads the table; `undefined` where the system does not tell. */
export async function readProcessTable(): Promise<ProcessTable | undefined> {
  const table = Deno.build.os === "linux"
    ? await readProc()
    : Deno.build.os === "darwin"
    ? await readPs()
    : undefined;
  // A table without the one who reads it is not to be trusted.
  return table?.rows.some(({ pid }) => pid === Deno.pid) ? table : undefined;
}

/** The process, its group and all that they started, as far as they live. */
export function familyOf(rows: readonly ProcessRow[], leader: number): ProcessRow[] {
  const children = Map.groupBy(rows, ({ parent }) => parent);
  const family = new Set(rows.filter(({ pid, group }) => pid === leader || group === leader));
  for (const row of family) for (const child of children.get(row.pid) ?? []) family.add(child);
  return [...family].filter(({ isAlive }) => isAlive);
}

/** In Linux's `/proc`, times are told in hundredths of a second whatever the kernel counts in. */
const TICK_MS = 10;

async function readProc(): Promise<ProcessTable> {
  const names = [...Deno.readDirSync("/proc")].map(({ name }) => name);
  const texts = await Promise.all(
    names.filter((name) => /^\d+$/.test(name))
      .map((name) => Deno.readTextFile(`/proc/${name}/stat`).catch(() => "")), // Gone meanwhile.
  );
  return { rows: texts.filter((text) => text !== "").map(parseStat), memoryOf: procMemory };
}

/** One line of `/proc/<pid>/stat`. The name may hold anything, so the fields are read behind it. */
export function parseStat(text: string): ProcessRow {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return {
    pid: parseInt(text),
    parent: Number(fields[1]),
    group: Number(fields[2]),
    isAlive: fields[0] !== "Z" && fields[0] !== "X",
    ...fields[0] === "T" && { isHalted: true },
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
  };
}

async function procMemory(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(pids.map(async (pid) => {
    const text = await Deno.readTextFile(`/proc/${pid}/status`).catch(() => "");
    return Number(/^VmRSS:\s*(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  }));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function readPs(): Promise<ProcessTable | undefined> {
  const args = ["-A", "-o", "pid=,ppid=,pgid=,stat=,rss=,time="];
  const { stdout } = await new Deno.Command("ps", { args }).output()
    .catch(() => ({ stdout: new Uint8Array() })); // No ps: nothing is known.
  return parsePs(new TextDecoder().decode(stdout));
}

/** What `ps -A -o pid=,ppid=,pgid=,stat=,rss=,time=` prints. */
export function parsePs(text: string): ProcessTable {
  const memory = new Map<number, number>();
  const rows = text.split("\n").filter((line) => line.trim() !== "").map((line) => {
    const [pid, parent, group, state, kib, time] = line.trim().split(/\s+/);
    memory.set(Number(pid), Number(kib) * 1024);
    return {
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      isAlive: !state!.startsWith("Z"),
      ...state!.startsWith("T") && { isHalted: true as const },
      cpuMs: psTimeMs(time!),
    };
  });
  const memoryOf = (pids: readonly number[]): Promise<number> =>
    Promise.resolve(pids.reduce((sum, pid) => sum + (memory.get(pid) ?? 0), 0));
  return { rows, memoryOf };
}

/** `[[days-]hours:]minutes:seconds`, seconds with hundredths on some systems. */
function psTimeMs(text: string): number {
  const [clock, days = "0"] = text.split("-").reverse();
  const seconds = clock!.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  return Math.round((Number(days) * 86_400 + seconds) * 1_000);
}
