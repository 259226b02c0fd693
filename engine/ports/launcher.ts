/**
 * Starts programs that are workers: a plain process, or a microVM.
 *
 * @module
 */

/** How a worker is kept apart from the rest of the machine. */
export type Isolation = "microvm" | "process";

/** Where a contained program may connect to: the world and the engine, or the engine only. */
export type Network = "full" | "engine";

/** What runs a microVM: hardware (`kvm`) or software emulation (`tcg`). */
export type Accelerator = "kvm" | "tcg";

/** What a worker's machine consists of. */
export interface Resources {
  /** Virtual processors, at least 1. */
  readonly cpus: number;
  /** Memory in MiB; more ends the worker. */
  readonly memory_mb: number;
}

/** What a contained program gets besides its directory and the system's programs. */
export interface Containment {
  /** Absolute paths of folders that it may read, found at the same place. */
  readonly reads: readonly string[];
  /** Absolute paths of folders that it may read and change, found at the same place. */
  readonly writes: readonly string[];
  readonly network: Network;
  readonly resources: Resources;
  /** `auto`: KVM, and software emulation where KVM opens but runs no guest. */
  readonly accel: Accelerator | "auto";
}

/** A program to start. */
export interface LaunchSpec {
  /** The worker's name; names files and log lines. */
  readonly name: string;
  /** The command as a shell understands it. */
  readonly command: string;
  /** Where it runs. */
  readonly directory: string;
  /** Added to the engine's own environment; all there is for a contained program. */
  readonly env: Readonly<Record<string, string>>;
  /** What it gets of the machine; left out: nothing, with the least resources. */
  readonly containment?: Containment;
  /**
   * Another program of this worker follows, so what is costly to make (a booted machine) may be
   * kept for a few seconds after this one ended.
   */
  readonly keep?: boolean;
}

/** Some bytes that a program printed. */
export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** One line that a program printed. */
export interface OutputLine {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** How a program ended. */
export interface Ended {
  /** Exit code; `null` when a signal ended it. */
  readonly code: number | null;
  /** Such as `SIGKILL`; `null` when it exited by itself. */
  readonly signal: string | null;
  /** What there is to say besides, such as `out of memory (128 MiB)` or `kernel panic: …`. */
  readonly reason?: string;
}

/** How to stop. */
export interface StopProgram {
  /** The same worker starts again at once: see {@linkcode LaunchSpec.keep}. */
  readonly keep?: boolean;
}

/** A program that runs. */
export interface Running {
  /** Process id of the program (of its process group's leader). */
  readonly pid: number;
  /** Settles when the program and all that it started are gone. Never rejects. */
  readonly ended: Promise<Ended>;
  /** What runs its microVM; `null` for a plain process. */
  readonly accelerator: Accelerator | null;
  /** Asks it to leave; after `graceMs` ends it and all that it started. Resolves like `ended`. */
  stop(graceMs: number, how?: StopProgram): Promise<Ended>;
  /**
   * Runs another program beside it: same directory, same environment, same containment, nothing to
   * read. Resolves when that has ended; the signal ends it, as does the end of this program.
   *
   * @throws {EngineError} `launch_failed` when it cannot be started, with what to do.
   */
  exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended>;
}

/** Starts programs. If the engine dies, what it started ends within 30 s. */
export interface Launcher {
  readonly isolation: Isolation;
  /**
   * Starts a program; `output` gets what it prints, line by line, until it has ended, and `phase`
   * what takes its time before it runs, such as `booting a microVM`. The signal gives up what takes
   * its time; a program that runs by then is its caller's to stop.
   *
   * @throws {EngineError} `launch_failed`, `isolation_unavailable` when it cannot, with what to do;
   * `cancelled` when the signal came first.
   */
  start(
    spec: LaunchSpec,
    output: (line: OutputLine) => void,
    phase?: (what: string) => void,
    signal?: AbortSignal,
  ): Promise<Running>;
  /**
   * Says, before anything is written down or started, whether a program could be started; nothing
   * happens when it could.
   *
   * @throws {EngineError} `isolation_unavailable` with what to do.
   */
  check?(name: string, accel: Accelerator | "auto"): Promise<void>;
  /** Gives back what it keeps between programs. */
  close?(): Promise<void>;
}
