import assert from "node:assert/strict";
import { recordingLog } from "../tests/fakes/fake_http.ts";
import { openControlKey } from "./auth/control_key.ts";
import { projectAddress } from "./project_address.ts";

/** A project with this config.yaml, and a folder for keys. */
async function setup(config: string | undefined) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const [directory, keys] = [`${root}/project`, `${root}/keys`];
  await Deno.mkdir(`${directory}/sub`, { recursive: true });
  if (config !== undefined) await Deno.writeTextFile(`${directory}/config.yaml`, config);
  /** As if an engine ran for a project. */
  const run = (url: string, project: string, needs_token = false) =>
    openControlKey(url, recordingLog([]), { folder: keys, project, needs_token });
  return {
    directory,
    run,
    find: (variables: Record<string, string> = {}, at = directory) =>
      projectAddress(at, () => variables, keys),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("projectAddress() is that of config.yaml while the engine does not run", async () => {
  await using it = await setup("engine: { port: 5001, host: 0.0.0.0, auth_token: 't${N}' }\n");
  await Deno.writeTextFile(
    `${it.directory}/config.yaml`,
    "engine: { port: 5001, host: 0.0.0.0, auth_token: 't${N}' }\nworkers: broken\n",
  );
  await using _other = await it.run("ws://127.0.0.1:49134", "/elsewhere");

  assert.deepEqual(await it.find({ N: "1" }), {
    directory: it.directory,
    url: "ws://127.0.0.1:5001",
    token: "t1",
    isRunning: false,
    others: [{ directory: "/elsewhere", url: "ws://127.0.0.1:49134" }],
  });
});

Deno.test("projectAddress() is where the engine listens, whatever config.yaml says by now", async () => {
  await using it = await setup("engine: [\n");
  await using _engine = await it.run("ws://127.0.0.1:5002", it.directory);

  const found = await it.find();

  assert.deepEqual([found?.url, found?.isRunning, found?.token], [
    "ws://127.0.0.1:5002",
    true,
    undefined,
  ]);
});

Deno.test("projectAddress() reads the token of a running engine that wants one", async () => {
  await using it = await setup("engine: { auth_token: secret }\n");
  await using _engine = await it.run("ws://127.0.0.1:5002", it.directory, true);

  assert.equal((await it.find())?.token, "secret");
});

Deno.test("projectAddress() finds an engine that runs without config.yaml", async () => {
  await using it = await setup(undefined);
  await Deno.mkdir(`${it.directory}/.engine`);
  await using _engine = await it.run("ws://127.0.0.1:5003", it.directory);

  assert.equal((await it.find())?.url, "ws://127.0.0.1:5003");
});

Deno.test("projectAddress() does not look into the folders around", async () => {
  await using it = await setup("engine: { port: 5001 }\n");

  assert.equal(await it.find({}, `${it.directory}/sub`), undefined);
});

Deno.test("projectAddress() sends nothing to an address of another machine", async () => {
  await using it = await setup("engine: { host: 192.0.2.7, auth_token: '${SECRET}' }\n");

  await assert.rejects(it.find({ SECRET: "s" }), /192\.0\.2\.7 is not an address of this machine/);
});

Deno.test("projectAddress() writes an IPv6 address as URLs do", async () => {
  await using it = await setup("engine: { port: 5001, host: '::1' }\n");

  assert.equal((await it.find())?.url, "ws://[::1]:5001");
});
