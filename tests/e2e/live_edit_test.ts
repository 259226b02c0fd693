/**
 * Edits of config.yaml by hand and by the command, at the same moment and one right after another:
 * what the file says in the end is what runs in the end, and a change that fails harms nothing.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

/** An engine with HTTP on a free port, and a port that another program holds. */
async function setup() {
  const [port, other] = [freePort(), freePort()];
  const engine = await EngineProcess.start(
    `  - name: engine-http\n    config:\n      port: ${port}\n`,
  );
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const path = `${engine.directory}/config.yaml`;
  const text = await Deno.readTextFile(path);
  const end = async (): Promise<void> => {
    taken.close();
    await engine[Symbol.asyncDispose]();
  };
  await until(() => isServed(port));
  return {
    engine,
    path,
    text,
    port,
    other,
    taken: taken.addr.port,
    [Symbol.asyncDispose]: end,
  };
}

async function isServed(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
  await response?.body?.cancel();
  return response?.status === 404;
}

/** Replaces the file as many editors do. */
async function renameOver(path: string, text: string): Promise<void> {
  await Deno.writeTextFile(`${path}.new`, text);
  await Deno.rename(`${path}.new`, path);
}

for (const [how, write] of [["in place", Deno.writeTextFile], ["renamed", renameOver]] as const) {
  Deno.test(`an edit right behind worker add is applied, ${how}`, async () => {
    await using there = await setup();
    const { engine, path, text, port, other } = there;

    const { code, stderr } = await engine.command("worker", "add", "engine-http", `port=${other}`);
    await write(path, text);

    assert.equal(code, 0, stderr);
    await until(async () => await isServed(port) && !await isServed(other), () => engine.stderr);
    assert.equal(await Deno.readTextFile(path), text);
  });
}

Deno.test("worker add that fails leaves the worker and config.yaml as they were", async () => {
  await using there = await setup();
  const { engine, path, text, port, taken, other } = there;

  const { code, stderr } = await engine.command("worker", "add", "engine-http", `port=${taken}`);

  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`Port ${taken} is taken`));
  assert.match(stderr, /engine-http keeps running as before/);
  assert.ok(await isServed(port));
  assert.equal(await Deno.readTextFile(path), text);
  const { stdout } = await engine.command("worker", "status", "engine-http");
  assert.match(stdout, /state +ready/);

  // And the file is followed as before.
  await Deno.writeTextFile(path, text.replace(`${port}`, `${other}`));
  await until(() => isServed(other), () => engine.stderr);
});

Deno.test("an edit that a running worker cannot take leaves it serving, and says so", async () => {
  await using there = await setup();
  const { engine, path, text, port, taken } = there;

  await Deno.writeTextFile(path, text.replace(`${port}`, `${taken}`));
  await until(() => engine.stderr.includes(`Port ${taken} is taken`));

  await until(() => isServed(port));
  const reason = new RegExp(`Port ${taken} is\\s+taken.*keeps\\s+running\\s+as\\s+before`, "s");
  const list = await engine.command("worker", "list");
  assert.match(list.stdout, /engine-http +ready/);
  assert.match(list.stdout, reason);
  assert.match((await engine.command("worker", "status", "engine-http")).stdout, reason);

  const values = await engine.command("trigger", "engine::config::list", "--json");
  const shown = JSON.parse(values.stdout) as { settings: { key: string; value: unknown }[] };
  assert.equal(shown.settings.find(({ key }) => key === "workers[1].config.port")?.value, port);

  await Deno.writeTextFile(path, text);
  await until(async () => {
    const { stdout } = await engine.command("worker", "status", "engine-http");
    return !reason.test(stdout);
  });
  assert.ok(await isServed(port));
});

Deno.test("other settings on the same port take effect", async () => {
  await using there = await setup();
  const { engine, port } = there;

  const { code, stderr } = await engine.command(
    "worker",
    "add",
    "engine-http",
    "auth_token=secret",
  );

  assert.equal(code, 0, stderr);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  await response.body?.cancel();
  assert.equal(response.status, 401);
});

Deno.test("of edits in quick succession the last is what runs", async () => {
  await using there = await setup();
  const { engine, path, text, port, other } = there;
  const date = new Date(2026, 0, 1);

  for (let round = 0; round < 10; round++) {
    await Deno.writeTextFile(path, "workers: [\n");
    await Deno.writeTextFile(path, text.replace(`${port}`, `${other}`));
    await Deno.utime(path, date, date);
    await new Promise((resolve) => setTimeout(resolve, round * 20)); // Around the debounce.
    await Deno.writeTextFile(path, text);
    await Deno.utime(path, date, date);
  }
  await Deno.writeTextFile(path, text.replace(`${port}`, `${other}`));
  await Deno.utime(path, date, date);

  await until(async () => await isServed(other) && !await isServed(port), () => engine.stderr);
});
