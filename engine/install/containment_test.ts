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
    message: "Worker w was isolated so far, and its manifest, which it can write itself, now " +
      "asks for a plain process; to allow that: engine worker add /p/w --isolation process",
  });
  await assert.rejects(there.pin(IN_PROCESS), { code: "isolation_unavailable" });
  await there.pin(IN_VM);
});

Deno.test("pinContainment() removes the pin when config.yaml asks for a plain process", async () => {
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

Deno.test("pinContainment() tells workers of the same name apart by their directories", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_PROCESS, path: "/p/other" });
});

Deno.test("pinContainment() refuses more resources that only the manifest asks for later", async () => {
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

Deno.test("pinContainment() lets a worker ask for less, and later for as much as before", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_VM, resources: { cpus: 1, memory_mb: 128 }, replicas: 1 });
  await there.pin(IN_VM);
});

Deno.test("pinContainment() allows any number of replicas that config.yaml sets", async () => {
  await using there = await setup();
  await there.pin(IN_VM);

  await there.pin({ ...IN_VM, replicas: 5, configured: ["replicas"] });

  await there.pin({ ...IN_VM, replicas: 5 });
  await assert.rejects(there.pin({ ...IN_VM, replicas: 6 }));
});

Deno.test("pinContainment() pins a directory, independent of the worker's name", async () => {
  await using there = await setup();
  const real = `${there.data}/w`;
  await Deno.mkdir(real);
  await Deno.symlink(real, `${there.data}/alias`);
  await there.pin({ ...IN_VM, path: real });

  await assert.rejects(there.pin({ ...IN_PROCESS, name: "other", path: real }));
  await assert.rejects(there.pin({ ...IN_PROCESS, name: "other", path: `${there.data}/alias` }));
});

Deno.test("allowManifest() allows network and resources of the manifest, not its isolation", async () => {
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

Deno.test("containedFolders() lists folders that contained workers can write, and no others", async () => {
  await using there = await setup();
  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`]);
  await there.pin(IN_VM);
  await there.pin({ ...IN_VM, name: "v", path: "/p/v" });
  await there.pin({ ...IN_PROCESS, name: "u", path: "/p/u" });
  await there.pin({ ...IN_PROCESS, name: "v", path: "/p/v", configured: ["isolation"] });

  assert.deepEqual(await containedFolders(there.data), [`${there.data}/deps`, "/p/w"]);
});
