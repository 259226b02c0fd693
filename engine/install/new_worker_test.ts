import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Isolation, Launcher } from "../ports/launcher.ts";
import { type ContainmentWish, pinContainment } from "./containment_pin.ts";
import { checkNewWorker, defaultIsolation, type NewWorkerSurroundings } from "./new_worker.ts";

async function withManifest(more: string, check: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir();
  const manifest = `name: math\nruntime: { kind: python }\nscripts: { start: run }\n${more}`;
  await Deno.writeTextFile(`${path}/engine.worker.yaml`, manifest);
  await check(path);
  await Deno.remove(path, { recursive: true });
}

/** A launcher that starts nothing and notes what it was asked. */
function launcher(isolation: Isolation, check?: Launcher["check"]): Launcher {
  const start = () => Promise.reject(new Error("nothing is to be started"));
  return { isolation, start, ...check ? { check } : {} };
}

function around(check?: Launcher["check"]): NewWorkerSurroundings {
  const launchers = { process: launcher("process"), microvm: launcher("microvm", check) };
  return { platform: "linux", launchers, dataDirectory: "/nowhere/.engine" };
}

Deno.test("checkNewWorker() gives the name and how the worker would run", () =>
  withManifest("", async (path) => {
    const asked = await checkNewWorker({ path, isolation: "process" }, around());
    const usual = await checkNewWorker({ path }, around());
    const onMac = await checkNewWorker({ path }, { ...around(), platform: "darwin" });

    assert.deepEqual(asked, { name: "math", isolation: "process" });
    assert.deepEqual(usual, { name: "math", isolation: "microvm" });
    assert.deepEqual(onMac, asked);
  }));

Deno.test("checkNewWorker() takes the isolation of the manifest when nobody asks for one", () =>
  withManifest("isolation: process\n", async (path) => {
    const found = await checkNewWorker({ path }, around());
    const asked = await checkNewWorker({ path, isolation: "microvm" }, around());

    assert.deepEqual([found.isolation, asked.isolation], ["process", "microvm"]);
  }));

Deno.test("checkNewWorker() asks the launcher whether it could start the worker", () =>
  withManifest("", async (path) => {
    const asked: unknown[] = [];
    const check = (name: string, accel: string): Promise<void> => {
      asked.push([name, accel]);
      return Promise.resolve();
    };

    await checkNewWorker({ path }, around(check));
    await checkNewWorker({ path, accel: "tcg" }, around(check));
    await checkNewWorker({ path, accel: "tcg", isolation: "process" }, around(check));

    assert.deepEqual(asked, [["math", "auto"], ["math", "tcg"]]);
  }));

Deno.test("checkNewWorker() hands on why the launcher could not start it", () =>
  withManifest("", async (path) => {
    const refusal = new EngineError("isolation_unavailable", "KVM not accessible");
    const refusing = around(() => Promise.reject(refusal));

    await assert.rejects(checkNewWorker({ path }, refusing), refusal);
    await checkNewWorker({ path, isolation: "process" }, refusing);
  }));

Deno.test("checkNewWorker() refuses a microVM where there is no launcher for one", () =>
  withManifest("", async (path) => {
    const launchers = { process: launcher("process") };

    await assert.rejects(
      checkNewWorker({ path, isolation: "microvm" }, {
        ...around(),
        platform: "darwin",
        launchers,
      }),
      {
        code: "isolation_unavailable",
        message: "Worker math would run in a microVM, which only Linux can start; add it with " +
          "--isolation process, which runs it as a plain process without containment",
        details: { isolation: "microvm" },
      },
    );
  }));

Deno.test("checkNewWorker() refuses a microVM for a directory that holds the engine's files", () =>
  withManifest("", async (path) => {
    const dataDirectory = `${path}/.engine`;

    await assert.rejects(checkNewWorker({ path }, { ...around(), dataDirectory }), {
      code: "isolation_unavailable",
      message: `Worker math cannot run in a microVM: its directory is ${path}, which holds ` +
        `${dataDirectory}; move it, or run it with --isolation process, which contains nothing`,
    });
    await checkNewWorker({ path, isolation: "process" }, { ...around(), dataDirectory });
  }));

Deno.test("checkNewWorker() refuses a microVM for a directory that holds the command line's key", () =>
  withManifest("", async (path) => {
    const before = Deno.env.get("XDG_STATE_HOME");
    Deno.env.set("XDG_STATE_HOME", path);
    try {
      await assert.rejects(checkNewWorker({ path }, around()), {
        code: "isolation_unavailable",
        message: new RegExp(`which holds ${path}/engine;`),
      });
    } finally {
      if (before === undefined) Deno.env.delete("XDG_STATE_HOME");
      else Deno.env.set("XDG_STATE_HOME", before);
    }
  }));

Deno.test("checkNewWorker() takes a request for the worker as consent to its network", () =>
  withManifest("", async (path) => {
    const dataDirectory = await Deno.makeTempDir();
    const resources = { cpus: 1, memory_mb: 512 };
    const wish: Omit<ContainmentWish, "network"> = {
      name: "math",
      path,
      isolation: "microvm",
      resources,
      replicas: 1,
      configured: [],
    };
    await pinContainment(dataDirectory, { ...wish, network: "engine" });

    await checkNewWorker({ path }, { ...around(), dataDirectory });

    await pinContainment(dataDirectory, { ...wish, network: "full" });
    await Deno.remove(dataDirectory, { recursive: true });
  }));

Deno.test("checkNewWorker() refuses a directory without a usable manifest", async () => {
  const invalid = { code: "manifest_invalid" };

  await assert.rejects(checkNewWorker({ path: "/nowhere" }, around()), invalid);
  await withManifest(
    "naem: x\n",
    (path) => assert.rejects(checkNewWorker({ path }, around()), invalid),
  );
});

Deno.test("defaultIsolation() is a microVM on Linux only", () => {
  assert.equal(defaultIsolation("linux"), "microvm");
  assert.equal(defaultIsolation("darwin"), "process");
  assert.equal(defaultIsolation("windows"), "process");
});
