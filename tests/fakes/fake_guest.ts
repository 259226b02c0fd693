/**
 * A microVM that is booted in no time and runs nothing: tests say how its programs end.
 *
 * @module
 */
import type { Ended, OutputChunk, OutputLine } from "../../engine/ports/launcher.ts";
import type { GuestOptions, GuestProgram } from "../../engine/vm/guest/guest.ts";
import type { BootedGuest } from "../../engine/vm/microvm_program.ts";

/** A program of a {@linkcode FakeGuest}. */
export class FakeGuestProgram implements GuestProgram {
  readonly ended: Promise<Ended>;
  readonly end: (ended: Ended) => void;
  readonly signals: string[] = [];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly print: (text: string) => void;
  /** What a signal does. */
  onSignal: (name: "TERM" | "KILL") => unknown = () => this.end({ code: null, signal: "SIGTERM" });

  constructor(program: Parameters<BootedGuest["run"]>[0], output: (line: OutputLine) => void) {
    ({ promise: this.ended, resolve: this.end } = Promise.withResolvers<Ended>());
    this.env = program.env;
    this.directory = program.directory;
    this.print = (text) => output({ stream: "stdout", text });
  }

  signal(name: "TERM" | "KILL"): void {
    this.signals.push(name);
    this.onSignal(name);
  }
}

/** A machine that is booted in no time and runs nothing. */
export class FakeGuest implements BootedGuest {
  readonly pid = Deno.pid;
  readonly engineUrlHost = "10.0.2.2:7";
  readonly ended: Promise<Ended>;
  readonly options: GuestOptions;
  readonly #end: (ended: Ended) => void;
  readonly programs: FakeGuestProgram[] = [];
  readonly powerOffs: number[] = [];
  readonly execs: { program: Parameters<BootedGuest["exec"]>[0]; signal: AbortSignal }[] = [];
  /** While set, no program can be run in it. */
  isBroken = false;

  constructor(options: GuestOptions) {
    this.options = options;
    ({ promise: this.ended, resolve: this.#end } = Promise.withResolvers<Ended>());
  }

  /** What ran in it has ended with it. */
  end(ended: Ended): void {
    this.#end(ended);
    const reason = ended.reason ?? "its microVM ended";
    for (const program of this.programs) program.end({ code: null, signal: "SIGKILL", reason });
  }

  run(program: Parameters<BootedGuest["run"]>[0], output: (line: OutputLine) => void) {
    if (this.isBroken) return Promise.reject(new Error("the connection to the guest is closed"));
    this.programs.push(new FakeGuestProgram(program, output));
    return Promise.resolve(this.programs.at(-1)!);
  }

  exec(
    program: Parameters<BootedGuest["exec"]>[0],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    this.execs.push({ program, signal });
    output({ stream: "stdout", bytes: new TextEncoder().encode("hello") });
    return Promise.resolve({ code: 3, signal: null });
  }

  powerOff(graceMs: number): Promise<Ended> {
    this.powerOffs.push(graceMs);
    this.end({ code: 0, signal: null });
    return this.ended;
  }
}
