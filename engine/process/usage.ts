/**
 * What programs use now: memory, and the share of a processor.
 *
 * A program is the whole family of a process. A share needs two looks: the one before serves when
 * it is recent, else two looks are taken a moment apart. Nothing is looked at unless asked for.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** What one program uses. */
export interface Usage {
  /** Whether its first process lives; `true` where nobody can tell. */
  readonly isAlive: boolean;
  /** A process of it that a signal holds; left out when there is none or nobody can tell. */
  readonly halted?: number;
  /** Resident memory; `null` when unknown. */
  readonly memoryBytes: number | null;
  /** Percent of one processor, with one decimal; `null` when unknown. */
  readonly cpuPercent: number | null;
}

/** Looks at programs. */
export interface Usages {
  /** What each of these programs, known by the process ids of their first process, uses now. */
  of(pids: readonly number[]): Promise<ReadonlyMap<number, Usage>>;
}

/** A look from before serves when it is at least so old. */
const LOOK_MS_MIN = 500;
/** A look from before says nothing of lately when it is older. */
const LOOK_MS_MAX = 30_000;
/** Between two looks when there is no look from before. */
const LOOK_GAP_MS = 200;

/** Processor time of a program when somebody looked. */
interface Look {
  readonly atMs: number;
  /** By process id, in milliseconds. */
  readonly cpuMs: ReadonlyMap<number, number>;
  /** What was told then; `undefined`: this is the first look. */
  readonly percent: number | undefined;
}

/** {@linkcode Usages} of this machine. */
export class ProcessUsages implements Usages {
  readonly #clock: Clock;
  readonly #read: () => Promise<ProcessTable | undefined>;
  readonly #looks = new Map<number, Look>();

  /** `read` gives the processes there are, `undefined` where nobody can tell. */
  constructor(
    clock: Clock,
    read: () => Promise<ProcessTable | undefined> = readProcessTable,
  ) {
    this.#clock = clock;
    this.#read = read;
  }

  async of(pids: readonly number[]): Promise<ReadonlyMap<number, Usage>> {
    if (pids.length === 0) return new Map();
    let table = await this.#look(pids);
    if (table && pids.some((pid) => this.#looks.has(pid) && !this.#isTold(pid))) {
      await new Promise<void>((resolve) => this.#clock.after(LOOK_GAP_MS, resolve));
      table = await this.#look(pids);
    }
    const usages = pids.map(async (pid) => [pid, await this.#usage(pid, table)] as const);
    return new Map(await Promise.all(usages));
  }

  /** Looks at each program; forgets those that are gone. */
  async #look(pids: readonly number[]): Promise<ProcessTable | undefined> {
    const table = await this.#read();
    if (!table) return undefined;
    const living = new Set(table.rows.filter(({ isAlive }) => isAlive).map(({ pid }) => pid));
    for (const pid of this.#looks.keys()) if (!living.has(pid)) this.#looks.delete(pid);
    for (const pid of pids) if (living.has(pid)) this.#note(pid, table);
    return table;
  }

  #note(pid: number, { rows }: ProcessTable): void {
    const atMs = this.#clock.now();
    const before = this.#looks.get(pid);
    const age = before ? atMs - before.atMs : Infinity;
    if (before?.percent !== undefined && age < LOOK_MS_MIN) return;
    const cpuMs = new Map(familyOf(rows, pid).map((row) => [row.pid, row.cpuMs]));
    if (!before || age > LOOK_MS_MAX) {
      this.#looks.set(pid, { atMs, cpuMs, percent: undefined });
    } else if (age >= LOOK_GAP_MS) {
      // A process that is new since then has used all of its time since then.
      const used = [...cpuMs].map(([id, ms]) => Math.max(0, ms - (before.cpuMs.get(id) ?? 0)));
      const percent = used.reduce((sum, ms) => sum + ms, 0) / age * 100;
      this.#looks.set(pid, { atMs, cpuMs, percent: Math.round(percent * 10) / 10 });
    }
  }

  #isTold(pid: number): boolean {
    return this.#looks.get(pid)?.percent !== undefined;
  }

  async #usage(pid: number, table: ProcessTable | undefined): Promise<Usage> {
    if (!table) return { isAlive: true, memoryBytes: null, cpuPercent: null };
    const rows = familyOf(table.rows, pid);
    const family = rows.map((row) => row.pid);
    if (!family.includes(pid)) return { isAlive: false, memoryBytes: null, cpuPercent: null };
    const halted = rows.find(({ isHalted }) => isHalted)?.pid;
    return {
      isAlive: true,
      ...halted !== undefined && { halted },
      memoryBytes: await table.memoryOf(family) || null, // None: it has just ended.
      cpuPercent: this.#looks.get(pid)?.percent ?? null,
    };
  }
}

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
