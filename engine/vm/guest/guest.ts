/**
 * One microVM: boots it, runs programs in it, ends it.
 *
 * Shared folders have the same path in the guest as on the host. For each program the engine writes
 * a script into a folder that the guest reads and sends `run` on the control connection; output
 * arrives on ports of its own. If the machine ends, its programs end with its reason.
 *
 * @module
 */
import { EngineError, thrownText } from "../../../sdk/typescript/wire/errors.ts";
import type { Share } from "../../install/guest_access.ts";
import type { Ended, OutputChunk, OutputLine } from "../../ports/launcher.ts";
import { LineSplitter } from "../../process/output.ts";
import { OutputTurns } from "../../process/output_turns.ts";
import { guestClock } from "../machine/guest_clock.ts";
import { BOOT_TIMEOUT_MS, Machine } from "../machine/machine.ts";
import {
  engineUrlHost,
  type GuestPort,
  type MachineOptions,
  qemuCommand,
} from "../machine/qemu.ts";
import { ChannelPool, GuestChannel, type StartedProgram } from "./channel.ts";
import type { GuestInput } from "./input.ts";
import { ControlConnection, type GuestMessage } from "./control.ts";
import { GuestFiles, type GuestScript } from "./files.ts";

/** Configuration of a guest. */
export interface GuestOptions extends MachineOptions {
  readonly shares: readonly Share[];
  /** Folder for files of this guest; created at boot, removed when the guest has ended. */
  readonly runDirectory: string;
  /** A guest that does not obey a message for this long is killed. Default: `BOOT_TIMEOUT_MS`. */
  readonly responseTimeoutMs?: number;
  /** The budget of what programs print. Default: one of its own. */
  readonly turns?: OutputTurns;
}

/** The main program of a guest. */
export interface GuestCommand extends Omit<GuestScript, "command"> {
  /** Shell command. */
  readonly command: string;
}

/** The main program of a guest, while it runs. */
export interface GuestProgram {
  /** Resolves when all its processes are gone and all its output was passed on. Never rejects. */
  readonly ended: Promise<Ended>;
  /** Sends `TERM` to its process group, or `KILL` to all processes that it started. */
  signal(name: "TERM" | "KILL"): void;
}

/** Programs that may run in addition to the main one at the same time; others are queued. */
const EXEC_CHANNELS = 4;
/** Time between `TERM` and `KILL` for such a program. */
const EXEC_GRACE_MS = 2_000;

/** A booted microVM. */
export class Guest {
  /** Process id of QEMU. */
  readonly pid: number;
  /** Host and port at which programs in the guest reach the engine, such as `10.0.2.2:49134`. */
  readonly engineUrlHost: string;
  /**
   * Resolves when the machine and its files are gone. `reason` is absent after `powerOff()` and
   * otherwise tells why the machine ended, such as `kernel panic: …`. Never rejects.
   */
  readonly ended: Promise<Ended>;
  readonly #name: string;
  readonly #responseTimeoutMs: number;
  readonly #files: GuestFiles;
  readonly #machine: Machine;
  readonly #control: ControlConnection;
  readonly #main: GuestChannel;
  readonly #extra: ChannelPool;
  readonly #ready = Promise.withResolvers<void>();
  #isGone = false;
  #isPoweringOff = false;

  private constructor(
    options: GuestOptions,
    files: GuestFiles,
    machine: Machine,
    connections: ReadonlyMap<string, Deno.UnixConn>,
  ) {
    this.#name = options.name;
    this.#responseTimeoutMs = options.responseTimeoutMs ?? BOOT_TIMEOUT_MS;
    this.#files = files;
    this.#machine = machine;
    this.#control = new ControlConnection(connections.get("control")!, (message) => {
      this.#receive(message);
    });
    this.pid = machine.pid;
    this.engineUrlHost = engineUrlHost(options.network, options.engine);
    const { memory_mb: memoryMb } = options.resources;
    const { turns = new OutputTurns() } = options;
    const [main, ...extra] = Array.from({ length: 1 + EXEC_CHANNELS }, (_, number) => {
      const stdout = connections.get(`out${number}`)!;
      const stderr = connections.get(`err${number}`)!;
      const control = this.#control;
      const stdin = connections.get(`in${number}`);
      const parts = { number, stdout, stderr, control, memoryMb, turns };
      return new GuestChannel({ ...parts, ...stdin && { stdin } });
    });
    this.#main = main!;
    this.#extra = new ChannelPool(extra);
    this.ended = this.#watch(connections);
  }

  /**
   * Boots a machine and waits until it can run programs.
   *
   * @param signal Aborts the boot.
   * @throws {EngineError} `launch_failed` with the last console lines in `details.console`, after
   * `BOOT_TIMEOUT_MS` at the latest.
   */
  static async boot(options: GuestOptions, signal?: AbortSignal): Promise<Guest> {
    const { accelerator, image, name, qemu } = options;
    const limit = AbortSignal.timeout(BOOT_TIMEOUT_MS);
    const either = signal ? AbortSignal.any([signal, limit]) : limit;
    const files = new GuestFiles(options);
    let machine: Machine | undefined;
    try {
      await files.write();
      await using ports = await GuestPorts.open(portNames());
      const folder = image.initrd.slice(0, image.initrd.lastIndexOf("/"));
      const clockKhz = accelerator === "tcg" ? await guestClock(qemu, folder) : undefined;
      either.throwIfAborted();
      const parts = { shares: files.folders, ports: ports.ports, clockKhz };
      machine = await Machine.start(name, qemuCommand({ ...options, ...parts }), options.turns);
      const connections = await unlessEnded(machine, either, ports.accept());
      const guest = new Guest(options, files, machine, connections);
      await unlessEnded(machine, either, guest.#ready.promise);
      return guest;
    } catch (thrown) {
      machine?.kill();
      const ended = await machine?.ended;
      await files.remove();
      const why = limit.aborted
        ? `it was not up within ${BOOT_TIMEOUT_MS / 1_000} s`
        : ended?.reason ?? thrownText(thrown);
      throw bootFailed(name, why, machine?.console() ?? [], thrown);
    }
  }

  /**
   * Runs the main program; a guest runs one at a time, any number in sequence. Resolves when the
   * program has a process. When it has ended, none of its processes is left in the guest, and
   * programs started by `exec()` are killed.
   *
   * @throws {EngineError} `launch_failed` when the machine is gone.
   */
  async run(program: GuestCommand, output: (line: OutputLine) => void): Promise<GuestProgram> {
    const lines = {
      stdout: new LineSplitter((text) => output({ stream: "stdout", text })),
      stderr: new LineSplitter((text) => output({ stream: "stderr", text })),
    };
    const command = ["/bin/sh", "-c", program.command];
    const script = await this.#writeScript({ ...program, command });
    if (!this.#main.isFree) throw this.#cannotRun("it runs another one");
    const { started, ended } = this.#start(this.#main, script, ({ stream, bytes }) => {
      lines[stream].add(bytes);
    });
    const timer = setTimeout(() => this.#machine.kill(), this.#responseTimeoutMs);
    await started;
    clearTimeout(timer);
    return {
      ended: ended.then((how) => {
        lines.stdout.end();
        lines.stderr.end();
        for (const channel of this.#extra.channels) void channel.signal("KILL");
        return how;
      }),
      signal: (name) => void this.#main.signal(name),
    };
  }

  /**
   * Runs a program in addition to the main one, as soon as a channel is free. Resolves when the
   * program has ended; the signal ends it, or the wait for a channel. Default of `input`: nothing
   * to read.
   *
   * @throws {EngineError} `launch_failed` when the machine is gone.
   */
  async exec(
    program: GuestScript,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    input?: GuestInput,
  ): Promise<Ended> {
    const script = await this.#writeScript(program);
    const start = (channel: GuestChannel) => ({
      channel,
      ended: this.#start(channel, script, output, input).ended,
    });
    const started = await this.#extra.start(start, signal);
    if (!started) {
      await this.#files.removeScript(script);
      await input?.cancel().catch(() => {});
      if (signal.aborted) return { code: null, signal: "SIGTERM" };
      throw this.#cannotRun("its microVM is gone");
    }
    const timers: ReturnType<typeof setTimeout>[] = [];
    const end = (): void => {
      void started.channel.signal("TERM");
      timers.push(
        setTimeout(() => void started.channel.signal("KILL"), EXEC_GRACE_MS),
        setTimeout(() => this.#machine.kill(), EXEC_GRACE_MS + this.#responseTimeoutMs),
      );
    };
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    const how = await started.ended;
    signal.removeEventListener("abort", end);
    for (const timer of timers) clearTimeout(timer);
    return how;
  }

  /** Asks the guest to power off, and kills it after `graceMs`. */
  async powerOff(graceMs: number): Promise<Ended> {
    this.#isPoweringOff = true;
    this.#control.send({ type: "off" });
    const timer = setTimeout(() => this.#machine.kill(), graceMs);
    const ended = await this.ended;
    clearTimeout(timer);
    return ended;
  }

  async #writeScript(program: GuestScript): Promise<number> {
    try {
      return await this.#files.writeScript(program);
    } catch (thrown) {
      throw this.#cannotRun(this.#isGone ? "its microVM is gone" : thrownText(thrown));
    }
  }

  #start(
    channel: GuestChannel,
    script: number,
    output: (chunk: OutputChunk) => void,
    input?: GuestInput,
  ): { started: Promise<void>; ended: Promise<Ended> } {
    if (this.#isGone) throw this.#cannotRun("its microVM is gone");
    const { started, ended } = channel.start(script, output, input);
    return { started, ended: this.#endOf(script, ended) };
  }

  /** How a program ended; if the machine ended, with the machine's reason. */
  async #endOf(script: number, exit: StartedProgram["ended"]): Promise<Ended> {
    const ended = await exit;
    this.#extra.wake();
    await this.#files.removeScript(script);
    if (ended) return ended;
    const { signal, reason } = await this.ended;
    return { code: null, signal: signal ?? "SIGKILL", reason: reason ?? "its microVM was stopped" };
  }

  async #watch(connections: ReadonlyMap<string, Deno.UnixConn>): Promise<Ended> {
    const { code, signal, reason } = await this.#machine.ended;
    this.#isGone = true;
    this.#extra.close();
    const channels = [this.#main, ...this.#extra.channels];
    await Promise.all([this.#control.closed, ...channels.map((channel) => channel.close())]);
    for (const connection of connections.values()) connection.close();
    await this.#files.remove();
    if (reason === undefined && this.#isPoweringOff) return { code, signal };
    return { code: null, signal: signal ?? "SIGKILL", reason: reason ?? "its microVM ended" };
  }

  #receive(message: GuestMessage): void {
    switch (message.type) {
      case "ready":
        return this.#ready.resolve();
      case "started":
      case "exit":
        return [this.#main, ...this.#extra.channels][message.channel]?.receive(message);
    }
  }

  #cannotRun(why: string): EngineError {
    return new EngineError("launch_failed", `${this.#name} cannot run a program: ${why}`);
  }
}

function portNames(): string[] {
  const channels = Array.from({ length: 1 + EXEC_CHANNELS }, (_, i) => [`out${i}`, `err${i}`]);
  const inputs = Array.from({ length: EXEC_CHANNELS }, (_, i) => `in${i + 1}`);
  return [...channels.flat(), ...inputs, "control"]; // Last: the guest waits for this port only.
}

/** Waits for a promise; rejects when the machine ends or the signal aborts first. */
async function unlessEnded<T>(
  machine: Machine,
  signal: AbortSignal,
  promise: Promise<T>,
): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  void machine.ended.then(() => stopped.reject(new Error("it ended while it booted")));
  try {
    return await Promise.race([promise, stopped.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function bootFailed(
  name: string,
  why: string,
  console: readonly string[],
  cause: unknown,
): EngineError {
  const message = `The microVM of ${name} does not boot: ${why}`;
  return new EngineError("launch_failed", message, { details: { console: [...console] }, cause });
}

/**
 * The unix sockets on which the engine listens for QEMU, one for each port of the guest.
 *
 * A socket path has at most 107 bytes, so the sockets lie in a folder with a short name, which is
 * removed as soon as QEMU has connected.
 */
export class GuestPorts implements AsyncDisposable {
  /** The ports for QEMU's command line. */
  readonly ports: readonly GuestPort[];
  readonly #directory: string;
  readonly #listeners: ReadonlyMap<string, Deno.UnixListener>;

  private constructor(directory: string, names: readonly string[]) {
    this.#directory = directory;
    this.ports = names.map((name) => ({ name, socket: `${directory}/${name}` }));
    this.#listeners = new Map(
      this.ports.map(({ name, socket: path }) => [name, Deno.listen({ transport: "unix", path })]),
    );
  }

  /** Listens on one socket for each name. Only this user can connect. */
  static async open(names: readonly string[]): Promise<GuestPorts> {
    // Not in TMPDIR, whose path may be long. makeTempDir() creates the folder with mode 0700.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "engine-vm-" });
    return new GuestPorts(directory, names);
  }

  /** Accepts one connection for each port, by name. Rejects when disposed before. */
  async accept(): Promise<Map<string, Deno.UnixConn>> {
    const found = new Map<string, Deno.UnixConn>();
    const accepted = await Promise.allSettled(
      [...this.#listeners].map(async ([name, listener]) => {
        found.set(name, await listener.accept());
      }),
    );
    const failed = accepted.find((result) => result.status === "rejected");
    if (failed) {
      for (const connection of found.values()) connection.close();
      throw failed.reason;
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const listener of this.#listeners.values()) listener.close();
    await Deno.remove(this.#directory, { recursive: true }).catch(() => {}); // Already gone.
  }
}
