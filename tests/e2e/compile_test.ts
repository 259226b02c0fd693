/**
 * What `deno task compile` puts into the standalone binary.
 *
 * Deno downloads the base binary for `deno compile`, so only a machine that reaches its server can
 * start the result. With Deno itself as the base, the module graph and the embedded files are
 * checked all the same.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { wholeGraph } from "../fakes/source_tree.ts";

const ROOT = new URL("../../", import.meta.url);

Deno.test("deno compile embeds every module and every text that the program imports", async () => {
  const directory = await Deno.makeTempDir({ prefix: "engine-binary-" });
  try {
    const embedded = await compile(`${directory}/engine`);
    const modules = (await wholeGraph(new URL("cli/main.ts", ROOT)))
      .filter((module) => module.startsWith(ROOT.href));
    const paths = modules.map((module) => module.slice(ROOT.href.length));
    const missing = paths.filter((path) =>
      !embedded.includes(read(Deno.readFileSync(new URL(path, ROOT))))
    );

    assert.deepEqual(missing, []);
    for (
      const late of ["engine/vm/setup/setup.ts", "cli/commands/trigger.ts", "templates/mod.ts"]
    ) {
      assert.ok(paths.includes(late), late);
    }
    assert.ok(paths.includes("workers/console/dist/console.html"), "the console's page");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

/** Runs the task with another output; what it adds to the base binary. */
async function compile(output: string): Promise<string> {
  const base = await Deno.realPath(Deno.execPath());
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: manifest.tasks.compile.replace("dist/engine", output).split(" ").slice(1),
    cwd: ROOT,
    env: { DENORT_BIN: base, NO_COLOR: "1" },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return read((await Deno.readFile(output)).subarray((await Deno.stat(base)).size));
}

/** Bytes as text, one character each. */
function read(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
