import assert from "node:assert/strict";
import type { ReportFile } from "./report.ts";

const RUN = new URL("run.ts", import.meta.url).pathname;
const HAS_GCC = await new Deno.Command("gcc", { args: ["--version"], stdout: "null" }).output()
  .then(({ success }) => success, () => false);
/** Quick, and needs no engine. */
const QUICK = ["--only", "tracing", "--rounds", "1", "--seconds", "0.3"];

for (const words of [["--only", "nothing"], ["--compare", "/nowhere/bench.json"], ["--fast"]]) {
  Deno.test(`bench ${words.join(" ")} ends with 2 and how to use it`, async () => {
    const { code, stderr } = await bench(words);

    assert.equal(code, 2);
    assert.match(stderr, /deno task bench \[options\]/);
  });
}

Deno.test({
  name: "bench writes what it found, and fails beside an earlier run that was better",
  ignore: Deno.build.os !== "linux" || !HAS_GCC,
  async fn() {
    const directory = await Deno.makeTempDir();
    try {
      const json = `${directory}/now.json`;
      const first = await bench([...QUICK, "--json", json]);
      assert.equal(first.code, 0, first.stderr);
      assert.match(first.stdout, /## Targets\n\n\| target \| measured/);

      const file: ReportFile = JSON.parse(await Deno.readTextFile(json));
      const better = file.findings.map((each) => ({
        ...each,
        value: each.value * (each.better === "more" ? 1e6 : 1e-6),
      }));
      const before = `${directory}/before.json`;
      await Deno.writeTextFile(before, JSON.stringify({ ...file, findings: better }));
      const second = await bench([...QUICK, "--json", json, "--compare", before]);

      assert.equal(second.code, 1, second.stderr);
      const named = second.stderr.match(/^worse by over 15 %: tracing: .*$/gm) ?? [];
      assert.equal(named.length, file.findings.length, second.stderr);
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});

async function bench(words: readonly string[]): Promise<{
  code: number;
  stdout: string;
  stderr: string;
}> {
  const args = ["run", "-A", "--no-check", "--quiet", RUN, ...words];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}
