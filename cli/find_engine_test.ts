import assert from "node:assert/strict";
import type { ProjectAddress } from "../engine/mod.ts";
import type { Json } from "../mod.ts";
import type { EngineConnection } from "./connect.ts";
import { CommandError } from "./failure.ts";
import { connectToFound, findEngine } from "./find_engine.ts";

const HERE: ProjectAddress = {
  directory: "/here",
  url: "ws://127.0.0.1:5001",
  token: "of config",
  isRunning: false,
  others: [],
};

function find(
  address: { url?: string; token?: string },
  variables: Record<string, string> = {},
  project: ProjectAddress | undefined = HERE,
) {
  const env = (name: string) => variables[name];
  return findEngine(address, { directory: "/here", env, find: () => Promise.resolve(project) });
}

/** An engine that runs the project of a folder. */
function engineOf(directory: string) {
  const calls: string[] = [];
  let isOpen = true;
  const connection: EngineConnection = {
    subscribe: () => Promise.reject(new Error("nothing is published here")),
    follow: () => Promise.reject(new Error("nothing happens here")),
    call: (function_id) => {
      calls.push(function_id);
      return Promise.resolve({ data_directory: `${directory}/.engine` } as Json);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(void (isOpen = false)),
  };
  return { calls, isOpen: () => isOpen, connect: () => Promise.resolve(connection) };
}

Deno.test("findEngine(): --url before ENGINE_URL before the project before the usual port", async () => {
  const variables = { ENGINE_URL: "ws://env:1" };

  assert.deepEqual(await find({ url: "ws://flag:1" }, variables), { url: "ws://flag:1" });
  assert.deepEqual(await find({}, variables), { url: "ws://env:1" });
  assert.deepEqual(await find({}), { url: HERE.url, token: "of config", project: HERE });
  const nowhere = { directory: "/", env: () => undefined, find: () => Promise.resolve(undefined) };
  assert.deepEqual(await findEngine({}, nowhere), { url: "ws://127.0.0.1:49134" });
});

Deno.test("findEngine(): --token before ENGINE_TOKEN before that of config.yaml", async () => {
  const variables = { ENGINE_TOKEN: "of env" };

  assert.equal((await find({ token: "of flag" }, variables)).token, "of flag");
  assert.equal((await find({}, variables)).token, "of env");
  assert.equal((await find({ url: "ws://flag:1" })).token, undefined);
});

Deno.test("connectToFound() trusts an engine that is known to run here", async () => {
  const engine = engineOf("/here");
  const found = await find({}, {}, { ...HERE, isRunning: true });

  await connectToFound(found, {}, engine.connect);

  assert.deepEqual(engine.calls, []);
});

Deno.test("connectToFound() refuses the engine of another project, with both addresses", async () => {
  const others = [{ directory: "/there", url: "ws://127.0.0.1:5001" }];
  const known = await find({}, {}, { ...HERE, others });
  const engine = engineOf("/there");

  await assert.rejects(connectToFound(known, {}, engine.connect), (error: Error) => {
    assert.match(error.message, /engine of \/here \(ws:\/\/127\.0\.0\.1:5001\) is not running/);
    assert.match(error.message, /engine at ws:\/\/127\.0\.0\.1:5001 is that of \/there;/);
    return error instanceof CommandError;
  });
  assert.deepEqual(engine.calls, []);

  await assert.rejects(
    connectToFound(await find({}), {}, engine.connect),
    /is that of \/there;/,
  );
  assert.equal(engine.isOpen(), false);
});

Deno.test("connectToFound() names the engines that run instead", async () => {
  const others = [{ directory: "/there", url: "ws://127.0.0.1:49134" }];
  const refused = () => Promise.reject(new CommandError("The engine is not running"));

  await assert.rejects(
    connectToFound(await find({}, {}, { ...HERE, others }), {}, refused),
    /not running; running engines of other projects, .*: ws:\/\/127\.0\.0\.1:49134 \(\/there\)$/,
  );
});
