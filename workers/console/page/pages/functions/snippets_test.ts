import assert from "node:assert/strict";
import { withFields } from "../../../../../cli/payload.ts";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { asCommand, asCurl, asPython, asTypeScript, shellWord } from "./snippets.tsx";

const call = (payload: Json | undefined, function_id = "math::add", namespace = "default") => ({
  function_id,
  namespace,
  payload,
});

/** Payloads that break out of careless quoting. */
const NASTY: Json[] = [
  {},
  { a: 2, b: -3.5, yes: true, none: null },
  { text: 'it\'s $HOME `id` "x" \\ !! \n\t; rm -rf *' },
  { number: "12", word: "true", json: '{"a":1}', empty: "", quoted: '"q"' },
  { "a.b": 1, "c d": 2, "--x": 3, "ключ": 4 },
  { deep: { list: [1, [2, {}], []], more: "x".repeat(100) } },
  JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
  ["a", "'", "\u2028", "😀", "\ud800"],
  "only text",
  "-",
  "@file",
  -5,
  null,
  { big: 1e21, small: 1e-9 },
];

/** The words that a shell makes of a command. */
async function wordsOf(command: string): Promise<string[]> {
  const { stdout, code } = await new Deno.Command("sh", {
    args: ["-c", `w() { for x in "$@"; do printf '%s\\0' "$x"; done; }; ${command}`],
  }).output();
  assert.equal(code, 0, command);
  return new TextDecoder().decode(stdout).split("\0").slice(0, -1);
}

Deno.test("asCommand() writes plain values as key=value", () => {
  assert.equal(asCommand(call({ a: 2, name: "Ann" })), "engine trigger math::add a=2 name=Ann");
  assert.equal(asCommand(call({ note: "two words" })), "engine trigger math::add 'note=two words'");
  assert.equal(asCommand(call({ a: [1] })), `engine trigger math::add --payload='{"a":[1]}'`);
});

Deno.test("asCommand() calls with exactly the payload", async () => {
  for (const payload of NASTY) {
    const command = asCommand(call(payload))!;

    const [id, ...words] = await wordsOf(command.replace(/^engine trigger/, "w"));

    assert.equal(id, "math::add");
    const whole = words.find((word) => word.startsWith("--payload="))?.slice("--payload=".length);
    const read = whole === undefined ? withFields({}, words) : JSON.parse(whole);
    assert.deepEqual(read, payload, command);
  }
});

Deno.test("asCommand() escapes an id that looks like an option or a field", async () => {
  for (const id of ["--help", "a=b", "$(id)", "it's", "a b"]) {
    const [word] = await wordsOf(asCommand(call({}, id))!.replace(/^engine trigger/, "w"));

    const plain = id.startsWith("-") || id.includes("=") ? `--function-id=${id}` : id;
    assert.equal(word, plain);
  }
});

Deno.test("asCommand() is undefined for another namespace", () => {
  assert.equal(asCommand(call({}, "a::b", "other")), undefined);
});

Deno.test("asTypeScript() calls with exactly the payload", async () => {
  for (const payload of NASTY) {
    const program = asTypeScript(call(payload, `it's "x" \${1}`, "shop"));

    assert.deepEqual(await runTypeScript(program), {
      function_id: `it's "x" \${1}`,
      namespace: "shop",
      payload,
    });
  }
  assert.deepEqual(await runTypeScript(asTypeScript(call(undefined))), {
    function_id: "math::add",
  });
});

Deno.test("asTypeScript() is formatted like deno fmt", () => {
  const text = asTypeScript(call({ a: 2, "b-c": ["x"], long: { text: "y".repeat(70), n: null } }));

  assert.equal(
    text,
    `import { registerWorker } from "engine-sdk";

const worker = registerWorker();
const result = await worker.trigger({
  function_id: "math::add",
  payload: {
    a: 2,
    "b-c": ["x"],
    long: {
      text: "${"y".repeat(70)}",
      n: null,
    },
  },
});
console.log(result);
await worker.shutdown();
`,
  );
});

Deno.test({
  name: "Python calls with the very payload, whatever stands in it",
  ignore: !(await hasPython()),
  async fn() {
    const programs = NASTY.map((payload) => asPython(call(payload, `it's "x"`, "shop")));
    const text = `import json, sys, types
class Worker:
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def trigger(self, request): return json.dumps(request)
stub = types.ModuleType("engine_sdk")
stub.register_worker = Worker
sys.modules["engine_sdk"] = stub
for program in json.loads(sys.stdin.read()):
    exec(program)
`;
    const lines = (await pipe("python3", ["-c", text], JSON.stringify(programs))).trim().split(
      "\n",
    );

    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      NASTY.map((payload) => ({ function_id: `it's "x"`, namespace: "shop", payload })),
    );
  },
});

Deno.test("asCurl() sends exactly the request", async () => {
  const request = {
    method: "POST",
    url: "http://127.0.0.1:3111/it's/[1]?a={b}",
    headers: [["content-type", "application/json"], ["x-note", "it's $HOME"]] as [string, string][],
    body: `@file 'x' \n`,
  };

  assert.deepEqual(await wordsOf(asCurl(request).replace(/^curl/, "w")), [
    "--globoff",
    request.url,
    "-H",
    "content-type: application/json",
    "-H",
    "x-note: it's $HOME",
    "--data-raw",
    request.body,
  ]);
});

Deno.test("asCurl() names the method only where curl would use another", () => {
  const url = "http://127.0.0.1:3111/a";
  const curl = (method: string, body?: string) => asCurl({ method, url, headers: [], body });

  assert.equal(curl("GET"), `curl ${url}`);
  assert.equal(curl("HEAD"), `curl --head ${url}`);
  assert.equal(curl("POST", "1"), `curl ${url} \\\n  --data-raw '1'`);
  assert.equal(curl("POST"), `curl -X POST ${url}`);
  assert.equal(curl("PUT", "1"), `curl -X PUT ${url} \\\n  --data-raw '1'`);
  assert.equal(curl("GET", "1"), `curl -X GET ${url} \\\n  --data-raw '1'`);
});

Deno.test("shellWord() leaves simple words without quotes", () => {
  assert.equal(shellWord("math::add"), "math::add");
  assert.equal(shellWord("a b"), "'a b'");
  assert.equal(shellWord(""), "''");
  assert.equal(shellWord("~/x"), "'~/x'");
});

/** What the program asks its worker. */
async function runTypeScript(program: string): Promise<unknown> {
  const body = program.replace(/^import .*$/m, "");
  const run = new Function("registerWorker", "console", `return (async () => {${body}})()`);
  let asked: unknown;
  const worker = { trigger: (request: unknown) => (asked = request), shutdown: () => {} };
  await run(() => worker, { log: () => {} });
  return asked;
}

async function hasPython(): Promise<boolean> {
  try {
    return (await new Deno.Command("python3", { args: ["--version"] }).output()).success;
  } catch {
    return false;
  }
}

async function pipe(program: string, args: string[], input: string): Promise<string> {
  const child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  return new TextDecoder().decode((await child.output()).stdout);
}
