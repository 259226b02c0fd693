import assert from "node:assert/strict";
import {
  allowNetwork,
  containedFolders,
  type ContainmentWish,
  pinContainment,
} from "./containment_pin.ts";

const IN_VM: ContainmentWish = {
  name: "w",
  path: "/p/w",
  isolation: "microvm",
  network: "engine",
  isConfigured: false,
};
const IN_PROCESS: ContainmentWish = { ...IN_VM, isolation: "process" };

async function setup() {
  const data = await Deno.makeTempDir();
  const pin = (wish: ContainmentWish) => pinContainment(data, wish);
  const remove = () => Deno.remove(data, { recursive: true });
  return { data, pin, [Symbol.asyncDispose]: remove };
}

Deno.test("pinContainment() refuses a plain process that only the manifest asks for later", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await assert.rejects(there.pin(IN_PROCESS), {
    code: "isolation_unavailable",
    message: "Worker w was kept apart so far, and its manifest, which it can write itself, now " +
      "asks for a plain process; to allow that: engine worker add /p/w --isolation process",
  });
  await assert.rejects(there.pin(IN_PROCESS), { code: "isolation_unavailable" });
  await there.pin(IN_VM);
});

Deno.test("pinContainment() lets config.yaml ask for a plain process, from then on for good", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_PROCESS, isConfigured: true });

  await there.pin(IN_PROCESS);
});

Deno.test("pinContainment() lets a worker be a plain process from the beginning", async () => {
  await using there = await setup();

  await there.pin(IN_PROCESS);
  await there.pin(IN_VM);
});

Deno.test("pinContainment() refuses a wider network that only the manifest asks for later", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await assert.rejects(there.pin({ ...IN_VM, network: "full" }), {
    code: "isolation_unavailable",
    message: /asks for the network; to allow that: engine worker add \/p\/w$/,
  });
});

Deno.test("pinContainment() lets the network be narrowed", async () => {
  await using there = await setup();
  await there.pin({ ...IN_VM, network: "full" });

  await there.pin(IN_VM);

  await assert.rejects(there.pin({ ...IN_VM, network: "full" }));
});

Deno.test("pinContainment() knows another worker of the same name by its directory", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_PROCESS, path: "/p/other" });
});

Deno.test("allowNetwork() lets the network of the manifest count, not its isolation", async () => {
  await using there = await setup();
  await allowNetwork(there.data, "w", "full");
  await there.pin(IN_VM);

  await allowNetwork(there.data, "w", "full");

  await assert.rejects(there.pin(IN_PROCESS));
  await there.pin({ ...IN_VM, network: "full" });
});

Deno.test("containedFolders() names what contained workers can write, and no more", async () => {
  await using there = await setup();
  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`]);
  await there.pin(IN_VM);
  await there.pin({ ...IN_VM, name: "v", path: "/p/v" });
  await there.pin({ ...IN_PROCESS, name: "u", path: "/p/u" });
  await there.pin({ ...IN_PROCESS, name: "v", path: "/p/v", isConfigured: true });

  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`, "/p/w"]);
});
