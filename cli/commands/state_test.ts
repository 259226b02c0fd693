import assert from "node:assert/strict";
import { EngineProcess } from "../../tests/fakes/engine_process.ts";

Deno.test("engine state checks and backs up beside the engine, and brings a lost state back", async (t) => {
  await using engine = await EngineProcess.start();
  const { directory } = engine;
  const path = `${directory}/.engine/state.sqlite`;
  const run = async (...args: string[]) => {
    const main = new URL("../main.ts", import.meta.url).pathname;
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", main, ...args],
      cwd: directory,
      env: { NO_COLOR: "1", ENGINE_URL: "" },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  };
  await engine.command("trigger", "state::set", "scope=s", "key=k", "value=1");

  await t.step("while it runs", async () => {
    const check = await run("state", "check", "--json");
    assert.equal(check.code, 0, check.stderr);
    assert.equal(JSON.parse(check.stdout).damaged_count, 0);
    const backup = await run("state", "backup", "copy.sqlite");
    assert.match(backup.stdout, /^The backup copy\.sqlite is intact: \d+ records, /, backup.stderr);
    const restore = await run("state", "restore", "copy.sqlite");
    assert.equal(restore.code, 1);
    assert.match(
      restore.stderr,
      /needs the engine stopped: .* process \d+; stop that engine first/,
    );
  });

  await t.step("a vanished state file is refused, a restore brings it back", async () => {
    await engine.kill("SIGKILL");
    for (const end of ["", "-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
    const start = await run("--config", "config.yaml");
    assert.equal(start.code, 1);
    assert.match(
      start.stderr,
      /is missing, but this project has had state; .*engine state restore/,
    );
    await Deno.writeTextFile(path, "");
    const check = await run("state", "check");
    assert.equal(check.code, 1);
    assert.equal(
      check.stderr,
      "error: The state is damaged\n  the file is empty (0 bytes)\n" +
        "restore a backup: engine state restore FILE\n",
    );
    const restored = await run("state", "restore", "copy.sqlite");
    assert.match(restored.stdout, /^Restored \d+ records, /, restored.stderr);
    assert.equal((await run("state", "check")).code, 0);
    await engine.start();
    const { stdout } = await engine.command("trigger", "state::get", "scope=s", "key=k");
    assert.equal(stdout, "1\n");
  });
});
