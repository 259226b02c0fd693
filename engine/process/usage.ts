/**
 * What running programs use: memory, and a share of a processor.
 *
 * A program is a process with its group and everything they started. Its share follows from two
 * samples of processor time: an earlier sample serves if it is recent, else two are taken a moment
 * apart. Nothing is sampled in the background. Linux reports processes in `/proc`, macOS through
 * `ps`; elsewhere nothing is known.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import { statFields } from "./process_group.ts";

/** What one program uses. */
export interface Usage {
  /** Whether its first process lives; `true` where that is not known. */
  readonly isAlive: boolean;
  /** A process of it that a signal has stopped; left out when there is none or it is not known. */
  readonly halted?: number;
  /** Resident memory; `null` when unknown. */
  readonly memoryBytes: number | null;
  /** Percent of one processor, with one decimal; `null` when unknown. */
  readonly cpuPercent: number | null;
}

/** Measures programs. */
export interface UsageMeter {
  /** What each of these programs uses now, by the id of its first process. */
  measure(pids: readonly number[]): Promise<ReadonlyMap<number, Usage>>;
}

/** An earlier sample serves when it is at least so old. */
const SAMPLE_MS_MIN = 500;
/** An older sample says nothing about the present. */
const SAMPLE_MS_MAX = 30_000;
/** Time between two samples when there is no earlier one. */
const SAMPLE_GAP_MS = 200;

/** Processor time of a program at one moment. */
interface Sample {
  readonly atMs: number;
  /** By process id, in milliseconds. */
  readonly cpuMs: ReadonlyMap<number, number>;
  /** The share up to this sample; `undefined`: it is the first. */
  readonly percent: number | undefined;
}

/** {@linkcode UsageMeter} for processes of this machine. */
export class ProcessUsageMeter implements UsageMeter {
  readonly #clock: Clock;
  readonly #read: () => Promise<ProcessTable | undefined>;
  readonly #samples = new Map<number, Sample>();

  /** `read` gives all processes, `undefined` where they are not known. */
  constructor(
    clock: Clock,
    read: () => Promise<ProcessTable | undefined> = readProcessTable,
  ) {
    this.#clock = clock;
    this.#read = read;
  }

  async measure(pids: readonly number[]): Promise<ReadonlyMap<number, Usage>> {
    if (pids.length === 0) return new Map();
    let table = await this.#sample(pids);
    if (table && pids.some((pid) => this.#isFirstSample(pid))) {
      await new Promise<void>((resolve) => this.#clock.after(SAMPLE_GAP_MS, resolve));
      table = await this.#sample(pids);
    }
    const usages = pids.map(async (pid) => [pid, await this.#usage(pid, table)] as const);
    return new Map(await Promise.all(usages));
  }

  /** Samples each program and deletes samples of programs that are gone. */
  async #sample(pids: readonly number[]): Promise<ProcessTable | undefined> {
    const table = await this.#read();
    if (!table) return undefined;
    const living = new Set(table.rows.filter(({ isAlive }) => isAlive).map(({ pid }) => pid));
    for (const pid of this.#samples.keys()) if (!living.has(pid)) this.#samples.delete(pid);
    for (const pid of pids) if (living.has(pid)) this.#record(pid, table);
    return table;
  }

  #record(pid: number, { rows }: ProcessTable): void {
    const atMs = this.#clock.now();
    const before = this.#samples.get(pid);
    const age = before ? atMs - before.atMs : Infinity;
    if (before?.percent !== undefined && age < SAMPLE_MS_MIN) return;
    const cpuMs = new Map(processFamily(rows, pid).map((row) => [row.pid, row.cpuMs]));
    if (!before || age > SAMPLE_MS_MAX) {
      this.#samples.set(pid, { atMs, cpuMs, percent: undefined });
    } else if (age >= SAMPLE_GAP_MS) {
      // A process that is new since the earlier sample has used all of its time since then.
      const used = [...cpuMs].map(([id, ms]) => Math.max(0, ms - (before.cpuMs.get(id) ?? 0)));
      const percent = used.reduce((sum, ms) => sum + ms, 0) / age * 100;
      this.#samples.set(pid, { atMs, cpuMs, percent: Math.round(percent * 10) / 10 });
    }
  }

  #isFirstSample(pid: number): boolean {
    const sample = this.#samples.get(pid);
    return sample !== undefined && sample.percent === undefined;
  }

  async #usage(pid: number, table: ProcessTable | undefined): Promise<Usage> {
    if (!table) return { isAlive: true, memoryBytes: null, cpuPercent: null };
    const rows = processFamily(table.rows, pid);
    const family = rows.map((row) => row.pid);
    if (!family.includes(pid)) return { isAlive: false, memoryBytes: null, cpuPercent: null };
    const halted = rows.find(({ isHalted }) => isHalted)?.pid;
    return {
      isAlive: true,
      ...halted !== undefined && { halted },
      memoryBytes: await table.memoryOf(family) || null, // 0: it has just ended.
      cpuPercent: this.#samples.get(pid)?.percent ?? null,
    };
  }
}

/** One process. */
export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Id of its process group. */
  readonly group: number;
  /** `false` for a zombie. */
  readonly isAlive: boolean;
  /** A signal has stopped it until SIGCONT; a debugger's stop does not count. */
  readonly isHalted?: true;
  /** Processor time it has used since it started, in milliseconds. */
  readonly cpuMs: number;
}

/** All processes at one moment. */
export interface ProcessTable {
  readonly rows: readonly ProcessRow[];
  /** Resident memory of these processes, in bytes; 0 for processes that are gone. */
  memoryOf(pids: readonly number[]): Promise<number>;
}

/** Reads all processes; `undefined` where the system does not report them. */
export async function readProcessTable(): Promise<ProcessTable | undefined> {
  const table = Deno.build.os === "linux"
    ? await readProc()
    : Deno.build.os === "darwin"
    ? await readPs()
    : undefined;
  // A table that lacks the engine itself cannot be trusted.
  return table?.rows.some(({ pid }) => pid === Deno.pid) ? table : undefined;
}

/** The living ones among a process, its group and everything that they started. */
export function processFamily(rows: readonly ProcessRow[], leader: number): ProcessRow[] {
  const children = Map.groupBy(rows, ({ parent }) => parent);
  const family = new Set(rows.filter(({ pid, group }) => pid === leader || group === leader));
  for (const row of family) for (const child of children.get(row.pid) ?? []) family.add(child);
  return [...family].filter(({ isAlive }) => isAlive);
}

/** `/proc` reports times in hundredths of a second, independent of the kernel's clock. */
const TICK_MS = 10;

async function readProc(): Promise<ProcessTable> {
  const names = [...Deno.readDirSync("/proc")].map(({ name }) => name);
  const texts = await Promise.all(
    names.filter((name) => /^\d+$/.test(name))
      .map((name) => Deno.readTextFile(`/proc/${name}/stat`).catch(() => "")), // It has ended.
  );
  return { rows: texts.filter((text) => text !== "").map(parseStat), memoryOf: procMemory };
}

/** The row in `/proc/<pid>/stat`. */
export function parseStat(text: string): ProcessRow {
  const fields = statFields(text);
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
    .catch(() => ({ stdout: new Uint8Array() })); // There is no ps.
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
