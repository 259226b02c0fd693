/**
 * Which engine a command talks to: that of the project in its folder, and no other one.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";

const MAIN = new URL("../../cli/main.ts", import.meta.url).pathname;

/** Runs a command in a folder without ENGINE_URL. */
async function run(cwd: string, args: string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", MAIN, ...args],
    cwd,
    env: { ENGINE_URL: "", ENGINE_TOKEN: "", NO_COLOR: "1", ...env },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test("a command in the folder of a project talks to its engine", async () => {
  await using one = await EngineProcess.start("", "  auth_token: one-secret\n");
  await using two = await EngineProcess.start();

  for (const engine of [one, two]) {
    const scope = `scope=s${engine.port}`;
    const { code, err } = await run(engine.directory, [
      "trigger",
      "state::set",
      scope,
      "key=k",
      "value=1",
    ]);
    assert.equal(code, 0, err);
    const { out } = await run(engine.directory, ["worker", "list"]);
    assert.match(out, /engine-state +ready/);
  }
  const list = ["trigger", "state::list_groups", "--json"];
  assert.match((await run(one.directory, list)).out, new RegExp(`${one.port}`));
  assert.doesNotMatch((await run(two.directory, list)).out, new RegExp(`${one.port}`));

  const named = await run(one.directory, [...list, "--url", two.url]);
  assert.match(named.out, new RegExp(`${two.port}`), named.err);
  const variable = await run(one.directory, list, { ENGINE_URL: two.url });
  assert.match(variable.out, new RegExp(`${two.port}`), variable.err);
});

Deno.test("a command never reaches another project's engine by mistake", async () => {
  await using engine = await EngineProcess.start();
  const other = await Deno.realPath(await Deno.makeTempDir());
  await Deno.writeTextFile(`${other}/config.yaml`, `engine:\n  port: ${engine.port}\n`);
  const command = ["worker", "add", "engine-http", "port=0"];

  const refused = await run(other, command);
  // Also when this user has no note of that engine.
  const unknown = await run(other, command, { XDG_STATE_HOME: `${other}/state` });

  const real = await Deno.realPath(engine.directory);
  for (const { code, err } of [refused, unknown]) {
    assert.equal(code, 1, err);
    assert.ok(err.includes(other) && err.includes(real), err);
    assert.match(err, new RegExp(`--url ws://127.0.0.1:${engine.port}`));
  }
  assert.doesNotMatch(await Deno.readTextFile(`${engine.directory}/config.yaml`), /engine-http/);
  await Deno.remove(other, { recursive: true });
});
