/**
 * The files of `examples/cluster`: systemd takes the units, nats-server its configuration, the
 * engine its own, and the compose file holds together.
 *
 * @module
 */
import assert from "node:assert/strict";
import { parse } from "yaml";
import { loadConfig } from "../../engine/config/config.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { checkNats, withoutNats } from "./servers.ts";

const FOLDER = new URL("../../examples/cluster/", import.meta.url).pathname;
const VARIABLES = {
  NATS_NAME: "n1",
  NATS_PASSWORD: "a",
  NATS_ROUTE_PASSWORD: "b",
  NATS_ROUTES: '["nats-route://route:b@n1:6222", "nats-route://route:b@n2:6222"]',
  NATS_ADMIN_PASSWORD: "c",
};

async function analyze(...args: string[]): Promise<{ code: number; text: string }> {
  const command = new Deno.Command("systemd-analyze", { args, env: { NO_COLOR: "1" } });
  const { code, stdout, stderr } = await command.output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

const hasSystemd = Deno.build.os === "linux" && await analyze("--version").then(
  ({ code }) => code === 0,
  () => false,
);
if (!hasSystemd) console.log("skipped: systemd-analyze is not on this machine");

for (const name of ["engine.service", "nats.service"]) {
  Deno.test({
    name: `systemd accepts ${name}, and finds it well protected`,
    ignore: !hasSystemd,
    async fn() {
      const directory = await Deno.makeTempDir();
      const unit = `${directory}/${name}`;
      const text = await Deno.readTextFile(FOLDER + name);
      await Deno.writeTextFile(unit, text.replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"));

      const verified = await analyze("verify", "--man=no", unit);
      assert.equal(verified.code, 0, verified.text);
      assert.ok(!verified.text.includes(name), verified.text);
      const { text: security } = await analyze("security", "--offline=true", "--no-pager", unit);
      const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(security)?.[1]);
      assert.ok(exposure < 5, security);
      await Deno.remove(directory, { recursive: true });
    },
  });
}

Deno.test({
  name: "nats-server takes nats.conf, and asks for each password",
  ignore: withoutNats,
  async fn() {
    assert.match(await checkNats(`${FOLDER}nats.conf`, VARIABLES), /is valid/);
    for (const name of Object.keys(VARIABLES)) {
      const others = Object.entries(VARIABLES).filter(([key]) => key !== name);
      const text = await checkNats(`${FOLDER}nats.conf`, Object.fromEntries(others));
      assert.match(text, new RegExp(`variable reference for '${name}'`, "i"));
    }
  },
});

Deno.test("the engine takes config.yaml, and asks for the password of NATS", () => {
  const load = (variables: Record<string, string>) =>
    loadConfig(`${FOLDER}config.yaml`, builtinWorkers, variables);

  const { cluster } = load({ NATS_PASSWORD: "x", ENGINE_NAME: "a" }).engine;
  assert.deepEqual([cluster?.name, cluster?.engine_name, cluster?.log], ["shop", "a", "jetstream"]);
  assert.deepEqual([cluster?.copies, cluster?.require_sync], [3, true]);
  const log = "postgres://engine:x@postgres/engine";
  assert.equal(load({ NATS_PASSWORD: "x", CLUSTER_LOG: log }).engine.cluster?.log, log);
  assert.throws(() => load({}), /NATS_PASSWORD/);
});

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: readonly string[];
  readonly ports?: readonly string[];
}

Deno.test("compose.yaml has three nodes and three engines, whose files and volumes are there", async () => {
  const text = await Deno.readTextFile(`${FOLDER}compose.yaml`);
  const compose = parse(text, { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, null>;
  };
  const { services, volumes } = compose;

  assert.deepEqual(Object.keys(services), [
    ...["n1", "n2", "n3", "engine-a", "engine-b", "engine-c", "postgres"],
  ]);
  const ports = Object.values(services).flatMap((service) => service.ports ?? []);
  assert.equal(new Set(ports.map((port) => port.split(":")[0])).size, 3);
  for (const [name, service] of Object.entries(services)) {
    for (const other of service.depends_on ?? []) assert.ok(services[other], other);
    for (const volume of service.volumes ?? []) {
      const [from = ""] = volume.split(":");
      if (from.startsWith("./")) assert.ok((await Deno.stat(FOLDER + from)).isFile, volume);
      else assert.ok(from in volumes, volume);
    }
    if (/^n\d$/.test(name)) assert.equal(service.environment?.["NATS_NAME"], name);
    if (name.startsWith("engine")) {
      assert.equal(`engine-${service.environment?.["ENGINE_NAME"]}`, name);
      assert.deepEqual(service.depends_on, ["n1", "n2", "n3"]);
    }
  }
});
