/**
 * What an engine reads before it listens: each file takes a third of a millisecond.
 *
 * Held by which files there are, never by a time.
 *
 * @module
 */
import assert from "node:assert/strict";
import { staticGraph } from "./fakes/module_graph.ts";

const ENGINE = new URL("../engine/engine.ts", import.meta.url);
/** What is for some engines only, or for later, and is imported when it is needed. */
const LATER: Readonly<Record<string, RegExp>> = {
  "what starts directories": /\/engine\/(launch|vm)\//,
  "the SDKs that are laid beside a project": /\/sdk\/(npm|python)\//,
  "export of telemetry": /\/observability\/export\/(?!settings)/,
  "telemetry on disk": /\/observability\/disk/,
  "pages of metrics": /\/observability\/metrics\/prometheus/,
  "explanations": /\/observability\/health\/(explain|checks)/,
  "the console": /\/workers\/console\/(page|server|guard|dist)/,
  "the command line": /\/cli\/|commander/,
  "packages": /zod|\bhono\b|\bws@/,
};
/** Evaluated when first touched: `import defer`, since what they do has to be done at once. */
const DEFERRED = ["npm:/ajv@", "npm:/yaml@"];
/** 244 today; half of what an engine does before it listens is to read them. */
const MODULES_MAX = 265;

Deno.test("an engine reads nothing before it listens that it may never need", async () => {
  const modules = await staticGraph(ENGINE);

  for (const [what, pattern] of Object.entries(LATER)) {
    assert.deepEqual(modules.filter((module) => pattern.test(module)), [], what);
  }
  const packages = modules.filter((module) => module.startsWith("npm:"));
  const others = packages.filter((name) => !DEFERRED.some((start) => name.startsWith(start)));
  assert.deepEqual(others, []);
  assert.ok(modules.length < MODULES_MAX, `${modules.length} modules`);
});

Deno.test({
  name: "a start never looks at the process global of Node, which takes 12 ms",
  ignore: Deno.build.os !== "linux", // Elsewhere processor time is known by it only.
  fn: startTouchesNothing,
});

async function startTouchesNothing(): Promise<void> {
  const program = `
    const touched = [];
    const { get } = Object.getOwnPropertyDescriptor(globalThis, "process");
    Object.defineProperty(globalThis, "process", {
      configurable: true,
      get() { touched.push("process"); return get.call(globalThis); },
    });
    const { startEngine } = await import(${JSON.stringify(ENGINE.href)});
    const engine = await startEngine({ configPath: Deno.args[0], logLevel: "error" });
    await engine.stop();
    console.log(JSON.stringify(touched));
  `;
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/main.ts`, program);
    await Deno.writeTextFile(`${directory}/config.yaml`, "engine:\n  port: 0\nworkers: []\n");
    const config = new URL("../deno.json", import.meta.url).pathname;
    const args = ["run", "-A", "--no-check", "--config", config, `${directory}/main.ts`];
    const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
      args: [...args, `${directory}/config.yaml`],
    }).output();

    assert.ok(success, new TextDecoder().decode(stderr));
    assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), []);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}
