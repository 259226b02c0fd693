import assert from "node:assert/strict";
import {
  allowManifest,
  containedFolders,
  type ContainmentRequest,
  pinContainment,
} from "./containment.ts";

const IN_VM: ContainmentRequest = {
  name: "w",
  path: "/p/w",
  isolation: "microvm",
  network: "engine",
  resources: { cpus: 2, memory_mb: 512 },
  replicas: 2,
  configured: [],
};
const IN_PROCESS: ContainmentRequest = { ...IN_VM, isolation: "process" };

async function setup() {
  const data = await Deno.makeTempDir();
  const pin = (request: ContainmentRequest) => pinContainment(data, request);
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

  await there.pin({ ...IN_PROCESS, configured: ["isolation"] });

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

Deno.test("pinContainment() refuses more of the machine that only the manifest asks for later", async () => {
  await using there = await setup();
  await there.pin(IN_VM);
  const refused = (more: Partial<ContainmentRequest>, message: RegExp) =>
    assert.rejects(there.pin({ ...IN_VM, ...more }), { code: "isolation_unavailable", message });

  await refused(
    { resources: { cpus: 64, memory_mb: 512 } },
    /asks for 64 processors instead of 2;/,
  );
  await refused(
    { resources: { cpus: 2, memory_mb: 9_000 } },
    /asks for 9000 MiB of memory instead of 512;/,
  );
  await refused(
    { replicas: 64 },
    /asks for 64 replicas instead of 2; to allow that: engine worker add \/p\/w$/,
  );
  await there.pin(IN_VM);
});

Deno.test("pinContainment() lets a worker take less and as much as before again", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_VM, resources: { cpus: 1, memory_mb: 128 }, replicas: 1 });
  await there.pin(IN_VM);
});

Deno.test("pinContainment() takes replicas of config.yaml for a person's request", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_VM, replicas: 5, configured: ["replicas"] });

  await there.pin({ ...IN_VM, replicas: 5 });
  await assert.rejects(there.pin({ ...IN_VM, replicas: 6 }));
});

Deno.test("pinContainment() holds a worker by its directory, whatever it calls itself", async () => {
  await using there = await setup();
  const real = `${there.data}/w`;
  await Deno.mkdir(real);
  await Deno.symlink(real, `${there.data}/alias`);
  await there.pin({ ...IN_VM, path: real });

  await assert.rejects(there.pin({ ...IN_PROCESS, name: "other", path: real }));
  await assert.rejects(there.pin({ ...IN_PROCESS, name: "other", path: `${there.data}/alias` }));
});

Deno.test("allowManifest() lets network and amounts of the manifest count, not its isolation", async () => {
  await using there = await setup();
  const more = {
    ...IN_VM,
    network: "full",
    resources: { cpus: 4, memory_mb: 1_024 },
    replicas: 9,
  } as const;
  await allowManifest(there.data, "/p/w", more);
  await there.pin(IN_VM);
  await assert.rejects(there.pin(more));

  await allowManifest(there.data, "/p/w", more);

  await assert.rejects(there.pin(IN_PROCESS));
  await there.pin(more);
});

Deno.test("containedFolders() names what contained workers can write, and no more", async () => {
  await using there = await setup();
  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`]);
  await there.pin(IN_VM);
  await there.pin({ ...IN_VM, name: "v", path: "/p/v" });
  await there.pin({ ...IN_PROCESS, name: "u", path: "/p/u" });
  await there.pin({ ...IN_PROCESS, name: "v", path: "/p/v", configured: ["isolation"] });

  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`, "/p/w"]);
});
