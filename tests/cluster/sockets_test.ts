/**
 * Clients of WebSockets at any engine: those of routes, and subscribers of streams.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type EngineProcess, freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";
import { startEngine } from "./cluster_process.ts";
import { startNats, withoutNats } from "./servers.ts";

const options = { ignore: withoutNats, sanitizeOps: false, sanitizeResources: false };

/** A client, and what it got. */
interface Client {
  readonly socket: WebSocket;
  readonly got: string[];
}

/** Connects; tries again while the address refuses. */
async function connect(url: string): Promise<Client> {
  let client: Client | undefined;
  await until(() => {
    const socket = new WebSocket(url);
    const got: string[] = [];
    socket.onmessage = ({ data }) => got.push(data);
    return new Promise<boolean>((resolve) => {
      socket.onopen = () => {
        client = { socket, got };
        resolve(true);
      };
      socket.onerror = () => resolve(false);
    });
  }, `${url} cannot be reached`);
  return client!;
}

Deno.test(
  "every engine serves a WebSocket route, and reaches clients of others",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    const ports = [freePort(), freePort()];
    const [a, b] = await Promise.all(ports.map((port, i) => {
      const workers = `  - name: engine-http\n    config: { port: ${port} }\n`;
      return startEngine("ab"[i]!, { nats: nats.urls, workers });
    })) as [EngineProcess, EngineProcess];
    await using _a = a;
    await using _b = b;
    const worker = a.connect("w");
    const events: { event: string; connection_id: string; data?: string }[] = [];
    worker.registerFunction("w::chat", (event: typeof events[number]) => {
      events.push(event);
      return event.event === "message" ? `you said ${event.data}` : undefined;
    });
    worker.registerTrigger({
      type: "websocket",
      function_id: "w::chat",
      config: { api_path: "/chat", close_function_id: "w::chat" },
    });
    const clients = await Promise.all(ports.map((port) => connect(`ws://127.0.0.1:${port}/chat`)));
    const send = (payload: unknown): Promise<unknown> =>
      worker.trigger({ function_id: "websocket::send", payload });

    for (const { socket, got } of clients) {
      socket.send("hi");
      await until(() => got.includes("you said hi"));
    }
    const ids = events.map((event) => event.connection_id);
    for (const [i, connection_id] of ids.entries()) {
      assert.deepEqual(await send({ connection_id, data: `to ${i}` }), { reached: 1, closed: 0 });
      await until(() => clients[i]!.got.includes(`to ${i}`));
    }
    assert.deepEqual(await send({ api_path: "/chat", data: "all" }), { reached: 2, closed: 0 });
    await until(() => clients.every(({ got }) => got.includes("all")));

    clients[1]!.socket.close();
    await until(() =>
      events.some(({ event, connection_id }) => event === "close" && connection_id === ids[1])
    );
    await assert.rejects(send({ connection_id: ids[1], data: "late" }), {
      code: "connection_not_found",
    });
    clients[0]!.socket.close();
    await worker.shutdown();
  },
);
