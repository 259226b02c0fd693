/**
 * The console's end of a browser's WebSocket, in memory: what was sent, and how much of it the
 * browser has not read.
 *
 * @module
 */
import type { BrowserSocket } from "../../workers/console/outbox.ts";
import type { ConsoleMessage } from "../../workers/console/wire.ts";

/** See the top of this file. */
export class FakeBrowserSocket implements BrowserSocket {
  /** What a test says that the browser has not read. */
  bufferedAmount = 0;
  readyState = 1;
  /** The messages, in order. */
  readonly sent: ConsoleMessage[] = [];
  /** Code and reason, once it is closed. */
  closedWith: readonly [number, string] | undefined;
  /** Counts what is sent as unread. */
  isStalled = false;

  send(text: string): void {
    if (this.isStalled) this.bufferedAmount += text.length;
    this.sent.push(JSON.parse(text));
  }

  close(code: number, reason: string): void {
    this.readyState = 3;
    this.closedWith ??= [code, reason];
  }

  /** What was sent for an id. */
  about(id: number): ConsoleMessage[] {
    return this.sent.filter((message) => (message as { id?: number }).id === id);
  }
}
