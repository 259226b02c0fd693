/**
 * Clients of WebSockets at any engine: those of routes, and subscribers of streams.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";
import { startPair } from "./cluster_process.ts";
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
    await using pair = await startPair("engine-http", { nats: nats.urls });
    const { a, ports } = pair;
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

/** Follows a group; tries again until the engine that keeps the streams is there. */
async function follow(port: number, groupId: string): Promise<Client> {
  const client = await connect(`ws://127.0.0.1:${port}/`);
  const data = { subscriptionId: "s", streamName: "chat", groupId };
  client.socket.send(JSON.stringify({ type: "join", data }));
  await until(() => client.got.length > 0 || client.socket.readyState === WebSocket.CLOSED);
  return client.got.length > 0 ? client : await follow(port, groupId);
}

/** What happened, as `type data`. */
function eventsOf({ got }: Client): string[] {
  return got.map((text) => {
    const { event } = JSON.parse(text);
    return `${event.type} ${JSON.stringify(event.data)}`;
  });
}

Deno.test(
  "subscribers follow streams at any engine, also when their keeper dies",
  options,
  async () => {
    await using nats = await startNats();
    const settings = "    copies: 1\n    insecure: true\n";
    await using pair = await startPair("engine-stream", {
      nats: nats.urls,
      settings,
      log: "jetstream",
    });
    const { a, b, ports } = pair;
    const workers = [a.connect("one"), b.connect("two")];
    const change = (i: number, data: number): Promise<unknown> => {
      const payload = { stream_name: "chat", group_id: "room", item_id: "i", data };
      return workers[i]!.trigger({ function_id: "stream::set", payload });
    };
    for (const i of [0, 1]) await until(() => change(i, 0).then(() => true, () => false));

    const clients = [await follow(ports[0]!, "room"), await follow(ports[1]!, "room")];
    for (let n = 1; n <= 200; n++) await change(n % 2, n);
    const wanted = Array.from({ length: 200 }, (_, n) => `update ${n + 1}`);
    await until(() => clients.every(({ got }) => got.length >= 201));
    for (const client of clients) assert.deepEqual(eventsOf(client), ["sync [0]", ...wanted]);
    let counted = "";
    await until(async () => {
      const called = { function_id: "engine::stream::stats", payload: {} };
      const stats = await workers[1]!.trigger<unknown, Record<string, unknown>>(called);
      const { connections, subscriptions, streams } = stats;
      counted = JSON.stringify([connections, subscriptions, streams]);
      return counted === '[2,2,[{"stream_name":"chat","events":202,"subscriptions":2}]]';
    }, () => counted);

    const isKeeper = ({ stderr }: EngineProcess): boolean =>
      stderr.lastIndexOf("this engine keeps the state") >
        stderr.lastIndexOf("stops keeping the state");
    const [dead, left] = isKeeper(a) ? [0, 1] : [1, 0];
    const closed = new Promise<CloseEvent>((resolve) => clients[left]!.socket.onclose = resolve);
    await [a, b][dead]!.kill("SIGKILL");
    assert.equal((await closed).code, 1013);
    const again = await follow(ports[left]!, "room");
    await until(() => change(left, 1_000).then(() => true, () => false));
    await until(() => eventsOf(again).at(-1) === "update 1000");
    assert.equal(eventsOf(again)[0], "sync [200]");

    // The one that comes back serves without keeping.
    await [a, b][dead]!.start();
    const back = await follow(ports[dead]!, "room");
    await change(left, 2_000);
    await until(() => eventsOf(back).at(-1) === "update 2000");
    for (const { socket } of [...clients, again, back]) socket.close();
    await Promise.all(workers.map((worker) => worker.shutdown()));
  },
);
