/**
 * A worker's program in a microVM, as the supervisor sees it.
 *
 * `stop()` sends `TERM`, then `KILL`, and kills the machine if the guest obeys neither. When the
 * program has ended, the machine is kept for the next program or released. It is always released
 * after the program ran out of memory or was killed by a signal that `stop()` did not send.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { withoutMarks } from "../process/output.ts";
import { inTerminal } from "../process/programs.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Accelerator,
  Ended,
  ExecOptions,
  LaunchSpec,
  OutputChunk,
  Running,
  StopProgram,
} from "../ports/launcher.ts";
import type { Guest, GuestProgram } from "./guest/guest.ts";

/** The part of {@linkcode Guest} that programs and launcher use. */
export type BootedGuest = Pick<
  Guest,
  "pid" | "engineUrlHost" | "ended" | "run" | "exec" | "powerOff"
>;

/** Context of a program in a guest. */
export interface ProgramContext {
  readonly spec: LaunchSpec;
  /** The whole environment of the program and of commands run by `exec()`. */
  readonly env: Readonly<Record<string, string>>;
  readonly guest: BootedGuest;
  readonly accelerator: Accelerator;
  readonly clock: Clock;
  /** Keeps or releases the guest; called once, when the program has ended. */
  endUse(isKept: boolean): Promise<void>;
}

/** How long a guest may take to obey `KILL` before the machine is killed. */
const KILL_MS = 5_000;

/** One program in a guest. */
export class MicroVmProgram implements Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly accelerator: Accelerator;
  readonly #context: ProgramContext;
  readonly #program: GuestProgram;
  readonly #hasEnded = new AbortController();
  #isKept: boolean | undefined;
  #stopping: Promise<void> | undefined;

  constructor(program: GuestProgram, context: ProgramContext) {
    this.#context = context;
    this.#program = program;
    this.pid = context.guest.pid;
    this.accelerator = context.accelerator;
    this.ended = this.#watch();
  }

  async stop(graceMs: number, { keep = false }: StopProgram = {}): Promise<Ended> {
    // One call that does not keep the machine overrides those that do.
    this.#isKept = keep && this.#isKept !== false;
    this.#stopping ??= this.#stop(graceMs);
    await this.#stopping;
    return await this.ended;
  }

  async exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    { input, tty }: ExecOptions = {},
  ): Promise<Ended> {
    const { spec: { name, directory }, env, guest } = this.#context;
    if (this.#hasEnded.signal.aborted) {
      throw new EngineError("launch_failed", `Worker ${name} does not run any more`);
    }
    const either = AbortSignal.any([signal, this.#hasEnded.signal]);
    const plain = { command, env: withoutMarks(env) };
    // The system's programs are the same in the guest.
    const program = tty ? await inTerminal(plain, tty, { os: "linux" }) : plain;
    const ended = await guest.exec({ ...program, directory }, output, either, input);
    // The program that made the terminal may exit with 0 when it is asked to end.
    return tty && either.aborted ? { ...ended, code: null, signal: "SIGTERM" } : ended;
  }

  async #watch(): Promise<Ended> {
    const { spec, endUse } = this.#context;
    const ended = await this.#program.ended;
    this.#hasEnded.abort();
    const isKept = this.#isKept ?? (spec.keep === true && ended.code !== null);
    await endUse(isKept && ended.reason === undefined);
    return ended;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#program.signal("TERM");
    if (await this.#endsWithin(graceMs)) return;
    this.#program.signal("KILL");
    if (await this.#endsWithin(KILL_MS)) return;
    await this.#context.guest.powerOff(0);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const late = Promise.withResolvers<false>();
    const cancelTimer = this.#context.clock.after(ms, () => late.resolve(false));
    const ended = this.#program.ended.then(() => true);
    const hasEnded = await Promise.race([ended, late.promise]);
    cancelTimer();
    return hasEnded;
  }
}
