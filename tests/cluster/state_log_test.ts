import { connect } from "@nats-io/transport-node";
import assert from "node:assert/strict";
import { openJetStreamLog } from "../../engine/cluster/jet_stream_log.ts";
import { openPostgresLog } from "../../engine/cluster/postgres_log.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { testStateLog } from "../contracts/state_log_contract.ts";
import { until } from "../fakes/until.ts";
import { keptLog } from "./kept_log.ts";
import { jetStreamLogs, postgresLogs } from "./logs.ts";
import { startNats, startPostgres, withoutNats, withoutPostgres } from "./servers.ts";

testStateLog("JetStreamLog with 1 copy", jetStreamLogs(1), withoutNats);
testStateLog("JetStreamLog with 3 copies", jetStreamLogs(3), withoutNats);
testStateLog("PostgresLog", postgresLogs(), withoutPostgres);

Deno.test({
  name: "JetStream without `sync_interval: always` is refused, and taken when insecure",
  ignore: withoutNats,
  async fn() {
    await using nats = await startNats({ sync: "default" });
    const line = await connect({ servers: [...nats.urls] });
    const log = keptLog();
    const { monitors } = nats;
    const setup = { line, cluster: "c", copies: 1, monitors, clock: systemClock, log };

    await assert.rejects(openJetStreamLog({ ...setup, insecure: false }), {
      code: "store_unavailable",
      message: /does not have `sync_interval: always`/,
    });
    await using open = await openJetStreamLog({ ...setup, insecure: true });

    assert.equal(await open.append(new Uint8Array(), 0), 1);
    assert.match(log.lines.join(), /warn NATS may lose state/);
    await line.close();
  },
});

Deno.test({
  name: "JetStream is taken while one of three nodes is down, not while two are",
  ignore: withoutNats,
  async fn() {
    await using nats = await startNats({ count: 3 });
    await nats.nodes[2]!.kill();
    const line = await connect({ servers: [...nats.urls] });
    const log = keptLog();
    const { monitors } = nats;
    const setup = { line, cluster: "c", copies: 3, monitors, clock: systemClock, log };

    await using open = await openJetStreamLog({ ...setup, insecure: false });
    assert.equal(await open.append(new Uint8Array(), 0), 1);
    assert.match(log.lines.join(), /unknown whether NATS syncs always.*does not answer/);

    await nats.nodes[1]!.kill();
    await assert.rejects(openJetStreamLog({ ...setup, insecure: false }), {
      code: "store_unavailable",
      message: /State cannot be kept.*does not answer/,
    });
    await line.close();
  },
});

Deno.test({
  name: "a log on JetStream gets more copies when it is opened with more",
  ignore: withoutNats,
  async fn() {
    await using nats = await startNats({ count: 3 });
    const line = await connect({ servers: [...nats.urls] });
    const { monitors } = nats;
    const setup = { line, cluster: "c", monitors, clock: systemClock, log: keptLog() };
    const open = (copies: number) => openJetStreamLog({ ...setup, copies, insecure: false });
    await using first = await open(1);
    await first.append(new Uint8Array([7]), 0);

    await using second = await open(3);

    assert.equal(await second.append(new Uint8Array([8]), 1), 2);
    const found: number[] = [];
    for await (const { bytes } of second.read(1)) found.push(bytes[0]!);
    assert.deepEqual(found, [7, 8]);
    await until(async () => {
      const nodes = monitors.map((at) => fetch(`${at}/jsz?streams=true`).then((it) => it.text()));
      return (await Promise.all(nodes)).every((text) => text.includes('"E_c_STATE"'));
    });
    await line.close();
  },
});

for (const setting of ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]) {
  Deno.test({
    name: `Postgres with ${setting} is refused, and taken when insecure`,
    ignore: withoutPostgres,
    async fn() {
      await using postgres = await startPostgres([setting]);
      const { url } = postgres;
      const log = keptLog();
      const setup = { url, cluster: "c", clock: systemClock, log };

      await assert.rejects(openPostgresLog({ ...setup, insecure: false }), {
        code: "store_unavailable",
        message: new RegExp(`${setting.split("=")[0]} is off`),
      });
      await using open = await openPostgresLog({ ...setup, insecure: true });

      assert.equal(await open.append(new Uint8Array(), 0), 1);
      assert.match(log.lines.join(), /warn Postgres may lose state/);
    },
  });
}
