/**
 * Dials an engine with the control key of its user.
 *
 * An engine makes another key with every start and writes it a moment after it listens. So the key
 * is read for every attempt, and compared again for a while after; a connection that was opened
 * with an older key is closed, and the next one has the new key.
 *
 * @module
 */
import { dialPlatform } from "../../sdk/typescript/dial.ts";
import type { Dial, Transport, TransportEvents } from "../../sdk/typescript/wire/transport.ts";
import { CONTROL_HEADER, readControlKey } from "./control_key.ts";
import type { Clock } from "../ports/clock.ts";

/** Delays after connecting at which the control key is read again, in milliseconds. */
const CONTROL_KEY_LOOKS_MS: readonly number[] = [500, 2_000, 10_000];

/** Which engine, and how its key is found. */
export interface UserDialOptions {
  /** Address of the engine. */
  readonly url: string;
  readonly clock: Clock;
  /** Default: reads the file that the engine wrote for this user. */
  readonly findKey?: (url: string) => Promise<string | undefined>;
  /** Default: a WebSocket. */
  readonly dial?: Dial;
}

/** A dialler that sends the key of the engine at `url`. */
export function dialAsUser(options: UserDialOptions): Dial {
  const { url, clock, findKey = readControlKey, dial = dialPlatform } = options;
  return (address, events, { headers }) => {
    let transport: Transport | undefined;
    let isOver = false;
    const cancels: (() => void)[] = [];
    const closed: TransportEvents["closed"] = (code, reason) => {
      isOver = true;
      for (const cancel of cancels) cancel();
      events.closed(code, reason);
    };
    const compare = async (used: string | undefined): Promise<void> => {
      if (await findKey(url) !== used && !isOver) {
        transport?.close(1000, "the engine has a new key");
      }
    };
    const open = async (): Promise<void> => {
      const key = await findKey(url);
      if (isOver) return;
      transport = dial(address, {
        ...messageEvents(events),
        closed,
        opened: () => {
          events.opened();
          for (const ms of CONTROL_KEY_LOOKS_MS) {
            cancels.push(clock.after(ms, () => void compare(key)));
          }
        },
      }, { headers: { ...headers, ...key !== undefined && { [CONTROL_HEADER]: key } } });
    };
    void open();
    return {
      send: (message) => transport?.send(message),
      close(code, reason) {
        if (transport) return transport.close(code, reason);
        if (isOver) return;
        isOver = true; // Now, or open() would still dial.
        queueMicrotask(() => events.closed(code ?? 1000, reason ?? ""));
      },
    };
  };
}

/** The events that are passed on as they are. */
function messageEvents(events: TransportEvents): Pick<TransportEvents, "text" | "binary"> {
  return {
    text: (message) => events.text(message),
    binary: (bytes) => events.binary(bytes),
  };
}
