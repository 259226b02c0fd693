/**
 * The built SDK in `sdk/npm`: it belongs to the sources as they are, is whole by itself, and has
 * types.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import publicNames from "../public_names.json" with { type: "json" };
import { hashSources } from "../../sdk/build_npm.ts";

const PACKAGE = new URL("../../sdk/npm/", import.meta.url);
const code = await Deno.readTextFile(new URL("engine_sdk.js", PACKAGE));
const types = await Deno.readTextFile(new URL("engine_sdk.d.ts", PACKAGE));
const browserCode = await Deno.readTextFile(new URL("engine_sdk_browser.js", PACKAGE));
const testingCode = await Deno.readTextFile(new URL("engine_sdk_testing.js", PACKAGE));
const testingTypes = await Deno.readTextFile(new URL("engine_sdk_testing.d.ts", PACKAGE));
const browserTypes = await Deno.readTextFile(new URL("engine_sdk_browser.d.ts", PACKAGE));

/** Names between the braces of the last export. */
function exportedNames(text: string): string[] {
  const list = text.slice(text.lastIndexOf("export {") + 8, text.lastIndexOf("}"));
  return list.split(",").map((name) => name.trim()).filter((name) => name !== "").sort();
}

Deno.test("sdk/npm is built from the sources as they are now (else: deno task npm)", async () => {
  for (const text of [code, browserCode, testingCode]) {
    const built = /sources sha256:([0-9a-f]{64})$/m.exec(text)?.[1];
    assert.equal(built, await hashSources());
  }
});

Deno.test("sdk/npm/engine_sdk.js names its types first and needs nothing else", () => {
  assert.ok(code.startsWith('// @ts-self-types="./engine_sdk.d.ts"\n'));
  assert.ok(browserCode.startsWith('// @ts-self-types="./engine_sdk_browser.d.ts"\n'));
  for (const text of [code, browserCode, testingCode]) {
    assert.doesNotMatch(text, /^\s*import\b[^(]/m);
    assert.doesNotMatch(text, /\bimport\(/);
    assert.doesNotMatch(text, /\bDeno\./);
  }
});

Deno.test("sdk/npm contains nothing about the machine that built it", () => {
  for (const text of [code, types, browserCode, browserTypes, testingCode, testingTypes]) {
    assert.doesNotMatch(text, /file:\/\/|\/home\/|\/root\/|\/work\/|\.cache|registry\./);
  }
});

Deno.test("sdk/npm exports the same names as mod.ts, with types for each", async () => {
  const sdk = await import(new URL("engine_sdk.js", PACKAGE).href);
  const api = await import("../../mod.ts");

  const values = Object.keys(api).sort();
  assert.deepEqual(Object.keys(sdk).sort(), values);
  const declared = exportedNames(types);
  assert.deepEqual(declared.filter((name) => !name.startsWith("type ")), values);
  assert.doesNotMatch(types.replaceAll(/\/\*[\s\S]*?\*\//g, ""), /\bany\b/);
});

Deno.test("the module for browsers exports the names of its source, with types for each", async () => {
  const sdk = await import(new URL("engine_sdk_browser.js", PACKAGE).href);

  assert.deepEqual(Object.keys(sdk).sort(), ["EngineError", "connectStreams"]);
  const declared = exportedNames(browserTypes).map((name) => name.replace("type ", ""));
  assert.deepEqual(declared.sort(), publicNames["sdk/browser/mod.ts"]);
  assert.doesNotMatch(browserTypes.replaceAll(/\/\*[\s\S]*?\*\//g, ""), /\bany\b/);
});

Deno.test("the module for tests exports the names of its source, with types for each", async () => {
  const sdk = await import(new URL("engine_sdk_testing.js", PACKAGE).href);

  assert.deepEqual(Object.keys(sdk).sort(), ["TestEngine", "startTestEngine"]);
  const declared = exportedNames(testingTypes).map((name) => name.replace("type ", ""));
  assert.deepEqual(declared.sort(), publicNames["sdk/testing/mod.ts"]);
  assert.doesNotMatch(testingTypes.replaceAll(/\/\*[\s\S]*?\*\//g, ""), /\bany\b/);
});

Deno.test("sdk/npm/package.json has the version of the project and no dependencies", async () => {
  const found = JSON.parse(await Deno.readTextFile(new URL("package.json", PACKAGE)));

  assert.equal(found.name, "engine-sdk");
  assert.equal(found.version, manifest.version);
  assert.equal("dependencies" in found, false);
  assert.deepEqual(found.exports, {
    ".": { types: "./engine_sdk.d.ts", default: "./engine_sdk.js" },
    "./browser": { types: "./engine_sdk_browser.d.ts", default: "./engine_sdk_browser.js" },
    "./testing": { types: "./engine_sdk_testing.d.ts", default: "./engine_sdk_testing.js" },
  });
  for (const name of found.files) assert.ok((await Deno.stat(new URL(name, PACKAGE))).isFile);
});

Deno.test("a program that uses sdk/npm is checked against its types", async () => {
  const good = await checkProgram(`
    const worker = registerWorker("ws://127.0.0.1:1", { workerName: "x" });
    worker.registerFunction("a::b", ({ n }: { n: number }) => n + 1);
    const sum = await worker.trigger<{ n: number }, number>({ function_id: "a::b", payload: { n: 1 } });
    console.log(sum.toFixed(), new Logger(worker), TriggerAction.Void());
    await using _other = worker;`);
  const bad = await checkProgram(`registerWorker(5);`);

  assert.deepEqual([good.success, bad.success], [true, false], good.text);
  assert.match(bad.text, /TS2345/);
});

async function checkProgram(body: string): Promise<{ success: boolean; text: string }> {
  const directory = await Deno.makeTempDir();
  try {
    const path = `${directory}/program.ts`;
    const url = new URL("engine_sdk.js", PACKAGE).href;
    const start = `import { Logger, registerWorker, TriggerAction } from "${url}";\n`;
    await Deno.writeTextFile(path, `${start}export { Logger, TriggerAction };\n${body}\n`);
    const command = new Deno.Command(Deno.execPath(), {
      args: ["check", "--quiet", "--no-config", path],
      env: { NO_COLOR: "1" },
      stdout: "null",
      stderr: "piped",
    });
    const { success, stderr } = await command.output();
    return { success, text: new TextDecoder().decode(stderr) };
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}
