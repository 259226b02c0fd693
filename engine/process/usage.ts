/**
 * What programs use now: memory, and the share of a processor.
 *
 * A program is the whole family of a process. A share needs two looks: the one before serves when
 * it is recent, else two looks are taken a moment apart. Nothing is looked at unless asked for.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import { familyOf, type ProcessTable, readProcessTable } from "./process_table.ts";

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
