import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

async function setup() {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  return {
    directory,
    terminal: new FakeTerminal({ directory }),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

Deno.test("engine create writes a project and says what to do next", async () => {
  await using test = await setup();

  const code = await test.terminal.run(
    "create",
    "--template",
    "quickstart",
    "--directory",
    "hello",
  );

  assert.equal(code, 0);
  assert.ok(test.terminal.outLines.includes("  written  workers/math-worker/math_worker.py"));
  assert.deepEqual(test.terminal.outLines.slice(-5), [
    `Created quickstart in ${test.directory}/hello`,
    "",
    "Next:",
    "  cd hello",
    "  engine --config config.yaml",
  ]);
  const copy = `${test.directory}/hello/.engine/sdk/typescript/engine_sdk.js`;
  assert.ok((await Deno.stat(copy)).isFile);
});

Deno.test("engine project init makes a directory of the project's name", async () => {
  await using test = await setup();

  assert.equal(await test.terminal.run("project", "init", "shop", "--template", "bare"), 0);
  assert.match(await Deno.readTextFile(`${test.directory}/shop/README.md`), /^# shop\n/);
});

Deno.test("a worker is made with a name of its own, ready to be added", async () => {
  await using test = await setup();
  await test.terminal.run("project", "init", "shop", "--template", "bare");

  const code = await test.terminal.run(
    ...["create", "--template", "typescript-worker", "--directory", "shop/workers/mail"],
  );

  assert.equal(code, 0);
  const worker = `${test.directory}/shop/workers/mail`;
  assert.match(await Deno.readTextFile(`${worker}/engine.worker.yaml`), /^name: mail\n/);
  assert.match(await Deno.readTextFile(`${worker}/deno.json`), /"\.\.\/\.\.\/\.engine\/sdk/);
  assert.equal(
    test.terminal.outLines.at(-1),
    "  engine worker add ./shop/workers/mail --isolation process",
  );
});

Deno.test("what to type next is ready to be typed, whatever the directory is called", async () => {
  await using test = await setup();

  await test.terminal.run("project", "init", "my shop", "--template", "bare");
  const worker = ["--template", "python-worker", "--directory", "my shop/workers/mail"];
  await test.terminal.run("create", ...worker);

  assert.ok(test.terminal.outLines.includes("  cd 'my shop'"));
  assert.equal(
    test.terminal.outLines.at(-1),
    "  engine worker add './my shop/workers/mail' --isolation process",
  );
});

Deno.test("a full directory is refused; --force says what it writes over", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.directory}/README.md`, "mine");

  assert.equal(await test.terminal.run("create", "--directory", "."), 1);
  assert.match(test.terminal.errText, /is not empty \(README\.md\)/);
  assert.equal(await test.terminal.run("create", "--directory", ".", "--force"), 0);
  assert.ok(test.terminal.outLines.includes("  overwritten  README.md"));
});

for (
  const [args, message] of [
    [["create"], /Where to\? Such as: engine create --directory hello/],
    [
      ["create", "--directory", "x", "--template", "huge"],
      /no template "huge"; there are:\n {2}quick/,
    ],
    [["project", "init"], /missing required argument 'name'/],
    [["project", "init", " "], /cannot be empty/],
  ] as const
) {
  Deno.test(`engine ${args.join(" ")} is not understood`, async () => {
    await using test = await setup();

    assert.equal(await test.terminal.run(...args), 2);
    assert.match(test.terminal.errText, message);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(test.directory)), []);
  });
}
