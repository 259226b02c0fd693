/**
 * Logs of the state on real servers, each of a cluster of its own, behind a proxy that loses answers
 * when a test says so.
 *
 * @module
 */
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { openJetStreamKey, openJetStreamLog } from "../../engine/cluster/jet_stream_log.ts";
import { openPostgresKey, openPostgresLog } from "../../engine/cluster/postgres_log.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { LogUnderTest } from "../contracts/state_log_contract.ts";
import { keptLog } from "./kept_log.ts";
import { Proxy } from "../torture/proxy.ts";
import {
  type Nats,
  type Postgres,
  startNats,
  startPostgres,
  withoutNats,
  withoutPostgres,
} from "./servers.ts";

/** Clusters on one NATS, which runs as long as the tests of the file. */
export function jetStreamLogs(count: 1 | 3): () => Promise<LogUnderTest> {
  let nats: Nats | undefined;
  if (!withoutNats) {
    Deno.test.beforeAll(async () => {
      nats = await startNats({ count });
    });
    Deno.test.afterAll(async () => await nats?.[Symbol.asyncDispose]());
  }
  return () => Promise.resolve(jetStreamLog(nats!, count));
}

function jetStreamLog(nats: Nats, copies: 1 | 3): LogUnderTest {
  const cluster = `t${crypto.randomUUID().slice(0, 8)}`;
  const proxy = new Proxy(nats.nodes[0]!.port);
  const lines: NatsConnection[] = [];
  const setup = async () => {
    const line = await connect({
      servers: `nats://127.0.0.1:${proxy.port}`,
      ignoreClusterUpdates: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 10,
    });
    lines.push(line);
    const { monitors } = nats;
    return { line, cluster, copies, monitors, insecure: false, clock: systemClock, log: keptLog() };
  };
  return {
    open: async () => openJetStreamLog(await setup()),
    openKey: async () => openJetStreamKey(await setup()),
    loseAnswers: (areLost) => void (proxy.mode = areLost ? "mute" : "pass"),
    async [Symbol.asyncDispose]() {
      await Promise.all(lines.map((line) => line.close()));
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** Clusters on one Postgres, which runs as long as the tests of the file. */
export function postgresLogs(): () => Promise<LogUnderTest> {
  let postgres: Postgres | undefined;
  if (!withoutPostgres) {
    Deno.test.beforeAll(async () => {
      postgres = await startPostgres();
    });
    Deno.test.afterAll(async () => await postgres?.[Symbol.asyncDispose]());
  }
  return () => {
    const { port, url } = postgres!;
    const cluster = `t${crypto.randomUUID().slice(0, 8)}`;
    const proxy = new Proxy(port);
    const proxied = url.replace(`:${port}/`, `:${proxy.port}/`);
    const setup = { url: proxied, cluster, insecure: false, clock: systemClock, log: keptLog() };
    return Promise.resolve({
      open: () => openPostgresLog(setup),
      openKey: () => Promise.resolve(openPostgresKey(proxied, cluster)),
      loseAnswers: (areLost) => void (proxy.mode = areLost ? "mute" : "pass"),
      [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
    });
  };
}
