import assert from "node:assert/strict";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { expander, type References, REFERENCES_MAX } from "./expand.ts";

const VARIABLES: Record<string, string> = { SHOP_KEY: "k1", SHOP_URL: "u", PATH: "/bin" };
const FILES: Record<string, string> = {
  "/run/secrets/db": "pw\n",
  "/run/secrets/big": "x".repeat(70_000),
};

function expand(text: string, changes: Partial<References> = {}, isSecret = false): string {
  return expander({
    environment: ["SHOP_*", "MODE"],
    secretsDirectory: "/run/secrets",
    env: (name) => VARIABLES[name],
    readFile(path) {
      if (FILES[path] === undefined) throw new Error("No such file");
      return FILES[path];
    },
    ...changes,
  })(text, isSecret);
}

Deno.test("references become what they stand for, with defaults for what is not set", () => {
  assert.equal(expand("a ${SHOP_KEY} b ${SHOP_URL:x} ${MODE:dev} ${MODE:}"), "a k1 b u dev ");
  assert.equal(expand("${file:db}"), "pw");
  assert.equal(expand("no $REFERENCE {here} $"), "no $REFERENCE {here} $");
});

for (
  const [text, pattern] of [
    ["${PATH}", /PATH may not be used; add it to environment/],
    ["${PATH:x}", /PATH may not be used/],
    ["${SHOP_NONE}", /no variable SHOP_NONE/],
    ["${a b}", /names no variable/],
    ["${}", /names no variable/],
    ["${file:../../etc/passwd}", /names no file/],
    ["${file:.hidden}", /names no file/],
    ["${file:none}", /cannot be read .*No such file/],
    ["${file:big}", /more than/],
    ["${MODE:x}".repeat(REFERENCES_MAX + 1), /more than 1000 references/],
  ] as [string, RegExp][]
) {
  Deno.test(`${text.slice(0, 30)} cannot be expanded`, () => {
    assert.throws(() => expand(text), (error: EngineError) => {
      assert.equal(error.code, "EXPAND_FAILED");
      assert.match(error.message, pattern);
      return true;
    });
  });
}

for (const text of ["pa${hunter2}ss", "${hunter2:hunter2}", "${file:../hunter2}", "${hunter2 }"]) {
  Deno.test(`an error quotes nothing of the secret ${text}`, () => {
    assert.throws(() => expand(text, {}, true), (error: EngineError) => {
      assert.equal(error.code, "EXPAND_FAILED");
      assert.ok(!`${error.message} ${error.cause ?? ""}`.includes("hunter2"), error.message);
      return true;
    });
  });
}

Deno.test("a secret that is one reference is named where it cannot be expanded, others expand", () => {
  assert.throws(() => expand("${SHOP_NONE}", {}, true), /no variable SHOP_NONE/);
  assert.throws(() => expand("${file:none}", {}, true), /the file none/);
  assert.equal(expand("a${SHOP_KEY}", {}, true), "ak1");
});

Deno.test("without a directory of secrets no file is read", () => {
  assert.throws(() => expand("${file:db}", { secretsDirectory: undefined }), /secrets_directory/);
});
