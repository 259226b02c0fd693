/**
 * Starts programs that are workers: a plain process, or a microVM.
 *
 * @module
 */

/** Time between SIGTERM and SIGKILL for programs whose engine has died. */
export const ORPHAN_GRACE_MS = 10_000;
/** Minimum memory of a microVM, in MiB. */
export const GUEST_MEMORY_MB_MIN = 128;

/** How a worker is isolated from the rest of the machine. */
export type Isolation = "microvm" | "process";

/** Where a contained program may connect to: the world and the engine, or the engine only. */
export type Network = "full" | "engine";

/** What runs a microVM: hardware (`kvm`) or software emulation (`tcg`). */
export type Accelerator = "kvm" | "tcg";

/** Resources of a microVM. */
export interface Resources {
  /** Virtual processors, at least 1. */
  readonly cpus: number;
  /** Memory in MiB; a worker that exceeds it is ended. */
  readonly memory_mb: number;
}

/** What a contained program may use besides its directory and the system's programs. */
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
  /** A shell command line. */
  readonly command: string;
  /** Its working directory. */
  readonly directory: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Default: nothing, with the least resources. */
  readonly containment?: Containment;
  /**
   * Another program of this worker will follow, so expensive parts (a booted machine) may be kept
   * for a few seconds after this one has ended.
   */
  readonly keep?: boolean;
}

/** Output of a program. */
export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A line of output. */
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
  /** Details such as `out of memory (128 MiB)` or `kernel panic: …`. */
  readonly reason?: string;
}

/** How to stop. */
export interface StopProgram {
  /** The same worker will start again at once: see {@linkcode LaunchSpec.keep}. */
  readonly keep?: boolean;
}

/** The terminal of the person who runs a command. */
export interface TerminalShape {
  readonly columns: number;
  readonly rows: number;
  /** What TERM says, such as `xterm-256color`. */
  readonly term: string;
}

/** How a command runs beside a program. */
export interface ExecOptions {
  /** Its standard input; cancelled when the command has ended. Default: nothing to read. */
  readonly input?: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Runs it in a pseudo-terminal: all output is `stdout`, and Ctrl-C is a byte of the input. */
  readonly tty?: TerminalShape;
}

/** A running program. */
export interface Running {
  /** Process id, of the leader of its process group. */
  readonly pid: number;
  /** Resolves when the program and its descendants have ended. Never rejects. */
  readonly ended: Promise<Ended>;
  /** Accelerator of its microVM; `null` for a plain process. */
  readonly accelerator: Accelerator | null;
  /** Asks it to exit; ends it and its descendants after `graceMs`. Resolves like `ended`. */
  stop(graceMs: number, how?: StopProgram): Promise<Ended>;
  /**
   * Runs another program in the same directory, environment and containment. Resolves when that
   * has ended; it is ended by the signal, and with this program.
   *
   * @throws {EngineError} `launch_failed` when it cannot be started, with what to do.
   */
  exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    options?: ExecOptions,
  ): Promise<Ended>;
}

/** Starts programs. If the engine dies, its programs end within 30 s. */
export interface Launcher {
  readonly isolation: Isolation;
  /**
   * Starts a program. `output` receives its output line by line until it has ended; `phase`
   * receives slow steps before it runs, such as `booting a microVM`. The signal aborts these steps;
   * once the program runs, the caller has to stop it.
   *
   * @throws {EngineError} `launch_failed`, `isolation_unavailable` when it cannot, with what to do;
   * `cancelled` when it was aborted.
   */
  start(
    spec: LaunchSpec,
    output: (line: OutputLine) => void,
    phase?: (what: string) => void,
    signal?: AbortSignal,
  ): Promise<Running>;
  /**
   * Checks whether a program could be started, before anything is written or started.
   *
   * @throws {EngineError} `isolation_unavailable` with what to do.
   */
  check?(name: string, accel: Accelerator | "auto"): Promise<void>;
  /** Releases what it keeps between programs. */
  close?(): Promise<void>;
}
