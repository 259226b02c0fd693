/**
 * A worker's program in a microVM, as the supervisor sees it.
 *
 * The program is asked to leave first, then ended, and if the guest does not do that either, the
 * machine is. Whether the machine goes with it or waits for the next program is decided when the
 * program has ended: after one that ran out of memory, or that a signal ended unasked, it goes.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { withoutMarks } from "../process/output.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Accelerator,
  Ended,
  LaunchSpec,
  OutputChunk,
  Running,
  StopProgram,
} from "../ports/launcher.ts";
import type { Guest, GuestProgram } from "./guest/guest.ts";

/** What is asked of a guest that was booted; see {@linkcode Guest}. */
export type BootedGuest = Pick<
  Guest,
  "pid" | "engineUrlHost" | "ended" | "run" | "exec" | "powerOff"
>;

/** What a program runs in, and what becomes of that. */
export interface ProgramSurroundings {
  readonly spec: LaunchSpec;
  /** The whole environment of the program, and of what runs beside it. */
  readonly env: Readonly<Record<string, string>>;
  readonly guest: BootedGuest;
  readonly accelerator: Accelerator;
  readonly clock: Clock;
  /** Called once, when the program has ended: the guest is kept, or gone when it resolves. */
  leave(isKept: boolean): Promise<void>;
}

/** How long a guest may take to end a program by force, before the machine itself is ended. */
const KILL_MS = 5_000;

/** One program in a guest. */
export class MicroVmProgram implements Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly accelerator: Accelerator;
  readonly #around: ProgramSurroundings;
  readonly #program: GuestProgram;
  readonly #over = new AbortController();
  #isKept: boolean | undefined;
  #stopping: Promise<void> | undefined;

  /** The program was started already. */
  constructor(program: GuestProgram, around: ProgramSurroundings) {
    this.#around = around;
    this.#program = program;
    this.pid = around.guest.pid;
    this.accelerator = around.accelerator;
    this.ended = this.#watch();
  }

  async stop(graceMs: number, { keep = false }: StopProgram = {}): Promise<Ended> {
    // Who wants the machine gone wins over who wants it kept.
    this.#isKept = keep && this.#isKept !== false;
    this.#stopping ??= this.#stop(graceMs);
    await this.#stopping;
    return await this.ended;
  }

  async exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const { spec: { name, directory }, env, guest } = this.#around;
    if (this.#over.signal.aborted) {
      throw new EngineError("launch_failed", `Worker ${name} does not run any more`);
    }
    const either = AbortSignal.any([signal, this.#over.signal]);
    return await guest.exec({ command, directory, env: withoutMarks(env) }, output, either);
  }

  async #watch(): Promise<Ended> {
    const { spec, leave } = this.#around;
    const ended = await this.#program.ended;
    this.#over.abort();
    const isWanted = this.#isKept ?? (spec.keep === true && ended.code !== null);
    await leave(isWanted && ended.reason === undefined);
    return ended;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#program.signal("TERM");
    if (await this.#endsWithin(graceMs)) return;
    this.#program.signal("KILL");
    if (await this.#endsWithin(KILL_MS)) return;
    await this.#around.guest.powerOff(0);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const late = Promise.withResolvers<false>();
    const cancelTimer = this.#around.clock.after(ms, () => late.resolve(false));
    const ended = this.#program.ended.then(() => true);
    const isOver = await Promise.race([ended, late.promise]);
    cancelTimer();
    return isOver;
  }
}
