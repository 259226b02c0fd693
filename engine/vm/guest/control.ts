/**
 * The control connection between engine and guest: its messages, each a line of text, and the
 * engine's end of it.
 *
 * The other end is `guest_init.sh`. A guest is not trusted: the engine ignores malformed messages.
 *
 * @module
 */
import { LineSplitter } from "../../process/output.ts";
import { OutputTurns } from "../../process/output_turns.ts";

/** Number of a channel: 0 runs the main program, the others commands of `worker exec`. */
export type Channel = number;

/** Message from the engine to a guest. */
export type HostMessage =
  /**
   * Run `<script>.sh`; the guest ends both output streams with a zero byte and the mark. With
   * `hasInput` the program reads what `input.ts` sends.
   */
  | {
    readonly type: "run";
    channel: Channel;
    script: number;
    endMark: string;
    hasInput?: boolean;
  }
  | { readonly type: "signal"; channel: Channel; name: "TERM" | "KILL" }
  /** Kill all programs and power off. */
  | { readonly type: "off" };

/** Message from a guest to the engine. */
export type GuestMessage =
  | { readonly type: "ready" }
  /** The program has a process, so it can be signalled. */
  | { readonly type: "started"; channel: Channel }
  /** The program and all its child processes are gone. Either code or signal is a number. */
  | {
    readonly type: "exit";
    channel: Channel;
    code: number | null;
    signal: number | null;
    /** Whether the kernel killed a process of the program because memory ran out. */
    outOfMemory: boolean;
  };

/** Bytes per read; messages are short. */
const READ_BYTES = 1_024;

/** The engine's end of the connection. */
export class ControlConnection {
  /** Resolves when the guest has closed its end. */
  readonly closed: Promise<void>;
  readonly #connection: Deno.Conn;
  #sending: Promise<unknown> = Promise.resolve();

  /** Reads from now on and calls `receive` with each valid message, in order. */
  constructor(connection: Deno.Conn, receive: (message: GuestMessage) => void) {
    this.#connection = connection;
    this.closed = this.#read(receive);
  }

  /** Sends messages in order. Does nothing when the guest is gone; `Machine.ended` reports that. */
  send(message: HostMessage): void {
    const bytes = new TextEncoder().encode(encodeControl(message));
    this.#sending = this.#sending.then(async () => {
      for (let rest = bytes; rest.length > 0;) {
        rest = rest.subarray(await this.#connection.write(rest));
      }
    }).catch(() => {});
  }

  async #read(receive: (message: GuestMessage) => void): Promise<void> {
    const lines = new LineSplitter((line) => {
      const message = decodeControl(line);
      if (message) receive(message);
    });
    const buffer = new Uint8Array(READ_BYTES);
    const turns = new OutputTurns(); // A guest may send without end.
    for (;;) {
      const count = await this.#connection.read(buffer).catch(() => null);
      if (count === null) break;
      await turns.pass(buffer.subarray(0, count), (piece) => lines.add(piece));
    }
  }
}

/** Encodes a message as a line, newline included. */
export function encodeControl(message: HostMessage): string {
  switch (message.type) {
    case "run":
      return `run ${message.channel} ${message.script} ${message.endMark}` +
        (message.hasInput ? " input\n" : "\n");
    case "signal":
      return `signal ${message.channel} ${message.name}\n`;
    case "off":
      return "off\n";
  }
}

/** Decodes a line; `undefined` when it is malformed. */
export function decodeControl(line: string): GuestMessage | undefined {
  if (line === "ready") return { type: "ready" };
  const started = /^started (\d{1,2})$/.exec(line);
  if (started) return { type: "started", channel: Number(started[1]) };
  const exit = /^exit (\d{1,2}) (code|signal) (\d{1,3})( oom)?$/.exec(line);
  if (!exit) return undefined;
  const number = Number(exit[3]);
  return {
    type: "exit",
    channel: Number(exit[1]),
    code: exit[2] === "code" ? number : null,
    signal: exit[2] === "signal" ? number : null,
    outOfMemory: exit[4] !== undefined,
  };
}

/** Signal names of Linux on x86, from number 1. */
const SIGNALS = (
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP " +
  "TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
).split(" ");

/** Name of a signal, such as `SIGKILL` for 9; real-time signals are `SIGRTMIN+n`. */
export function signalName(number: number): string {
  const name = SIGNALS[number - 1];
  if (name !== undefined) return `SIG${name}`;
  return number === 34 ? "SIGRTMIN" : `SIGRTMIN+${number - 34}`;
}
