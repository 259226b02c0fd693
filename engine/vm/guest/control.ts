/**
 * What engine and guest say to each other on the control line, one message a line.
 *
 * The other end is `guest_init.sh`. A guest is not trusted: what cannot be read is passed over.
 *
 * @module
 */
import { LineSplitter } from "../../process/output_lines.ts";

/** A program of a guest runs on a channel: 0 the main one, from 1 on what runs beside it. */
export type Channel = number;

/** What the engine says. */
export type ToGuest =
  /** Run `<script>.sh` of the host's folder; each stream ends with a zero byte and the mark. */
  | { readonly type: "run"; channel: Channel; script: number; endMark: string }
  | { readonly type: "signal"; channel: Channel; name: "TERM" | "KILL" }
  /** End everything and the machine. */
  | { readonly type: "off" };

/** What a guest says. */
export type FromGuest =
  | { readonly type: "ready" }
  /** The program has its process: it can be sent signals. */
  | { readonly type: "started"; channel: Channel }
  /** It and all that it left behind are gone. One of code and signal is a number. */
  | {
    readonly type: "exit";
    channel: Channel;
    code: number | null;
    signal: number | null;
    /** Whether memory ran out while it ran and somebody of it was ended for that. */
    outOfMemory: boolean;
  };

/** Most bytes that are read at once; messages are short. */
const READ_BYTES = 1_024;

/** The engine's end of the line. */
export class ControlLine {
  /** Settles when the guest's end is closed. */
  readonly closed: Promise<void>;
  readonly #connection: Deno.Conn;
  #sending: Promise<unknown> = Promise.resolve();

  /** Listens from now on; `take` gets what can be read, in order. */
  constructor(connection: Deno.Conn, take: (message: FromGuest) => void) {
    this.#connection = connection;
    this.closed = this.#listen(take);
  }

  /** Sends in order. A guest that is gone hears nothing; its end is told elsewhere. */
  send(message: ToGuest): void {
    const bytes = new TextEncoder().encode(encodeControl(message));
    this.#sending = this.#sending.then(async () => {
      for (let rest = bytes; rest.length > 0;) {
        rest = rest.subarray(await this.#connection.write(rest));
      }
    }).catch(() => {});
  }

  async #listen(take: (message: FromGuest) => void): Promise<void> {
    const lines = new LineSplitter((line) => {
      const message = decodeControl(line);
      if (message) take(message);
    });
    const buffer = new Uint8Array(READ_BYTES);
    for (;;) {
      const count = await this.#connection.read(buffer).catch(() => null);
      if (count === null) break;
      lines.add(buffer.subarray(0, count));
    }
  }
}

/** The line, with its end. */
export function encodeControl(message: ToGuest): string {
  switch (message.type) {
    case "run":
      return `run ${message.channel} ${message.script} ${message.endMark}\n`;
    case "signal":
      return `signal ${message.channel} ${message.name}\n`;
    case "off":
      return "off\n";
  }
}

/** Reads a line. */
export function decodeControl(line: string): FromGuest | undefined {
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

/** Names of signals by number, as Linux on x86 has them. */
const SIGNALS = (
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP " +
  "TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
).split(" ");

/** Such as `SIGKILL` for 9; real-time signals are `SIGRTMIN+n`. */
export function signalName(number: number): string {
  const name = SIGNALS[number - 1];
  if (name !== undefined) return `SIG${name}`;
  return number === 34 ? "SIGRTMIN" : `SIGRTMIN+${number - 34}`;
}
