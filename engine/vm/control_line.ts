/**
 * What engine and guest say to each other on the control line, one message a line.
 *
 * The other end is `guest_init.sh`. A guest is not trusted: what cannot be read is `undefined`.
 *
 * @module
 */

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
  }
  /** It cannot go on; the machine ends. */
  | { readonly type: "trouble"; text: string };

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
  if (line.startsWith("trouble ")) return { type: "trouble", text: line.slice(8) };
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
