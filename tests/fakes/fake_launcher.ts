/**
 * A launcher that starts nothing: tests say what its programs print and how they end.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type {
  Ended,
  Launcher,
  LaunchSpec,
  OutputChunk,
  OutputLine,
  Running,
  StopProgram,
} from "../../engine/ports/launcher.ts";

/** A command beside a program, in the hands of a test. */
export interface FakeCommand {
  readonly command: readonly string[];
  readonly output: (chunk: OutputChunk) => void;
  readonly signal: AbortSignal;
  end(ended: Ended): void;
}

/** A program that a {@linkcode FakeLauncher} was asked to start. */
export class FakeProgram implements Running {
  readonly pid: number;
  readonly spec: LaunchSpec;
  readonly ended: Promise<Ended>;
  readonly accelerator = null;
  /** Whether it runs still. */
  isRunning = true;
  /** Whether stop() said that the same worker starts again at once. */
  isKept = false;
  /** Commands that were run beside it. */
  readonly commands: FakeCommand[] = [];
  /** Times that stop() was called with, in order. */
  readonly stops: number[] = [];
  /** Whether stop() ends it at once; else the test does. */
  leavesWhenAsked = true;
  readonly #end: (ended: Ended) => void;
  readonly #output: (line: OutputLine) => void;

  /** Runs until exit() or kill(). */
  constructor(pid: number, spec: LaunchSpec, output: (line: OutputLine) => void) {
    this.pid = pid;
    this.spec = spec;
    this.#output = output;
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.ended = promise;
    this.#end = (ended) => {
      this.isRunning = false;
      resolve(ended);
    };
  }

  /** Prints a line. */
  print(text: string): void {
    this.#output({ stream: "stdout", text });
  }

  /** Ends by itself. */
  exit(code: number): void {
    this.#end({ code, signal: null });
  }

  stop(graceMs: number, { keep = false }: StopProgram = {}): Promise<Ended> {
    this.stops.push(graceMs);
    this.isKept = keep;
    if (this.leavesWhenAsked) this.#end({ code: null, signal: "SIGTERM" });
    return this.ended;
  }

  exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.commands.push({ command, output, signal, end: resolve });
    const stop = (): void => resolve({ code: null, signal: "SIGTERM" });
    signal.addEventListener("abort", stop, { once: true });
    return promise;
  }
}

/** A {@linkcode Launcher} whose programs are in the hands of a test. */
export class FakeLauncher implements Launcher {
  readonly isolation = "process";
  /** All that were started, in order. */
  readonly programs: FakeProgram[] = [];
  /** Called with every program when it starts. */
  onStart: (program: FakeProgram) => void = () => {};
  /** While set, nothing can be started and this is why. */
  failure: string | undefined;
  /** Whether close() was called. */
  isClosed = false;

  /** The program that was started last. */
  get last(): FakeProgram {
    return this.programs.at(-1)!;
  }

  start(spec: LaunchSpec, output: (line: OutputLine) => void): Promise<Running> {
    if (this.failure !== undefined) {
      return Promise.reject(new EngineError("launch_failed", this.failure));
    }
    const program = new FakeProgram(100 + this.programs.length, spec, output);
    this.programs.push(program);
    this.onStart(program);
    return Promise.resolve(program);
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}
