/**
 * Dials with the runtime's own WebSocket, for commands that are over in a moment.
 *
 * The SDK's dialler loads the package `ws`, which takes longer than most calls: 45 ms of the 120
 * that `engine trigger` may take. This one pings nobody, so nothing here notices a machine that
 * went away without a word; lines that may stay for long are dialled as the SDK does. It also has
 * Nagle's algorithm on, which would hold the second frame of a turn back for 44 ms: so what a turn
 * says goes in one frame, where the engine agrees to that.
 *
 * @module
 */
import type { Dial } from "../mod.ts";

/** Several messages in a frame, one in a line. */
const BATCH_PROTOCOL = "engine.batch.v1";
/** As for the SDK: what goes beyond leaves alone, since an engine takes a batch as one message. */
const BATCH_CHARS_MAX = 64 * 1024;
/** An upgrade that is not answered by then has failed. */
const OPEN_MS = 10_000;

/** Opens a line that is not expected to stay. */
export const shortDial: Dial = (url, events, { headers = {} }) => {
  const socket = new WebSocket(url, { headers: { ...headers }, protocols: [BATCH_PROTOCOL] });
  let lines: string[] = [];
  let chars = 0;
  let turn: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  let problem = "no connection";
  const end = (code: number, reason: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    clearTimeout(turn);
    events.closed(code, reason);
  };
  const flush = (): void => {
    if (lines.length > 0 && socket.readyState === WebSocket.OPEN) socket.send(lines.join("\n"));
    clearTimeout(turn);
    lines = [];
    chars = 0;
  };
  const timer = setTimeout(() => {
    end(1006, `no answer within ${OPEN_MS} ms`);
    socket.close();
  }, OPEN_MS);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    clearTimeout(timer);
    problem = "";
    if (!isOver) events.opened();
  };
  socket.onmessage = ({ data }) => {
    if (isOver) return;
    if (typeof data === "string") {
      const isBatch = socket.protocol === BATCH_PROTOCOL;
      for (const line of isBatch ? data.split("\n") : [data]) if (line !== "") events.text(line);
    } else events.binary(new Uint8Array(data));
  };
  socket.onerror = (event) => problem = (event as ErrorEvent).message || problem;
  socket.onclose = ({ code, reason }) => end(code || 1006, reason || problem);
  return {
    send(message): void {
      if (isOver || socket.readyState !== WebSocket.OPEN) return;
      if (typeof message !== "string" || socket.protocol !== BATCH_PROTOCOL) {
        flush();
        return socket.send(message as string | Uint8Array<ArrayBuffer>);
      }
      if (chars + message.length > BATCH_CHARS_MAX) flush();
      if (lines.length === 0) turn = setTimeout(flush); // What is said until then, goes with it.
      lines.push(message);
      chars += message.length + 1;
    },
    close(code = 1000, reason = ""): void {
      flush();
      if (!isOver) socket.close(code, reason);
    },
  };
};
