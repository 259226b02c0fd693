/**
 * The table of error codes in ARCHITECTURE.md is the one of the program.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ERRORS } from "../sdk/typescript/wire/errors.ts";
import { readSources } from "./fakes/source_tree.ts";

Deno.test("ARCHITECTURE.md lists every code with its status and whether a retry can help", async () => {
  const text = await Deno.readTextFile(new URL("../ARCHITECTURE.md", import.meta.url));
  const rows = [...text.matchAll(/^\| `(\w+)` \| (\d{3}) \| (yes|no) \|/gm)];

  const documented = rows.map(([, code, status, retry]) => [code, Number(status), retry === "yes"]);

  const defined = Object.entries(ERRORS)
    .map(([code, { status, retryable }]) => [code, status, retryable]);
  assert.deepEqual(documented, defined);
});

/** Codes of one program only, which no caller gets: the page of the console, the test engine. */
const OWN_CODES = ["too_deep", "assertion_failed", "trigger_not_found", "not_found"];
/** Where a code stands in the sources. */
const CODE = /(?:new EngineError\(|errorReply\(\d+,|refusal\(\d+,)\s*"(\w+)"/g;

Deno.test("every code that the sources throw is in the table", async () => {
  const sources = (await readSources()).filter(({ path }) =>
    /^(engine|workers|cli|sdk)\//.test(path) && !path.endsWith("_test.ts")
  );

  const used = sources.flatMap(({ path, text }) => {
    const code = text.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
    return [...code.matchAll(CODE)].map(([, found]) => `${found} in ${path}`);
  });

  assert.ok(used.length > 200);
  const isKnown = (code: string): boolean =>
    Object.hasOwn(ERRORS, code) || OWN_CODES.includes(code);
  assert.deepEqual(used.filter((each) => !isKnown(each.split(" ")[0]!)), []);
});

Deno.test("codes are snake_case, but those that the protocol spells in capitals", async () => {
  const text = await Deno.readTextFile(new URL("../sdk/PROTOCOL.md", import.meta.url));
  const section = /^## 11\. [^]*?(?=^## 12)/m.exec(text)![0];
  // Without those that are marked as extensions, which are ours.
  const rows = section.split("\n").filter((line) => /^\| `/.test(line))
    .map((line) => line.split(" | ")[0]!).filter((cell) => !cell.includes("(extension"));
  const fixed = rows.flatMap((cell) => [...cell.matchAll(/`([\w<>]+)`/g)].map(([, code]) => code!));
  const patterns = fixed.map((code) => new RegExp(`^${code.replace("<OP>", "[A-Z_]+")}$`));

  const capitals = Object.keys(ERRORS).filter((code) => !/^[a-z]+(_[a-z]+)*$/.test(code));

  assert.ok(capitals.length > 20);
  assert.deepEqual(capitals.filter((code) => !patterns.some((each) => each.test(code))), []);
});
