/**
 * There is one version: that of `deno.json`. The SDKs announce it, packages and programs have it.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url);

/** Where else the version stands, and a pattern that finds it. */
const PLACES: Readonly<Record<string, RegExp>> = {
  "sdk/typescript/identity.ts": /^export const SDK_VERSION = "(.*)";$/m,
  "sdk/npm/package.json": /^ {2}"version": "(.*)",$/m,
  "sdk/npm/engine_sdk.js": /^\/\/ engine-sdk (.*), built by/m,
  "sdk/npm/engine_sdk_browser.js": /^\/\/ engine-sdk (.*), built by/m,
  "sdk/npm/engine_sdk_testing.js": /^\/\/ engine-sdk (.*), built by/m,
  "sdk/python/src/engine_sdk/_codec.py": /^__version__ = "(.*)"$/m,
};

for (const [path, pattern] of Object.entries(PLACES)) {
  Deno.test(`${path} has the version of deno.json`, async () => {
    const found = pattern.exec(await Deno.readTextFile(new URL(path, ROOT)))?.[1];

    assert.equal(found, manifest.version);
  });
}

Deno.test("the Python package takes its version from the module, and nothing else has one", async () => {
  const text = await Deno.readTextFile(new URL("sdk/python/pyproject.toml", ROOT));

  assert.match(text, /^dynamic = \["version"\]$/m);
  assert.match(text, /^path = "src\/engine_sdk\/_codec\.py"$/m);
  assert.doesNotMatch(text, /^version = /m);
});

Deno.test("CHANGELOG.md has the version, or changes that have none yet", async () => {
  const titles = (await Deno.readTextFile(new URL("CHANGELOG.md", ROOT))).match(/^## .*$/gm);

  assert.match(titles![0]!, new RegExp(`^## (Unreleased|${RegExp.escape(manifest.version)}\\b)`));
});

Deno.test("the packages of a previous version in tests/fixtures are ones that still count", () => {
  const [major, minor] = manifest.version.split(".").map(Number);
  const names = [...Deno.readDirSync(new URL("tests/fixtures/", ROOT))].map(({ name }) => name);
  const versions = names.map((name) => /^engine[-_]sdk-(\d+)\.(\d+)\.\d+(-py|\.tgz)/.exec(name))
    .filter((found) => found !== null);

  assert.equal(versions.length, 2);
  for (const [, oldMajor, oldMinor] of versions) {
    assert.equal(Number(oldMajor), major);
    // Until there is a later one, the packages of the last version stand for the previous one.
    assert.ok(
      minor! - Number(oldMinor) <= 1,
      "replace them by those of the previous minor version",
    );
  }
});
