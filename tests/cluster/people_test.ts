/**
 * What people see of a cluster with the commands of one engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { until } from "../fakes/until.ts";
import { startEngine, untilCallable } from "./cluster_process.ts";
import { startNats, withoutNats } from "./servers.ts";

Deno.test({
  name: "commands at one engine show the others: status, functions, workers, top, why, doctor",
  ignore: withoutNats,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using nats = await startNats({ count: 3 });
    const settings = `    monitor: ${JSON.stringify(nats.monitors)}\n`;
    const options = { nats: nats.urls, log: "jetstream", settings };
    await using a = await startEngine("a", options);
    await using b = await startEngine("b", options);
    const [worker, caller] = [b.connect("shop"), a.connect("caller")];
    worker.registerFunction("shop::price", () => 7);
    await untilCallable(caller, "shop::price");
    const print = async (...args: string[]): Promise<string> => (await a.command(...args)).stdout;

    let status = "";
    await until(async () => {
      status = await print("cluster", "status");
      return /Applied: a message \d+, all; b message \d+, all/.test(status);
    }, () => status);
    assert.match(status, /^Cluster test: 2 engines, connected to NATS/);
    assert.match(status, /^[ab] \(keeper\)/m);
    assert.match(status, /^Log: JetStream, 3 copies/m);
    assert.match(await print("functions", "shop"), /^shop::price +b +b/m);
    const workers = await print("worker", "list");
    assert.match(workers, /^shop +b +connected/m);
    assert.doesNotMatch(workers, /^engine-http +b/m);
    assert.match(await print("top", "--once"), /^shop::price +b /m);
    const doctor = await print("doctor");
    for (const name of ["cluster", "keeper", "state log", "durability", "links"]) {
      assert.match(doctor, new RegExp(`^ok +${name} `, "m"));
    }

    const { stderr } = await a.command("trigger", "shop::price", "--verbose");
    const [, id = ""] = /engine why (\S+)/.exec(stderr) ?? [];
    const why = await print("why", id);
    assert.match(why, /^engine b ran it, the only replica$/m);
    assert.match(why, /^At engine b: shop ran it, the only replica$/m);
    await Promise.all([worker.shutdown(), caller.shutdown()]);
  },
});
