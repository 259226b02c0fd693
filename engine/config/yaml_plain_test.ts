/**
 * What is read without the parser is what the parser reads, and what is not plain is left to it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { Random } from "../../tests/fakes/random.ts";
import { readPlainYaml } from "./yaml_plain.ts";
import { pathOf, readAnyYaml, type YamlText } from "./yaml_text.ts";

const CONFIG = `# What this engine runs.
engine:
  port: 49134  # for workers
  host: "127.0.0.1"

log:
    level: info
workers:
  - name: engine-state
  - name: math-worker
    path: ./workers/math-worker
    env:
      PATH_OF: '/a b # c'
    config:
      ratio: 0.25
      origins:
      - http://localhost:8080
      - ../else
  - name: nothing
    config: {}
`;

/** All that can be asked of a text. */
function told(yaml: YamlText): unknown {
  const paths: string[] = [];
  const walk = (value: Json, path: string): void => {
    paths.push(path);
    if (value === null || typeof value !== "object") return;
    if (Array.isArray(value)) value.forEach((item, i) => walk(item, pathOf(path, i)));
    else for (const [key, member] of Object.entries(value)) walk(member, pathOf(path, key));
  };
  walk(yaml.value, "");
  return {
    value: yaml.value,
    problems: yaml.problems,
    at: paths.map((path) => [
      path,
      yaml.lineOf(path),
      yaml.textOf(path),
      yaml.isFilledIn(path),
      yaml.variableOf(path),
    ]),
  };
}

function assertSame(text: string): void {
  const plain = readPlainYaml("config.yaml", text);
  if (!plain) return;
  assert.deepEqual(told(plain), told(readAnyYaml("config.yaml", text, () => "set")), text);
}

Deno.test("readPlainYaml() reads a usual config.yaml, and every line of it as the parser does", () => {
  assert.ok(readPlainYaml("config.yaml", CONFIG));
  assertSame(CONFIG);
});

Deno.test("readPlainYaml() reads nothing and comments alone", () => {
  for (const text of ["", "\n", "# a\n\n  # b\n", "workers: []\n"]) {
    assert.ok(readPlainYaml("config.yaml", text), text);
    assertSame(text);
  }
});

Deno.test("readPlainYaml() reads the templates that the engine writes", async () => {
  for (const name of ["quickstart", "bare"]) {
    const file = new URL(`../../templates/${name}/config.yaml`, import.meta.url);
    const text = await Deno.readTextFile(file);
    assert.ok(readPlainYaml("config.yaml", text), name);
    assertSame(text);
  }
});

for (
  const [what, text] of Object.entries({
    "a variable": "port: ${PORT}",
    "a variable in quotes": 'a: "${PORT}"',
    "a key twice": "a: 1\nb: 2\na: 3",
    "no value": "a:\nb: 1",
    "no value at the end": "a: 1\nb:",
    "null": "a: null",
    "yes": "a: yes",
    "a number in another form": "a: 0x10",
    "a number with a zero before it": "a: 007",
    "an exponent": "a: 1e3",
    "a tab": "a:\n\tb: 1",
    "a carriage return": "a: 1\r\nb: 2\r\n",
    "an anchor": "a: &b 1",
    "an alias": "a: *b",
    "a tag": "a: !!str 1",
    "a block of text": "a: |\n  b",
    "a text over two lines": "a: b\n  c",
    "an item over two lines": "- a\n  b",
    "a key inside a value": "a: b\n  c: d",
    "an indent that fits nowhere": "a:\n    b: 1\n  c: 2",
    "a mapping in braces": "a: { b: 1 }",
    "a list in brackets": "a: [b]",
    "a list in a list": "- - a",
    "a second document": "a: 1\n---\nb: 2",
    "a key that is no word": "1: a",
    "a key that is null": "null: a",
    "what is very deep": Array.from({ length: 99 }, (_, i) => `${" ".repeat(i)}a:\n`).join("") +
      " ".repeat(99) + "b: 1",
    "an escape": 'a: "\\n"',
    "a doubled quote": "a: 'b''c'",
    "a colon at the end of a word": "a: b: c",
    "text alone": "nothing",
    "letters of other languages": "a: ä",
    "a byte order mark": "\ufeffa: 1",
  })
) {
  Deno.test(`readPlainYaml() leaves ${what} to the parser`, () => {
    assert.equal(readPlainYaml("config.yaml", text), undefined);
  });
}

Deno.test("readPlainYaml() agrees with the parser about thousands of texts, or leaves them", () => {
  const pieces = [
    ..."abzZ019 -:#./\"'[]{}\n~_=+@,$|>&*!?%".split(""),
    "a: ",
    "b:\n",
    "- ",
    "\n  ",
    "\n    ",
    "\nc: ",
    "\n- ",
    "\n  - ",
    "12",
    "0.5",
    "true",
    "null",
    "x y",
    '"q"',
    "'r'",
    " # c",
    "{}",
    "[]",
  ];
  const random = new Random(5);
  let plain = 0;
  for (let round = 0; round < 30_000; round++) {
    let text = "";
    for (let i = random.below(12); i >= 0; i--) text += random.pick(pieces);
    if (readPlainYaml("config.yaml", text)) plain++;
    assertSame(text);
  }
  assert.ok(plain > 300, `only ${plain} were plain`);
});

Deno.test("readPlainYaml() agrees with the parser about a config.yaml with some signs changed", () => {
  const random = new Random(6);
  const signs = " \n-:#'\"{}[]$~0a.";
  let plain = 0;
  for (let round = 0; round < 4_000; round++) {
    let text = CONFIG;
    for (let i = 0; i < 1 + round % 3; i++) {
      const at = random.below(text.length);
      const sign = random.once(5) ? "" : random.pick([...signs]);
      text = text.slice(0, at) + sign + text.slice(at + random.below(2));
    }
    if (readPlainYaml("config.yaml", text)) plain++;
    assertSame(text);
  }
  assert.ok(plain > 300, `only ${plain} were plain`);
});
