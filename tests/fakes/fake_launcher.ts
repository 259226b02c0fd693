/**
 * A launcher that starts nothing: tests say what its programs print and how they end.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import type {
  Ended,
  Launcher,
  LaunchSpec,
  OutputLine,
  Running,
} from "../../engine/ports/launcher.ts";

/** A program that a {@linkcode FakeLauncher} was asked to start. */
export class FakeProgram implements Running {
  readonly pid: number;
  readonly spec: LaunchSpec;
  readonly ended: Promise<Ended>;
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
    this.#end = resolve;
  }

  /** Prints a line. */
  print(text: string): void {
    this.#output({ stream: "stdout", text });
  }

  /** Ends by itself. */
  exit(code: number): void {
    this.#end({ code, signal: null });
  }

  stop(graceMs: number): Promise<Ended> {
    this.stops.push(graceMs);
    if (this.leavesWhenAsked) this.#end({ code: null, signal: "SIGTERM" });
    return this.ended;
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
}
