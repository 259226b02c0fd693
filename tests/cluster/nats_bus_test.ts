/**
 * The bus on a real nats-server: messages, requests, and what happens when the server is gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { NatsBus } from "../../engine/cluster/nats_bus.ts";
import type { BusAnswer } from "../../engine/cluster/transport.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { ClusterSettings } from "../../engine/ports/config.ts";
import { Certificates, findOpenssl } from "../fakes/certificates.ts";
import { until } from "../fakes/until.ts";
import { startNats, withoutNats } from "./servers.ts";

const SETTINGS: ClusterSettings = {
  name: "test",
  nats: [],
  insecure: false,
  engine_name: "a",
  log: "none",
  keeper: true,
  copies: 3,
  require_sync: true,
  monitor: [],
  far_calls: 16,
};

function open(nats: readonly string[], identity: Partial<ClusterSettings> = {}) {
  const lines: string[] = [];
  const print = (text: string): void => void lines.push(text);
  const log = { debug: print, info: print, warn: print, error: print };
  const bus = new NatsBus({
    settings: { ...SETTINGS, nats, ...identity },
    clock: systemClock,
    log,
  });
  bus.start();
  const ask = (subject: string, timeout_ms: number): Promise<BusAnswer> =>
    new Promise((resolve) => bus.request(subject, new Uint8Array([1]), timeout_ms, resolve));
  return { bus, lines, ask };
}

const hasOpenssl = await findOpenssl("tests of NATS with TLS");
const options = { ignore: withoutNats, sanitizeOps: false, sanitizeResources: false };

Deno.test("messages and requests pass a nats-server, in order", options, async () => {
  await using nats = await startNats({ jetstream: false });
  const [one, other] = [open(nats.urls), open(nats.urls)];
  await Promise.all([one.bus.connection(), other.bus.connection()]);
  const heard: number[] = [];
  other.bus.subscribe("E.test.to.x.*", ({ data, subject, respond: _ }) => {
    assert.equal(subject, "E.test.to.x.y");
    heard.push(data[0]!);
  });
  other.bus.subscribe("E.test.ask", (message) => message.respond(message.data));
  other.bus.subscribe("E.test.silent", () => {});
  await other.bus.flush();

  for (let i = 0; i < 100; i++) one.bus.publish("E.test.to.x.y", new Uint8Array([i]));
  const answer = await one.ask("E.test.ask", 5_000);

  assert.deepEqual(heard, [...Array(100).keys()]);
  assert.deepEqual(answer, { state: "answered", data: new Uint8Array([1]) });
  assert.deepEqual(await one.ask("E.test.unknown", 5_000), { state: "no_responders" });
  assert.deepEqual(await one.ask("E.test.silent", 50), { state: "timeout" });
  assert.match(one.bus.server!, /127\.0\.0\.1/);
  for (const { bus } of [one, other]) await bus[Symbol.asyncDispose]();
  assert.deepEqual(await one.ask("E.test.ask", 50), { state: "away" });
});

Deno.test(
  "a bus starts while NATS cannot be reached, and notices when it is lost and back",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    await nats.nodes[0]!.kill();
    const { bus, lines, ask } = open(nats.urls);
    const changes: boolean[] = [];
    bus.onStatus((isConnected) => changes.push(isConnected));
    let heard = 0;
    bus.subscribe("E.test.hello", () => heard++);
    bus.publish("E.test.hello", new Uint8Array(1)); // Is dropped.
    await until(() => lines.includes("NATS cannot be reached; trying again"));
    assert.deepEqual(await ask("E.test.hello", 50), { state: "away" });

    await nats.nodes[0]!.start();
    await until(() => bus.isConnected);
    await nats.nodes[0]!.kill();
    await until(() => !bus.isConnected);
    await nats.nodes[0]!.start();
    await until(() => bus.isConnected);
    bus.publish("E.test.hello", new Uint8Array(1));
    await until(() => heard > 0);

    assert.equal(heard, 1);
    assert.deepEqual(changes, [true, false, true]);
    await bus[Symbol.asyncDispose]();
  },
);

Deno.test("a bus identifies itself, and one that does not is refused", options, async () => {
  const [user, password] = ["engine", "a-secret-of-nats"];
  const more = `authorization { user: ${user}, password: "${password}" }`;
  await using nats = await startNats({ jetstream: false, more });
  const stranger = open(nats.urls);
  const engine = open(nats.urls, { user, password });

  await engine.bus.connection();
  await until(() => stranger.lines.includes("NATS cannot be reached; trying again"));

  assert.equal(stranger.bus.isConnected, false);
  for (const { bus } of [stranger, engine]) await bus[Symbol.asyncDispose]();
});

Deno.test("a bus speaks TLS, and trusts only the authority that it was given", {
  ...options,
  ignore: withoutNats || !hasOpenssl,
}, async () => {
  await using files = await Certificates.make();
  const [cert, key] = [files.path("cert.pem"), files.path("key.pem")];
  const more = `tls { cert_file: "${cert}", key_file: "${key}" }`;
  await using nats = await startNats({ jetstream: false, more });
  const addresses = nats.urls.map((url) => url.replace("nats://", "tls://"));
  const stranger = open(addresses);
  const engine = open(addresses, { tls: { ca: files.path("ca.pem") } });

  await engine.bus.connection();
  await until(() => stranger.lines.includes("NATS cannot be reached; trying again"));

  assert.equal(stranger.bus.isConnected, false);
  for (const { bus } of [stranger, engine]) await bus[Symbol.asyncDispose]();
});
