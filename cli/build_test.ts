/**
 * What the build does to a text before and behind the bundler; tests/built_test.ts runs the result.
 *
 * @module
 */
import assert from "node:assert/strict";
import { deferredBy, finishFile, forBundler } from "./build.ts";

const DEFERRED = ["yaml", "ajv/dist/2020.js", "node:vm"];

Deno.test("forBundler() takes away what the bundler does not know, and nothing else", () => {
  const source = [
    'import defer * as yaml from "yaml";',
    'const text = "import defer * as it stands";',
    'const late = await import(unseen("./program.ts"));',
    'const other = await import(elsewhere("./program.ts"));',
  ].join("\n");

  assert.equal(
    forBundler(source),
    [
      'import * as yaml from "yaml";',
      'const text = "import defer * as it stands";',
      'const late = await import("./program.ts");',
      'const other = await import(elsewhere("./program.ts"));',
    ].join("\n"),
  );
});

Deno.test("deferredBy() names what a source defers", () => {
  const source = 'import defer * as a from "node:vm";\nimport defer * as b from "yaml";\n' +
    'import * as c from "node:fs";\n';

  assert.deepEqual(deferredBy(source), ["node:vm", "yaml"]);
});

Deno.test("finishFile() defers again what was deferred, packages from files of their own", () => {
  const code = [
    'import * as yaml from "yaml";',
    'import * as ajv2 from "ajv/dist/2020.js";',
    'import * as nodeVm from "node:vm";',
    'import * as nodeFs from "node:fs";',
    'import { isUtf8 } from "node:buffer";',
  ].join("\n");

  assert.equal(
    finishFile(code, new Set(), DEFERRED),
    [
      'import defer * as yaml from "./late-yaml.js";',
      'import defer * as ajv2 from "./late-ajv-dist-2020.js";',
      'import defer * as nodeVm from "node:vm";',
      'import * as nodeFs from "node:fs";',
      'import { isUtf8 } from "node:buffer";',
    ].join("\n"),
  );
});

Deno.test("finishFile() hides late files of the bundle from Deno, and leaves texts alone", () => {
  const code = 'await import("./disk-AB12.js"); const template = `await import("./worker.js")`;';

  assert.equal(
    finishFile(code, new Set(["disk-AB12.js"]), DEFERRED),
    'await import((0, "./disk-AB12.js")); const template = `await import("./worker.js")`;',
  );
});

Deno.test("finishFile() gets modules of Node for packages without loading how to require", () => {
  const code = 'import { createRequire as __deno_internal_createRequire } from "node:module";\n' +
    "var __require = __deno_internal_createRequire(import.meta.url);\n__require;";

  const finished = finishFile(code, new Set(), DEFERRED);

  assert.doesNotMatch(finished, /node:module/);
  const require = new Function(`${finished.replace(/__require;$/, "return __require;")}`)();
  assert.equal(typeof require("node:path").join, "function");
  assert.throws(() => require("bufferutil"), /Cannot find module bufferutil/);
});
