import assert from "node:assert/strict";
import { vmHere } from "../../../tests/fakes/vm_project.ts";
import { processStart } from "../../process/process_group.ts";
import { Guest, type GuestOptions } from "./guest.ts";
import { until } from "../../../tests/fakes/until.ts";

const ignore = typeof vmHere === "string";

async function setup(more: Partial<GuestOptions> = {}) {
  assert.ok(typeof vmHere !== "string");
  const root = await Deno.realPath(await Deno.makeTempDir());
  const options: GuestOptions = {
    ...vmHere,
    name: "test",
    accelerator: "tcg",
    resources: { cpus: 1, memory_mb: 160 },
    network: "full",
    engine: { hostname: "127.0.0.1", port: 49134 },
    shares: [{ path: "/usr", writable: false }],
    runDirectory: `${root}/run`,
    ...more,
  };
  /** Whether the guest has left no files. */
  const isTidy = async () => (await Array.fromAsync(Deno.readDir(root))).length === 0;
  return {
    root,
    options,
    isTidy,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

const isGone = async (pid: number): Promise<boolean> => await processStart(pid) === undefined;

Deno.test({
  name: "when QEMU is killed or the kernel panics, the guest's programs end with the reason",
  ignore,
  async fn(t) {
    await t.step("killed", async () => {
      await using at = await setup();
      const guest = await Guest.boot(at.options);
      const lines: string[] = [];
      const main = await guest.run(
        { command: "echo up; sleep 1000", directory: "/", env: {} },
        ({ text }) => void lines.push(text),
      );
      const command = { command: ["sleep", "1000"], directory: "/", env: {} };
      const extra = guest.exec(command, () => {}, new AbortController().signal);
      await until(() => lines.includes("up"));

      Deno.kill(guest.pid, "SIGKILL");

      const killed = { code: null, signal: "SIGKILL", reason: "its microVM ended" };
      assert.deepEqual(await main.ended, killed);
      assert.deepEqual(await extra, killed);
      assert.deepEqual(await guest.ended, killed);
      assert.ok(await at.isTidy());
    });

    await t.step({
      name: "panic",
      ignore: Deno.uid() !== 0, // Only root in the guest may trigger a panic.
      async fn() {
        await using at = await setup();
        const guest = await Guest.boot(at.options);
        // A panic loses output that the kernel has not sent yet; a second is enough to send it.
        const command = "echo last words; sleep 1; echo c >/proc/sysrq-trigger";
        const lines: string[] = [];

        const program = await guest.run({ command, directory: "/", env: {} }, ({ text }) => {
          lines.push(text);
        });

        const panic = {
          code: null,
          signal: "SIGKILL",
          reason: "kernel panic: sysrq triggered crash",
        };
        assert.deepEqual(await program.ended, panic);
        assert.deepEqual(await guest.ended, panic);
        assert.deepEqual(lines.slice(0, 1), ["last words"]);
      },
    });
  },
});

Deno.test({
  name: "a failed boot rejects with the last console lines and leaves nothing",
  ignore,
  async fn(t) {
    await t.step("no such program", async () => {
      await using at = await setup({ qemu: "/no/such/qemu" });

      await assert.rejects(Guest.boot(at.options), { code: "launch_failed" });
      assert.ok(await at.isTidy());
    });

    await t.step("a missing shared folder", async () => {
      const path = "/no/such/folder";
      await using at = await setup({ shares: [{ path, writable: false }] });

      await assert.rejects(
        Guest.boot(at.options),
        (error: Error & { details: { console: string[] } }) => {
          assert.match(error.message, /^The microVM of test does not boot: .*\/no\/such\/folder/);
          assert.ok(error.details.console.some((line) => line.includes(path)));
          return true;
        },
      );
      assert.ok(await at.isTidy());
    });

    await t.step("an image without init", async () => {
      assert.ok(typeof vmHere !== "string");
      await using at = await setup();
      await Deno.mkdir(`${at.root}/image`);
      const initrd = `${at.root}/image/empty.cpio`;
      await Deno.writeFile(initrd, new Uint8Array(512));

      const booting = Guest.boot({ ...at.options, image: { ...vmHere.image, initrd } });

      await assert.rejects(booting, {
        code: "launch_failed",
        message: /does not boot: kernel panic: VFS: Unable to mount root fs/,
      });
    });

    await t.step("an aborted boot", async () => {
      await using at = await setup();
      const aborted = new AbortController();
      const booting = Guest.boot(at.options, aborted.signal);
      // boot() creates the run directory before it starts QEMU.
      await until(async () => !await at.isTidy());

      aborted.abort(new Error("changed my mind"));

      await assert.rejects(booting, { code: "launch_failed", message: /changed my mind/ });
      assert.ok(await at.isTidy());
    });
  },
});

Deno.test({
  name: "a guest ends soon after its engine was killed",
  ignore,
  async fn() {
    await using at = await setup();
    const program = `
      import { Guest } from ${JSON.stringify(import.meta.resolve("./guest.ts"))};
      const guest = await Guest.boot(JSON.parse(Deno.args[0]));
      const command = "trap '' TERM; sleep 1000";
      await guest.run({ command, directory: "/", env: {} }, () => {});
      console.log(guest.pid);
      await guest.ended;`;
    await Deno.writeTextFile(`${at.root}/engine.ts`, program);
    const engine = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-check",
        "--quiet",
        `${at.root}/engine.ts`,
        JSON.stringify(at.options),
      ],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    const reader = engine.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const pid = Number((await reader.read()).value);
    assert.ok(pid > 1 && !await isGone(pid));

    engine.kill("SIGKILL");
    await engine.status;

    await until(() => isGone(pid));
    await reader.cancel();
  },
});

Deno.test({
  name: "a guest that no longer obeys the engine is killed",
  ignore,
  async fn() {
    const shared = await Deno.realPath(await Deno.makeTempDir());
    const [start, stopped] = [`${shared}/start`, `${shared}/stopped`];
    // Root in a guest can stop the agent.
    const deaf = `until [ -e ${start} ]; do sleep 0.1; done; ` +
      "for own in /proc/[0-9]*; do pid=${own##*/}; " +
      "if [ $pid != $$ ] && [ -e $own/exe ]; then kill -STOP $pid; fi; done; " +
      `echo >${stopped}; sleep 1000`;
    await using at = await setup({
      responseTimeoutMs: 3_000,
      shares: [{ path: "/usr", writable: false }, { path: shared, writable: true }],
    });
    const guest = await Guest.boot(at.options);
    const program = { directory: "/", env: {} };
    const main = await guest.run({ ...program, command: deaf }, () => {});
    const stopping = new AbortController();
    const up = Promise.withResolvers<void>();
    const extra = guest.exec(
      { ...program, command: ["sh", "-c", "echo up; exec sleep 1000"] },
      () => up.resolve(),
      stopping.signal,
    );
    await up.promise;
    await Deno.writeTextFile(start, "");
    await until(() => Deno.stat(stopped).then(() => true));

    stopping.abort();

    assert.equal((await extra).signal, "SIGKILL");
    assert.equal((await main.ended).signal, "SIGKILL");
    await guest.ended;
    assert.ok(await at.isTidy());
    await Deno.remove(shared, { recursive: true });
  },
});
