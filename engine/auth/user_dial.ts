/**
 * Dials an engine as its own user does: with the key that the engine has left for the user.
 *
 * The key is another one with every start of the engine, and is written a moment after it listens.
 * So it is read with every attempt, and looked at again for a while after; a line that was opened
 * with an older one ends, and the next has the new.
 *
 * @module
 */
import { CONTROL_KEY_LOOKS_MS } from "../../sdk/typescript/wire/limits.ts";
import { dialPlatform } from "../../sdk/typescript/platform_dial.ts";
import type { Dial, Transport, TransportEvents } from "../../sdk/typescript/wire/transport.ts";
import { CONTROL_HEADER, readControlKey } from "./control_key.ts";
import type { Clock } from "../ports/clock.ts";

/** Which engine, and how its key is found. */
export interface UserDialOptions {
  /** Address of the engine. */
  readonly url: string;
  readonly clock: Clock;
  /** Default: what the engine left in a file of this user. */
  readonly findKey?: (url: string) => Promise<string | undefined>;
  /** Default: a WebSocket. */
  readonly dial?: Dial;
}

/** A dialler whose lines are its user's. */
export function dialAsUser(options: UserDialOptions): Dial {
  const { url, clock, findKey = readControlKey, dial = dialPlatform } = options;
  return (address, events, { headers }) => {
    let line: Transport | undefined;
    let isOver = false;
    const cancels: (() => void)[] = [];
    const closed: TransportEvents["closed"] = (code, reason) => {
      isOver = true;
      for (const cancel of cancels) cancel();
      events.closed(code, reason);
    };
    const look = async (used: string | undefined): Promise<void> => {
      if (await findKey(url) !== used && !isOver) line?.close(1000, "the engine's key is another");
    };
    const open = async (): Promise<void> => {
      const key = await findKey(url);
      if (isOver) return;
      line = dial(address, {
        ...handOn(events),
        closed,
        opened: () => {
          events.opened();
          for (const ms of CONTROL_KEY_LOOKS_MS) {
            cancels.push(clock.after(ms, () => void look(key)));
          }
        },
      }, { headers: { ...headers, ...key !== undefined && { [CONTROL_HEADER]: key } } });
    };
    void open();
    return {
      send: (message) => line?.send(message),
      close(code, reason) {
        if (line) return line.close(code, reason);
        if (isOver) return;
        isOver = true; // At once, or it would be dialled all the same.
        queueMicrotask(() => events.closed(code ?? 1000, reason ?? ""));
      },
    };
  };
}

/** What of a line is nobody's business here. */
function handOn(events: TransportEvents): Pick<TransportEvents, "text" | "binary"> {
  return {
    text: (message) => events.text(message),
    binary: (bytes) => events.binary(bytes),
  };
}
