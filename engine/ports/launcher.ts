/**
 * Starts programs that are workers: a plain process, or a microVM.
 *
 * @module
 */

/** How a worker is kept apart from the rest of the machine. */
export type Isolation = "microvm" | "process";

/** A program to start. */
export interface LaunchSpec {
  /** The worker's name; names files and log lines. */
  readonly name: string;
  /** The command as a shell understands it. */
  readonly command: string;
  /** Where it runs. */
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
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
}

/** A program that runs. */
export interface Running {
  /** Process id of the program (of its process group's leader). */
  readonly pid: number;
  /** Settles when the program and all that it started are gone. Never rejects. */
  readonly ended: Promise<Ended>;
  /** Asks it to leave; after `graceMs` ends it and all that it started. Resolves like `ended`. */
  stop(graceMs: number): Promise<Ended>;
}

/** Starts programs. If the engine dies, what it started ends within 30 s. */
export interface Launcher {
  readonly isolation: Isolation;
  /**
   * Starts a program; `output` gets what it prints, line by line, until it has ended.
   *
   * @throws {EngineError} `launch_failed` when it cannot, with what to do.
   */
  start(spec: LaunchSpec, output: (line: OutputLine) => void): Promise<Running>;
}
