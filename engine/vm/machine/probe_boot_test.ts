import assert from "node:assert/strict";
import { temporaryFolder } from "../../../tests/fakes/fake_vm.ts";
import { vmHere } from "../../../tests/fakes/vm_project.ts";
import { until } from "../../../tests/fakes/until.ts";
import { findProgram } from "../../process/programs.ts";
import type { VmHost } from "./host_tools.ts";
import { bootProbe, type ProbeRequest } from "./probe_boot.ts";

const busybox = await findProgram("busybox", Deno.env.get("PATH") ?? "");
const ignore = busybox === undefined;
if (ignore) console.error("Skipping tests of the probe boot: busybox is not installed");

/** A probe boot with a shell script as QEMU, which writes its process id into a file. */
async function setup(script: string, more: Partial<ProbeRequest> = {}) {
  const folder = await temporaryFolder();
  const qemu = `${folder.path}/qemu`;
  const pidFile = `${folder.path}/pid`;
  await Deno.writeTextFile(qemu, `#!/bin/sh\necho $$ > ${pidFile}\n${script}\n`, { mode: 0o755 });
  const host: VmHost = {
    image: { version: "6.1", kernel: `${folder.path}/vmlinux`, initrd: `${folder.path}/initrd` },
    qemu,
    busybox: busybox ?? "",
  };
  const request: ProbeRequest = {
    host,
    accelerator: "kvm",
    until: "loaded",
    limitMs: 30_000,
    ...more,
  };
  const isRunning = async () => {
    const pid = (await Deno.readTextFile(pidFile)).trim();
    return (await Deno.stat(`/proc/${pid}`).catch(() => undefined)) !== undefined;
  };
  return { ...folder, request, isRunning, pidFile };
}

Deno.test({
  name: "bootProbe() ends a guest as soon as it has reached its goal",
  ignore,
  async fn() {
    const script = "echo engine-probe: runs; while :; do sleep 0.1; done";
    await using at = await setup(script, { until: "runs" });

    const { outcome, afterMs, tail } = await bootProbe(at.request);

    assert.equal(outcome, "reached");
    assert.deepEqual(tail, ["engine-probe: runs"]);
    assert.ok(afterMs < 30_000);
    assert.equal(await at.isRunning(), false);
  },
});

Deno.test({
  name: "bootProbe() kills a guest that spins and ignores signals after the limit",
  ignore,
  async fn() {
    const script = "trap '' TERM INT HUP; echo booting; while :; do :; done";
    await using at = await setup(script, { limitMs: 1_500 });

    const { outcome, tail } = await bootProbe(at.request);

    assert.equal(outcome, "timeout");
    assert.deepEqual(tail, ["booting"]);
    assert.equal(await at.isRunning(), false);
  },
});

Deno.test({
  name: "bootProbe() returns the last lines of a guest that ends early",
  ignore,
  async fn() {
    const script =
      'for i in 1 2 3 4 5 6 7 8 9 10; do echo "line $i"; done\necho broken >&2; exit 1';
    await using at = await setup(script);

    const { outcome, tail } = await bootProbe(at.request);

    assert.equal(outcome, "ended");
    assert.equal(tail.length, 8);
    assert.ok(tail.includes("broken"));
    assert.ok(tail.includes("line 10"));
  },
});

Deno.test({
  name: "bootProbe() counts a guest that reached its goal and exited as reached",
  ignore,
  async fn() {
    await using at = await setup("echo engine-probe: runs; echo engine-probe: modules loaded");

    assert.equal((await bootProbe(at.request)).outcome, "reached");
  },
});

Deno.test("bootProbe() returns the reason when a program is missing", async () => {
  await using at = await setup("exit 0");
  const host = { ...at.request.host, busybox: `${at.path}/none` };

  const { outcome, tail } = await bootProbe({ ...at.request, host });

  assert.equal(outcome, "ended");
  assert.match(tail.join(), /No such file|Failed to spawn/);
});

Deno.test({
  name: "a probe boot does not outlive a killed engine",
  ignore,
  async fn() {
    const script = "trap '' TERM INT HUP; while :; do :; done";
    await using at = await setup(script, { limitMs: 1_500 });
    const url = import.meta.resolve("./probe_boot.ts");
    const code = `const { bootProbe } = await import(${JSON.stringify(url)});
      await bootProbe(${JSON.stringify(at.request)});`;
    const engine = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "-"],
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const writer = engine.stdin.getWriter();
    await writer.write(new TextEncoder().encode(code));
    await writer.close();
    await until(() => Deno.readTextFile(at.pidFile).then((text) => text !== "", () => false));

    engine.kill("SIGKILL");
    await engine.status;

    assert.equal(await at.isRunning(), true);
    await until(async () => !await at.isRunning());
  },
});

Deno.test({
  name: "the real image boots in software emulation and loads its modules",
  ignore: typeof vmHere === "string",
  async fn() {
    const host = vmHere as VmHost;

    const { outcome, tail } = await bootProbe({
      host,
      accelerator: "tcg",
      until: "loaded",
      limitMs: 60_000,
    });

    assert.equal(outcome, "reached", tail.join("\n"));
    assert.deepEqual(tail.filter((line) => line.includes("failed")), []);
  },
});
