/**
 * Workers of each kind in real microVMs: installed inside, run inside, and once installed never again.
 *
 * @module
 */
import assert from "node:assert/strict";
import { vmHere, VmProject } from "../fakes/vm_project.ts";

/** A kind of worker that has a dependency of its own and prints what that gives. */
interface Example {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
}

const EXAMPLES: readonly Example[] = [
  {
    name: "python",
    files: {
      "engine.worker.yaml": "name: python\nruntime: { kind: python, entry: main.py }\n" +
        "resources: { memory_mb: 256 }\n",
      "main.py": "import engine_sdk, os, websockets\n" +
        "assert websockets.__file__.startswith(os.environ['PIP_TARGET'])\n" +
        "print(engine_sdk.register_worker.__name__)\n",
    },
  },
  {
    name: "node",
    files: {
      "engine.worker.yaml": "name: node\nruntime: { kind: javascript, entry: main.js }\n" +
        "resources: { memory_mb: 256 }\n",
      "package.json": JSON.stringify({
        type: "module",
        dependencies: { ms: "2.1.3" },
      }),
      "main.js": 'import ms from "ms"; import { registerWorker } from "engine-sdk";\n' +
        'console.log(ms("2 days"), registerWorker.name);\n',
    },
  },
  {
    name: "deno",
    files: {
      "engine.worker.yaml": "name: deno\nruntime: { kind: typescript, entry: main.ts }\n" +
        "network: engine\nresources: { memory_mb: 384 }\n",
      "deno.json": JSON.stringify({
        imports: { ms: "npm:ms@2.1.3", "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" },
      }),
      "main.ts": 'import ms from "ms"; import { registerWorker } from "engine-sdk";\n' +
        'console.log(ms("2 days"), registerWorker.name);\n',
    },
  },
];
const PRINTED: Readonly<Record<string, string>> = {
  python: "register_worker",
  node: "172800000 registerWorker",
  deno: "172800000 registerWorker",
};

for (const { name, files } of EXAMPLES) {
  Deno.test({
    name: `a ${name} worker is installed and run in a microVM, and installed once`,
    ignore: typeof vmHere === "string",
    fn: async () => {
      await using project = await VmProject.create();
      await project.addWorker(name, files);

      const cold = await project.live(name);
      const coldPhases = project.phases.splice(0);
      const warm = await project.live(name);

      const told = () => `${project.installLines.join("\n")}\n${cold.lines.join("\n")}`;
      assert.deepEqual(cold.ended, { code: 0, signal: null }, told());
      assert.equal(cold.dependencies, "installed");
      assert.equal(cold.lines.at(-1), PRINTED[name]);
      assert.match(coldPhases[0]!, /^installing dependencies with (pip|npm|deno)$/);
      // An installation has the network, so the start after it boots anew if the worker has none.
      const boots = coldPhases.filter((phase) => phase.endsWith("booting a microVM (tcg)"));
      assert.equal(boots.length, files["engine.worker.yaml"]!.includes("network: engine") ? 2 : 1);
      assert.deepEqual([warm.dependencies, warm.lines], ["cached", cold.lines]);
      assert.deepEqual(project.phases, ["booting a microVM (tcg)"]);
    },
  });
}
