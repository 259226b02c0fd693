/**
 * The WebSocket of an end of a channel without a network: records what the end does, and a test
 * says what the engine does.
 *
 * @module
 */
import type { EndSetup } from "../../sdk/typescript/channels/end.ts";
import type { ChannelSocket, ChannelSocketEvents } from "../../sdk/typescript/channels/socket.ts";

/** A socket that records. */
export class FakeChannelSocket implements ChannelSocket {
  readonly url: string;
  readonly events: ChannelSocketEvents;
  readonly sent: (string | Uint8Array)[] = [];
  isPaused = false;
  isTerminated = false;
  /** How the end finished. */
  finished: { code: number; reason: string } | undefined;
  /** Whether each message that is sent waits for {@linkcode FakeChannelSocket.drain}. */
  isSlow = false;
  #drain: (() => void) | undefined;

  constructor(url: string, events: ChannelSocketEvents) {
    this.url = url;
    this.events = events;
  }

  send(data: string | Uint8Array): Promise<void> | undefined {
    this.sent.push(typeof data === "string" ? data : data.slice());
    return this.isSlow ? new Promise((resolve) => this.#drain = resolve) : undefined;
  }

  /** What was sent last has left. */
  drain(): void {
    this.#drain?.();
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  finish(code: number, reason: string): void {
    this.finished = { code, reason };
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

/** What ends of channels work with, and the sockets that they open, which open at once. */
export function fakeEnds(isSilent = false): { setup: EndSetup; sockets: FakeChannelSocket[] } {
  const sockets: FakeChannelSocket[] = [];
  const setup: EndSetup = {
    url: "ws://engine:1",
    open: (url, events) => {
      const socket = new FakeChannelSocket(url, events);
      sockets.push(socket);
      if (!isSilent) queueMicrotask(() => events.opened());
      return socket;
    },
    opened() {},
    closed() {},
  };
  return { setup, sockets };
}

/** Runs all microtasks that wait. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
