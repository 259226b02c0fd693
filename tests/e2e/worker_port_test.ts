/**
 * The worker port as a whole, over sockets: workers, telemetry, pages, operators, on both transports.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CONTROL_HEADER, type ControlKey } from "../../engine/auth/control_key.ts";
import type { Router } from "../../engine/core/router.ts";
import { ChannelTable } from "../../engine/channels/channel_table.ts";
import { Pages } from "../../engine/transport/pages.ts";
import { TickBudget } from "../../engine/transport/tick_budget.ts";
import type { ConnectionEvents } from "../../engine/ports/connection.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { addressOf, openWorkerPort, reachable, workerUrl } from "../../engine/worker_port.ts";
import { defaultConfig } from "../../engine/config/config.ts";
import { type LogLine, recordingLog } from "../fakes/fake_http.ts";
import { OP, RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";

const { engine } = defaultConfig("/p", []);

function setup(transport: "raw" | "deno-serve", auth_token?: string) {
  const lines: LogLine[] = [];
  const log = recordingLog(lines);
  const peers: unknown[] = [];
  const frames: string[] = [];
  const router = {
    open: (_line: unknown, peer: unknown): ConnectionEvents => {
      peers.push(peer);
      return { text() {}, textBytes() {}, binary() {}, drained() {}, suspected() {}, closed() {} };
    },
  } as unknown as Router;
  const token = auth_token === undefined ? {} : { authToken: auth_token };
  const pages = new Pages({ clock: systemClock, log, isLoopback: true, ...token });
  pages.serve("/metrics", () => ({ status: 200, contentType: "text/plain", body: "up 1\n" }));
  const channels = new ChannelTable({ clock: systemClock, memory: UNLIMITED_MEMORY });
  const key = { matches: (said: string | null) => said === "k" } as unknown as ControlKey;
  const listener = openWorkerPort({
    settings: { ...engine, transport, port: 0, ...auth_token !== undefined && { auth_token } },
    clock: systemClock,
    log,
    router,
    telemetry: ({ kind, bytes }) => frames.push(kind + new TextDecoder().decode(bytes)),
    channels,
    memory: UNLIMITED_MEMORY,
    ticks: new TickBudget(),
    pages,
    key: () => key,
  });
  const end = async (): Promise<void> => {
    channels.close();
    await listener.close();
  };
  return { listener, peers, frames, channels, lines, [Symbol.asyncDispose]: end };
}

for (const transport of ["raw", "deno-serve"] as const) {
  Deno.test(`${transport}: the key of an end of a channel is its only credential`, async () => {
    await using it = setup(transport, "secret");
    const { writer, reader } = it.channels.create("w", 64);
    const [from, to] = await Promise.all([writer, reader].map((ref) => {
      const { channel_id, access_key, direction } = ref;
      const path = `/ws/channels/${channel_id}?key=${access_key}&dir=${direction}`;
      return RawWsClient.connect(it.listener.port, { path });
    }));
    using _from = from!;
    using _to = to!;

    await from!.text("no token");
    await from!.frame(OP.binary, Uint8Array.of(1, 2));
    await from!.close(1000, "stream_complete");

    assert.equal(await to!.nextText(), "no token");
    assert.deepEqual((await to!.next())?.payload, Uint8Array.of(1, 2));
    assert.deepEqual(await to!.nextClose(), { code: 1000, reason: "stream_complete" });
  });

  Deno.test(`${transport}: a connection at / is a worker's, with the key an operator's`, async () => {
    await using it = setup(transport);

    using _plain = await RawWsClient.connect(it.listener.port);
    using _operator = await RawWsClient.connect(it.listener.port, {
      headers: { [CONTROL_HEADER]: "k" },
    });

    await until(() => it.peers.length === 2, "both are in");
    const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
    assert.deepEqual(it.peers, [{ ...peer, operator: false }, { ...peer, operator: true }]);
  });

  Deno.test(`${transport}: what comes at /otel is telemetry, and no worker`, async () => {
    await using it = setup(transport);

    using client = await RawWsClient.connect(it.listener.port, { path: "/otel" });
    await client.frame(OP.binary, new TextEncoder().encode('LOGS{"resourceLogs":[]}'));

    await until(() => it.frames.length > 0, "the frame is there");
    assert.deepEqual(it.frames, ['LOGS{"resourceLogs":[]}']);
    assert.deepEqual(it.peers, []);
  });

  Deno.test(`${transport}: the log names a page that is refused, and the setting, once`, async () => {
    await using it = setup(transport);
    const shape = { headers: { origin: "https://shop.example" } };

    using _refused = await RawWsClient.connect(it.listener.port, shape);
    using _again = await RawWsClient.connect(it.listener.port, shape);

    const fields = { origin: '"https://shop.example"', setting: "engine.allowed_origins" };
    assert.deepEqual(it.lines.map((line) => line.fields), [fields]);
  });

  Deno.test(`${transport}: a page is served, to who has the token`, async () => {
    await using it = setup(transport, "secret");
    const url = `http://127.0.0.1:${it.listener.port}/metrics`;

    const refused = await fetch(url);
    const served = await fetch(url, { headers: { authorization: "Bearer secret" } });

    assert.equal(refused.status, 401);
    assert.match(await refused.text(), /token is missing or wrong/);
    assert.equal(await served.text(), "up 1\n");
  });
}

Deno.test("workers of this machine reach a port on all addresses over loopback", () => {
  const port = { port: 7, close: () => Promise.resolve() };

  assert.equal(addressOf({ ...port, hostname: "::1" }), "ws://[::1]:7");
  assert.equal(reachable({ ...port, hostname: "0.0.0.0" }).hostname, "127.0.0.1");
  assert.equal(workerUrl({ ...port, hostname: "::" }, undefined), "ws://127.0.0.1:7");
  assert.equal(
    workerUrl({ ...port, hostname: "10.0.0.7" }, "a b"),
    "ws://10.0.0.7:7?token=a%20b",
  );
});
