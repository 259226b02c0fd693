/**
 * The WebSocket of one end of a channel on a TCP connection of Deno, for an engine on this machine.
 *
 * The package `ws` takes 2 ms to connect and four times the CPU to send, since it stands on Deno's
 * copy of Node's streams. What is sent while a write is under way leaves with the next one.
 *
 * @module
 */
import { attempt, denoGlobal, type TcpStream } from "../platform.ts";
import { thrownText } from "../wire/errors.ts";
import { isLoopback } from "../wire/loopback.ts";
import { EngineFrames, FrameBuffer, OPCODE } from "./client_frames.ts";
import {
  type ChannelSocket,
  type ChannelSocketEvents,
  INBOUND_BYTES_MAX,
  shortReason,
  SOCKET_TIMES,
  type SocketTimes,
  UNSENT_BYTES_MAX,
} from "./socket.ts";

/** Longest head of the response to the upgrade. */
const HEAD_BYTES_MAX = 16 * 1024;
/** What RFC 6455 appends to the key of an upgrade. */
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES = 16;

const encoder = new TextEncoder();

/** Whether an address is one for {@linkcode openDenoSocket}. */
export function isForDeno(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "ws:" && isLoopback(hostname) && denoGlobal()?.connect !== undefined;
}

/** Opens an end of a channel of an engine on this machine. */
export function openDenoSocket(
  url: string,
  events: ChannelSocketEvents,
  times: SocketTimes = SOCKET_TIMES,
): ChannelSocket {
  return new DenoSocket(new URL(url), events, times);
}

class DenoSocket implements ChannelSocket {
  readonly #events: ChannelSocketEvents;
  readonly #times: SocketTimes;
  readonly #frames: EngineFrames;
  #stream: TcpStream | undefined;
  #state: "opening" | "open" | "finishing" | "over" = "opening";
  /** Frames that wait, and those that are being written. */
  #waiting = new FrameBuffer();
  #sent = new FrameBuffer();
  #isWriting = false;
  #isPaused = false;
  /** The end as the engine said it. */
  #end: { code: number; reason: string } | undefined;
  #problem = "";
  #silentMs = 0;
  /** Resolves when more may be sent. */
  #room: PromiseWithResolvers<void> | undefined;
  #wake: (() => void) | undefined;
  #openTimer: ReturnType<typeof setTimeout> | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;

  constructor(url: URL, events: ChannelSocketEvents, times: SocketTimes) {
    this.#events = events;
    this.#times = times;
    this.#frames = new EngineFrames({
      text: (text) => this.#events.message(text),
      binary: (bytes) => this.#events.message(bytes),
      ping: (payload) => this.#add(OPCODE.pong, payload),
      pong() {},
      closeFrame: (code, reason) => this.#closeFrame(code, reason),
      violation: (reason) => this.#lost(reason),
    }, INBOUND_BYTES_MAX);
    this.#openTimer = setTimeout(() => {
      this.#lost(`no answer within ${this.#times.openMs} ms`);
    }, this.#times.openMs);
    this.#run(url).catch((error) => this.#lost(this.#problem || thrownText(error)));
  }

  send(data: string | Uint8Array): Promise<void> | undefined {
    if (this.#state !== "open") return undefined;
    if (typeof data === "string") this.#add(OPCODE.text, encoder.encode(data));
    else this.#add(OPCODE.binary, data);
    if (this.#waiting.length <= UNSENT_BYTES_MAX) return undefined;
    // Also resolved when the connection ends; `closed` says so.
    return (this.#room ??= Promise.withResolvers()).promise;
  }

  pause(): void {
    this.#isPaused = true;
    this.#frames.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#silentMs = 0;
    this.#frames.resume();
    this.#wake?.();
  }

  finish(code: number, reason: string): void {
    if (this.#state === "opening") return this.#lost("ended");
    if (this.#state !== "open") return;
    this.#sendClose(code, shortReason(reason));
    this.#state = "finishing";
    this.resume(); // To read the engine's close frame.
  }

  terminate(): void {
    this.#lost("ended");
  }

  /** Connects, then reads until the connection ends. */
  async #run(url: URL): Promise<void> {
    const stream = await connect(url);
    if (this.#state === "over") return stream.close();
    this.#stream = stream;
    attempt(() => stream.setNoDelay(true));
    if (!await this.#upgrade(stream, url)) return;
    clearTimeout(this.#openTimer);
    this.#state = "open";
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
    for (;;) {
      this.#frames.read();
      while (this.#isPaused && !this.#isOver) {
        await new Promise<void>((resolve) => this.#wake = resolve);
        this.#frames.read();
      }
      if (this.#isOver) return;
      const count = await stream.read(this.#frames.room());
      if (count === null) return this.#lost("connection lost");
      this.#silentMs = 0;
      this.#frames.added(count);
    }
  }

  /** Sends the request and reads the response; what follows it is left to the frames. */
  async #upgrade(stream: TcpStream, url: URL): Promise<boolean> {
    const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(KEY_BYTES))));
    const accept = acceptOf(key);
    await writeAll(stream, upgradeRequest(url, key));
    const memory = new Uint8Array(HEAD_BYTES_MAX);
    for (let end = 0; end < HEAD_BYTES_MAX;) {
      const count = await stream.read(memory.subarray(end));
      if (count === null) break;
      end += count;
      const head = new TextDecoder("latin1").decode(memory.subarray(0, end));
      const headBytes = head.indexOf("\r\n\r\n") + 4;
      if (headBytes < 4) continue;
      const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? "";
      const accepted = /\r\nsec-websocket-accept: *(\S+)/i.exec(head)?.[1];
      if (status === "101" && accepted === await accept) {
        this.#frames.begin(memory.subarray(headBytes, end));
        return !this.#isOver;
      }
      this.#lost(status === "101" ? "the upgrade was not accepted" : `HTTP ${status}`);
      return false;
    }
    this.#lost("the response to the upgrade is not HTTP");
    return false;
  }

  get #isOver(): boolean {
    return this.#state === "over";
  }

  #add(opcode: number, payload: Uint8Array): void {
    this.#waiting.add(opcode, payload);
    if (this.#isWriting) return;
    this.#isWriting = true;
    // A connection that broke off is noticed by its reader, too.
    this.#write(this.#stream!).catch((error) => this.#lost(thrownText(error)));
  }

  async #write(stream: TcpStream): Promise<void> {
    while (this.#waiting.length > 0) {
      const frames = this.#waiting;
      this.#waiting = this.#sent;
      this.#sent = frames;
      this.#room?.resolve();
      this.#room = undefined;
      await writeAll(stream, frames.bytes());
      frames.clear();
    }
    this.#isWriting = false;
    if (this.#end) this.#over(this.#end.code, this.#end.reason);
  }

  #sendClose(code: number, reason: string): void {
    const payload = code === 1005 ? [] : [code >> 8, code & 255, ...encoder.encode(reason)];
    this.#add(OPCODE.close, Uint8Array.from(payload));
  }

  /** The engine has closed: it gets the own close frame behind all that was sent before. */
  #closeFrame(code: number, reason: string): void {
    this.#end = { code, reason };
    const isFinished = this.#state === "finishing";
    this.#state = "finishing";
    if (!isFinished) this.#sendClose(code, reason);
    if (!this.#isWriting) this.#over(code, reason);
  }

  /** Pings also while it does not read, so that the engine knows that this side lives. */
  #heartbeat(): void {
    if (this.#isPaused) this.#silentMs = 0;
    else this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) return this.#add(OPCODE.ping, new Uint8Array());
    this.#lost(`nothing received for ${this.#times.silenceMs} ms`);
  }

  #lost(reason: string): void {
    this.#over(this.#end?.code ?? 1006, this.#end?.reason ?? reason);
  }

  #over(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#state = "over";
    clearTimeout(this.#openTimer);
    clearInterval(this.#pingTimer);
    this.#frames.stop();
    attempt(() => this.#stream?.close());
    this.#room?.resolve();
    this.#wake?.();
    this.#events.closed(code, reason);
  }
}

/** Connects; `localhost` may have two addresses. */
async function connect({ hostname, port }: URL): Promise<TcpStream> {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const open = (hostname: string): Promise<TcpStream> => {
    return denoGlobal()!.connect!({ hostname, port: Number(port || 80) });
  };
  if (host !== "localhost") return await open(host);
  return await open("127.0.0.1").catch(() => open("::1"));
}

function upgradeRequest({ host, pathname, search }: URL, key: string): Uint8Array {
  const lines = [
    `GET ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
  ];
  return encoder.encode(`${lines.join("\r\n")}\r\n\r\n`);
}

/** What a server has to answer to the key. */
async function acceptOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", encoder.encode(key + KEY_SUFFIX));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

async function writeAll(stream: TcpStream, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await stream.write(at === 0 ? bytes : bytes.subarray(at));
  }
}
