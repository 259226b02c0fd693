/**
 * WebSocket servers for tests of clients: one that a test scripts, one that never answers, and a real
 * router behind a real port.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { Router } from "../../engine/core/router.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { type Listener, MESSAGE_BYTES_MAX } from "../../engine/ports/connection.ts";
import { ChannelTable } from "../../engine/channels/channel_table.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { makeGate } from "../../engine/transport/gate.ts";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { LAUNCH_ID_HEADER } from "../../sdk/typescript/wire/protocol.ts";

/** What a scripted server does with each connection. */
export interface Script {
  /** Answers an upgrade with this status instead of taking it. */
  readonly refuse?: number;
  /** Selects this subprotocol, if it is offered. */
  readonly protocol?: string;
  /** A connection is open. */
  opened?(socket: WebSocket): void;
  /** A message came; without this it is sent back as it is. */
  message?(socket: WebSocket, data: string | ArrayBuffer): void;
}

/** A server on a free port of this machine. */
export interface SocketServer extends AsyncDisposable {
  /** Its address, such as `ws://127.0.0.1:40000`. */
  readonly url: string;
  /** The upgrade requests, in order. */
  readonly requests: { readonly url: URL; readonly headers: Headers }[];
  /** The close codes of connections, in order. */
  readonly closeCodes: number[];
}

/** Starts a server that follows a script. */
export function serveSockets(script: Script = {}): SocketServer {
  const requests: { url: URL; headers: Headers }[] = [];
  const closeCodes: number[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    requests.push({ url: new URL(request.url), headers: new Headers(request.headers) });
    if (script.refuse) return new Response("no", { status: script.refuse });
    const offered = request.headers.get("sec-websocket-protocol");
    const { socket, response } = Deno.upgradeWebSocket(request, {
      idleTimeout: 0,
      ...script.protocol && offered === script.protocol ? { protocol: script.protocol } : {},
    });
    socket.binaryType = "arraybuffer";
    socket.onopen = () => script.opened?.(socket);
    socket.onmessage = ({ data }) =>
      script.message ? script.message(socket, data) : socket.send(data);
    socket.onclose = ({ code }) => closeCodes.push(code);
    socket.onerror = () => {}; // The close that follows says it.
    return response;
  });
  const url = `ws://127.0.0.1:${server.addr.port}`;
  return { url, requests, closeCodes, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** A peer that takes connections and then is silent: before the upgrade, or right after it. */
export function serveSilence(silent: "before" | "after", protocol?: string): SocketServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.TcpConn[] = [];
  const accept = async (): Promise<void> => {
    for await (const connection of listener) {
      connections.push(connection);
      if (silent === "after") await upgrade(connection, protocol);
    }
  };
  const accepting = accept().catch(() => {}); // Ends with the listener.
  const { port } = listener.addr as Deno.NetAddr;
  return {
    url: `ws://127.0.0.1:${port}`,
    requests: [],
    closeCodes: [],
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of connections) connection.close();
      await accepting;
    },
  };
}

/**
 * Answers the upgrade of a connection, and selects a subprotocol if one is given; `frames` leave
 * with the answer.
 */
export async function upgrade(
  connection: Deno.TcpConn,
  protocol?: string,
  frames: Uint8Array = new Uint8Array(),
): Promise<void> {
  const buffer = new Uint8Array(4_096);
  const read = await connection.read(buffer);
  const request = new TextDecoder().decode(buffer.subarray(0, read ?? 0));
  const key = /sec-websocket-key: *(\S+)/i.exec(request)?.[1] ?? "";
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${accept}`,
    ...protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`],
  ];
  const head = new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`);
  await connection.write(Uint8Array.from([...head, ...frames]));
}

/** What a test may set. */
export interface SocketEngineOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** Default: no token is required. */
  readonly authToken?: string;
  /** Default: loopback ones only. */
  readonly allowedOrigins?: string[];
}

/** An engine for one test; workers reach it over sockets. */
export class SocketEngine implements AsyncDisposable {
  readonly router: Router;
  readonly channels: ChannelTable = new ChannelTable({
    clock: systemClock,
    memory: UNLIMITED_MEMORY,
  });
  readonly #listener: Listener;

  /** Listens at once. */
  constructor({ port = 0, authToken = "", allowedOrigins = [] }: SocketEngineOptions = {}) {
    this.router = new Router({
      clock: systemClock,
      schemas: { compile: () => () => [] },
      newId: () => crypto.randomUUID(),
      report() {},
      settings: {
        invocation_timeout_ms: 600_000,
        validate_payloads: false,
        max_inflight_calls_per_worker: 10_000,
        max_inflight_bytes_per_worker: 256 * 1024 * 1024,
      },
    });
    const gate = makeGate({
      authToken,
      allowedOrigins,
      maxConnections: 100,
      accept: ({ address, headers }) => {
        const launch_id = headers.get(LAUNCH_ID_HEADER);
        return (connection) => this.router.open(connection, { address, launch_id, builtin: null });
      },
      claimChannel: (upgrade) => this.channels.claim(upgrade),
      acceptTelemetry: () => () => ({
        text() {},
        textBytes() {},
        binary() {},
        drained() {},
        suspected() {},
        closed() {},
      }),
    });
    const bounds = { maxMessageBytes: MESSAGE_BYTES_MAX, maxQueuedBytes: MESSAGE_BYTES_MAX };
    this.#listener = listenRaw({ hostname: "127.0.0.1", port, ...bounds }, gate);
  }

  /** The port it listens on. */
  get port(): number {
    return this.#listener.port;
  }

  /** Such as `ws://127.0.0.1:40000`. */
  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.channels.close();
    await this.#listener.close();
    this.router.close();
  }
}
