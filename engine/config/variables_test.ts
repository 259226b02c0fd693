import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { parseConfig } from "./config.ts";
import { INSERTED_BYTES_MAX, variablesOf } from "./variables.ts";

async function setup(files: Readonly<Record<string, string>>) {
  const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-variables-" }));
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${directory}/${name}`, text);
  }
  return {
    path: `${directory}/config.yaml`,
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

Deno.test("variables come from the environment, then from .env beside the file", async () => {
  await using project = await setup({ ".env": "PORT=5000\nNAME='a # b'\n# no\nexport OTHER=x\n" });

  const [variable] = variablesOf(project.path, { PORT: "6000", EMPTY: "" });

  const names = ["PORT", "NAME", "OTHER", "EMPTY", "MISSING", "__proto__", "constructor"];
  assert.deepEqual(names.map((name) => variable(name)), [
    "6000",
    "a # b",
    "x",
    "",
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("a config.yaml takes numbers and texts from .env and files", async () => {
  await using project = await setup({ ".env": "PORT=5000\n", "token": "s3cret-of-the-shop\n" });
  const text = "engine:\n  port: ${PORT}\n  auth_token: ${file:token}\n";

  const config = parseConfig(text, project.path, builtinWorkers, {});

  assert.equal(config.engine.port, 5000);
  assert.equal(config.engine.auth_token, "s3cret-of-the-shop");
  const listed = config.values.find(({ key }) => key === "engine.auth_token")!;
  assert.deepEqual([listed.value, listed.source, listed.variable], [
    "s3cr…",
    "variable",
    "file:token",
  ]);
});

Deno.test("what a file inserts is hidden in listings, whatever the key", async () => {
  await using project = await setup({ "host": "127.0.0.1-is-here" });

  const { values } = parseConfig(
    "workers:\n  - name: engine-http\n    config: { auth_token: '${file:host}' }\n" +
      "log: { level: info }\nengine: { cluster: { name: a, nats: ['nats://127.0.0.1:1'], " +
      "engine_name: '${file:host}' } }",
    project.path,
    builtinWorkers,
    {},
  );

  assert.equal(values.filter(({ value }) => String(value).includes("is-here")).length, 0);
});

for (
  const [file, reason] of [
    ["missing", /engine\.auth_token: expected the file missing to be readable, received none/],
    ["large", /received it has more than 65536 bytes/],
    [".", /received it is not a file/],
  ] as const
) {
  Deno.test(`a reference to the file ${file} is a problem of the key`, async () => {
    await using project = await setup({ large: "x".repeat(INSERTED_BYTES_MAX + 1) });

    assert.throws(
      () => {
        const text = `engine: { auth_token: "\${file:${file}}" }`;
        parseConfig(text, project.path, builtinWorkers, {});
      },
      (thrown) => {
        assert.ok(thrown instanceof EngineError);
        assert.match(JSON.stringify(thrown.details), reason);
        return true;
      },
    );
  });
}
