/**
 * The first hour of a developer in TypeScript on Node: a worker of their own with the npm
 * package, HTTP, a typed client, and a worker that the engine starts, with its test.
 *
 * @module
 */
import type { Newcomer, Packages } from "./newcomer.ts";

const WORKER = `
import { registerWorker } from "engine-sdk";

interface Pair {
  a: number;
  b: number;
}

const worker = registerWorker();
worker.registerFunction("math::add", ({ a, b }: Pair) => ({ c: a + b }), {
  description: "Adds two numbers",
  request_format: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  response_format: { type: "object", properties: { c: { type: "number" } }, required: ["c"] },
});
worker.registerFunction("math::page", async ({ body }: { body: Pair }) => {
  const sum = await worker.trigger({ function_id: "math::add", payload: body });
  return { status_code: 200, body: sum };
});
const config = { api_path: "/add", http_method: "POST" };
worker.registerTrigger({ type: "http", function_id: "math::page", config });
console.log("registered");
`;

const CLIENT = `
import { registerWorker } from "engine-sdk";
import { createApi } from "./api.js";

const worker = registerWorker();
const { c } = await createApi(worker).math.add({ a: 20, b: 22 });
const answer: number = c;
console.log(answer);
await worker.shutdown();
`;

const TSCONFIG = JSON.stringify({
  compilerOptions: {
    strict: true,
    module: "nodenext",
    target: "es2022",
    rootDir: "src",
    outDir: "dist",
  },
});

/** All steps. */
export async function nodeHour(user: Newcomer, { tarball }: Packages): Promise<void> {
  await user.installsEngine();
  await user.startsProject();
  await user.runs("npm init -y && npm pkg set type=module");
  await user.runs(`npm install --no-audit --no-fund ${tarball}`);
  await user.runs("npm install --no-audit --no-fund --save-dev typescript@5 @types/node@20");

  await user.writes("tsconfig.json", TSCONFIG);
  await user.writes("src/worker.ts", WORKER);
  await user.runs("npx tsc");
  await user.starts("node dist/worker.js", "registered");
  await user.runsUntil("engine trigger math::add a=2 b=3", '{ "c": 5 }');
  const curl = `curl -s localhost:${user.httpPort}/add -H 'content-type: application/json'`;
  await user.runsUntil(`${curl} -d '{"a": 100, "b": 200}'`, '{"c":300}');
  await user.runs("engine trigger math::add a=two b=3 || true", { expects: "invalid_payload" });

  await user.runs("engine types --lang ts --out src/api.ts math::");
  await user.writes("src/client.ts", CLIENT);
  await user.runs("npx tsc && node dist/client.js", { expects: /^42\n/ });

  await user.runs("engine create --template node-worker --directory workers/mail");
  await user.runs("engine worker add ./workers/mail --isolation process", { expects: "ready" });
  await user.runs("engine trigger mail::hello name=Ada", { expects: "Hello, Ada!" });
  await user.runs("cd workers/mail && npm test", { expects: "pass 1" });
  await user.runs("sed -i 's/Hello/Good morning/' workers/mail/worker.js");
  await user.runsUntil("engine trigger mail::hello name=Ada", "Good morning, Ada!");
}
