/**
 * One microVM: boots, runs programs, ends.
 *
 * Every path in the guest is that of the host. Programs are written as scripts into a folder that
 * the guest reads, and started by a line on the control line; what they print comes on ports of its
 * own. If the machine goes, whatever ran in it has ended with it, and the reason says why.
 *
 * @module
 */
import { EngineError, thrownText } from "../../../sdk/typescript/wire/errors.ts";
import { BOOT_TIMEOUT_MS } from "../../../sdk/typescript/wire/limits.ts";
import type { Share } from "../../install/guest_access.ts";
import type { Ended, OutputChunk, OutputLine } from "../../ports/launcher.ts";
import { LineSplitter } from "../../process/output_lines.ts";
import { guestClock } from "../machine/guest_clock.ts";
import { Machine } from "../machine/machine.ts";
import {
  engineUrlHost,
  type GuestPort,
  type MachineOptions,
  qemuCommand,
} from "../machine/qemu.ts";
import { ChannelPool, GuestChannel, type StartedProgram } from "./channel.ts";
import { ControlLine, type FromGuest } from "./control.ts";
import { GuestFiles, type GuestScript } from "./files.ts";

/** What a guest is made of. */
export interface GuestOptions extends MachineOptions {
  readonly shares: readonly Share[];
  /** For files of this guest; made when it boots, removed when it has ended. */
  readonly runDirectory: string;
  /** A guest that does not what it is told for so long is ended. Default: `BOOT_TIMEOUT_MS`. */
  readonly patienceMs?: number;
}

/** A program to run in a guest. */
export interface GuestCommand {
  readonly directory: string;
  /** All that is in its environment, besides `PATH` and `HOME` where they are missing. */
  readonly env: Readonly<Record<string, string>>;
}

/** A program that runs in a guest. */
export interface GuestProgram {
  /** It, what it left behind and its output are through. Never rejects. */
  readonly ended: Promise<Ended>;
  /** `TERM` goes to its process group, `KILL` to all that it started. */
  signal(name: "TERM" | "KILL"): void;
}

/** Programs that can run beside the main one at once; more wait for their turn. */
const EXEC_CHANNELS = 4;
/** A program that is to end has so long until it is killed, in milliseconds. */
const EXEC_GRACE_MS = 2_000;

/** See the module. */
export class Guest {
  /** Process id of QEMU. */
  readonly pid: number;
  /** Where the guest's programs find the engine, such as `10.0.2.2:49134`. */
  readonly engineUrlHost: string;
  /**
   * The machine is gone, and its files. Without a reason it was asked to; otherwise that says why
   * it went, such as `kernel panic: …`. Never rejects.
   */
  readonly ended: Promise<Ended>;
  readonly #name: string;
  readonly #patienceMs: number;
  readonly #files: GuestFiles;
  readonly #machine: Machine;
  readonly #control: ControlLine;
  readonly #main: GuestChannel;
  readonly #beside: ChannelPool;
  readonly #ready = Promise.withResolvers<void>();
  #isGone = false;
  #isAskedToEnd = false;

  private constructor(
    options: GuestOptions,
    files: GuestFiles,
    machine: Machine,
    connections: ReadonlyMap<string, Deno.UnixConn>,
  ) {
    this.#name = options.name;
    this.#patienceMs = options.patienceMs ?? BOOT_TIMEOUT_MS;
    this.#files = files;
    this.#machine = machine;
    this.#control = new ControlLine(connections.get("control")!, (message) => {
      this.#take(message);
    });
    this.pid = machine.pid;
    this.engineUrlHost = engineUrlHost(options.network, options.engine);
    const { memory_mb: memoryMb } = options.resources;
    const [main, ...beside] = Array.from({ length: 1 + EXEC_CHANNELS }, (_, number) => {
      const stdout = connections.get(`out${number}`)!;
      const stderr = connections.get(`err${number}`)!;
      const control = this.#control;
      return new GuestChannel({ number, stdout, stderr, control, memoryMb });
    });
    this.#main = main!;
    this.#beside = new ChannelPool(beside);
    this.ended = this.#watch(connections);
  }

  /**
   * Boots a machine and waits until it takes programs.
   *
   * @param signal Ends the wait, and the machine.
   * @throws {EngineError} `launch_failed` with the console's last lines; after `BOOT_TIMEOUT_MS`
   * at the latest.
   */
  static async boot(options: GuestOptions, signal?: AbortSignal): Promise<Guest> {
    const { accelerator, image, name, qemu } = options;
    const limit = AbortSignal.timeout(BOOT_TIMEOUT_MS);
    const given = signal ? AbortSignal.any([signal, limit]) : limit;
    const files = new GuestFiles(options);
    let machine: Machine | undefined;
    try {
      await files.write();
      await using ports = await GuestPorts.open(portNames());
      const folder = image.initrd.slice(0, image.initrd.lastIndexOf("/"));
      const clockKhz = accelerator === "tcg" ? await guestClock(qemu, folder) : undefined;
      given.throwIfAborted();
      const parts = { shares: files.folders, ports: ports.ports, clockKhz };
      machine = await Machine.start(name, qemuCommand({ ...options, ...parts }));
      const connections = await unlessItEnds(machine, given, ports.accept());
      const guest = new Guest(options, files, machine, connections);
      await unlessItEnds(machine, given, guest.#ready.promise);
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
   * Runs a program as a shell understands it: one at a time, several after each other. Resolves
   * when it has its process. When it has ended, nothing that it started is left in the guest, and
   * what runs beside it is ended.
   *
   * @throws {EngineError} `launch_failed` when the machine is gone.
   */
  async run(
    program: GuestCommand & { readonly command: string },
    output: (line: OutputLine) => void,
  ): Promise<GuestProgram> {
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
    const impatience = setTimeout(() => this.#machine.kill(), this.#patienceMs);
    await started;
    clearTimeout(impatience);
    return {
      ended: ended.then((how) => {
        lines.stdout.end();
        lines.stderr.end();
        for (const channel of this.#beside.channels) void channel.signal("KILL");
        return how;
      }),
      signal: (name) => void this.#main.signal(name),
    };
  }

  /**
   * Runs another program beside the main one, or waits until one of those that do has ended.
   * Resolves when it has ended; the signal ends it, or the wait.
   *
   * @throws {EngineError} `launch_failed` when the machine is gone.
   */
  async exec(
    program: GuestCommand & { readonly command: readonly string[] },
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const script = await this.#writeScript(program);
    const start = (channel: GuestChannel) => ({
      channel,
      ended: this.#start(channel, script, output).ended,
    });
    const started = await this.#beside.start(start, signal);
    if (!started) {
      await this.#files.removeScript(script);
      if (signal.aborted) return { code: null, signal: "SIGTERM" };
      throw this.#cannotRun("its microVM is gone");
    }
    const timers: ReturnType<typeof setTimeout>[] = [];
    const end = (): void => {
      void started.channel.signal("TERM");
      timers.push(
        setTimeout(() => void started.channel.signal("KILL"), EXEC_GRACE_MS),
        setTimeout(() => this.#machine.kill(), EXEC_GRACE_MS + this.#patienceMs),
      );
    };
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    const how = await started.ended;
    signal.removeEventListener("abort", end);
    for (const timer of timers) clearTimeout(timer);
    return how;
  }

  /** Asks the guest to end; after `graceMs` ends it. */
  async powerOff(graceMs: number): Promise<Ended> {
    this.#isAskedToEnd = true;
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
  ): { started: Promise<void>; ended: Promise<Ended> } {
    if (this.#isGone) throw this.#cannotRun("its microVM is gone");
    const { started, ended } = channel.start(script, output);
    return { started, ended: this.#endOf(script, ended) };
  }

  /** A program whose machine went was killed with it. */
  async #endOf(script: number, told: StartedProgram["ended"]): Promise<Ended> {
    const ended = await told;
    this.#beside.wake();
    await this.#files.removeScript(script);
    if (ended) return ended;
    const { signal, reason } = await this.ended;
    return { code: null, signal: signal ?? "SIGKILL", reason: reason ?? "its microVM was stopped" };
  }

  async #watch(connections: ReadonlyMap<string, Deno.UnixConn>): Promise<Ended> {
    const { code, signal, reason } = await this.#machine.ended;
    this.#isGone = true;
    this.#beside.close();
    const channels = [this.#main, ...this.#beside.channels];
    await Promise.all([this.#control.closed, ...channels.map((channel) => channel.close())]);
    for (const connection of connections.values()) connection.close();
    await this.#files.remove();
    if (reason === undefined && this.#isAskedToEnd) return { code, signal };
    return { code: null, signal: signal ?? "SIGKILL", reason: reason ?? "its microVM ended" };
  }

  #take(message: FromGuest): void {
    switch (message.type) {
      case "ready":
        return this.#ready.resolve();
      case "started":
      case "exit":
        return [this.#main, ...this.#beside.channels][message.channel]?.take(message);
    }
  }

  #cannotRun(why: string): EngineError {
    return new EngineError("launch_failed", `${this.#name} cannot run a program: ${why}`);
  }
}

function portNames(): string[] {
  const channels = Array.from({ length: 1 + EXEC_CHANNELS }, (_, i) => [`out${i}`, `err${i}`]);
  return [...channels.flat(), "control"]; // The guest takes the last one as a sign of the others.
}

/** Waits for a promise while the machine lives and nobody gives up. */
async function unlessItEnds<T>(
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

/** Listens on the sockets of one guest. */
export class GuestPorts implements AsyncDisposable {
  /** For QEMU's command line. */
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

  /** Listens for each of the names. Only this user can connect. */
  static async open(names: readonly string[]): Promise<GuestPorts> {
    // Not where TMPDIR says, which may be long. The folder's mode is 0700.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "engine-vm-" });
    return new GuestPorts(directory, names);
  }

  /** The connections of all ports, by name. Rejects when it is closed before. */
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
    await Deno.remove(this.#directory, { recursive: true }).catch(() => {}); // Gone is fine.
  }
}
