import assert from "node:assert/strict";
import { MemoryLogServer } from "../../../tests/cluster/memory_log.ts";
import { keepState } from "../../../tests/cluster/replicated_stores.ts";
import { put, textOf } from "../../../tests/fakes/fake_store.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { until } from "../../../tests/fakes/until.ts";
import type { ClusterSettings } from "../../ports/config.ts";
import { replaceState, restoreCluster } from "./restore.ts";

Deno.test("a restored backup takes the place of the state, and the keeper is refused", async () => {
  const server = new MemoryLogServer();
  await using first = await keepState(server.open());
  await put(first, ["kept"], textOf(200_000, 1));
  await put(first, ["gone later"], 1);
  const backup = `${first.view.path}.backup`;
  await first.file!.backup(backup);
  await put(first, ["after"], 1);
  await put(first, ["kept"], "changed");
  const key = server.openKey();
  await key.write("first", 0);

  using kv = await Deno.openKv(backup);
  await replaceState({ log: server.open(), key }, kv);

  assert.equal((await key.read())?.life, "");
  await assert.rejects(put(first, ["after"], 2), { code: "SET_ERROR" });
  await using second = await keepState(server.open());
  assert.equal((await second.get(["kept"]))?.value, textOf(200_000, 1));
  assert.equal(await second.get(["after"]), undefined);
  await put(second, ["after"], 3);
});

Deno.test("a restore that ended half-way keeps everyone from taking over until another one", async () => {
  const server = new MemoryLogServer();
  await using first = await keepState(server.open());
  await put(first, ["a"], 1);
  const backup = `${first.view.path}.backup`;
  await first.file!.backup(backup);
  using kv = await Deno.openKv(backup);
  const [log, key] = [server.open(), server.openKey()];
  const broken: typeof log.snapshot = () => Promise.reject(new Error("the command was ended"));

  const half = {
    ...log,
    end: () => log.end(),
    append: log.append.bind(log),
    snapshot: broken,
  } as typeof log;
  await assert.rejects(replaceState({ log: half, key }, kv), /the command was ended/);

  await assert.rejects(keepState(server.open()), { message: /is being restored/ });
  await replaceState({ log, key }, kv);
  await using second = await keepState(server.open());
  assert.equal((await second.get(["a"]))?.value, 1);
});

Deno.test("a restore says within seconds that NATS cannot be reached", async () => {
  await using state = await keepState(new MemoryLogServer().open());
  await put(state, ["a"], 1);
  const backup = `${state.view.path}.backup`;
  await state.file!.backup(backup);
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  closed.close();
  const address = `nats://127.0.0.1:${(closed.addr as Deno.NetAddr).port}`;
  const settings = { name: "c", nats: [address], engine_name: "a", log: "jetstream" };
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = { debug() {}, info() {}, error() {}, warn: (text: string) => void lines.push(text) };

  const restoring = restoreCluster(backup, {
    settings: settings as unknown as ClusterSettings,
    copy: `${backup}.copy`,
    clock,
    log,
  });
  const refused = assert.rejects(restoring, {
    code: "store_unavailable",
    message: new RegExp(`cannot be reached at ${address} .*nothing was restored`),
  });
  await until(() => lines.length > 0);
  clock.tick(10_000);
  await refused;
});
