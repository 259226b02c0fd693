import assert from "node:assert/strict";
import { completionScript, type Place, SHELLS } from "./completion_scripts.ts";

const places: Place[] = [
  {
    path: [],
    candidates: [{ word: "worker", summary: "Workers" }, { word: "--config", summary: "It's it" }],
  },
  {
    path: ["worker"],
    candidates: [{ word: "add", summary: "Add" }, { word: "list", summary: "" }],
  },
  { path: ["worker", "add"], candidates: [{ word: "--force", summary: "Anew" }] },
];

/** What bash offers behind these words; the last one is being typed. */
async function bashOffers(...words: string[]): Promise<string[]> {
  const script = `${completionScript("bash", places)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length - 1}
_engine
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, success } = await new Deno.Command("bash", {
    args: ["--norc", "-c", script],
    stderr: "inherit",
  }).output();
  assert.ok(success);
  return new TextDecoder().decode(stdout).trim().split("\n").filter(Boolean);
}

Deno.test("the bash script offers what fits the place and the letters typed", async () => {
  assert.deepEqual(await bashOffers("engine", ""), ["worker", "--config"]);
  assert.deepEqual(await bashOffers("engine", "wo"), ["worker"]);
  assert.deepEqual(await bashOffers("engine", "worker", ""), ["add", "list"]);
  assert.deepEqual(await bashOffers("engine", "worker", "add", "--"), ["--force"]);
});

Deno.test("the bash script offers nothing for a path, so that bash offers files", async () => {
  assert.deepEqual(await bashOffers("engine", "worker", "add", "./wor"), []);
});

for (const shell of SHELLS) {
  Deno.test(`the ${shell} script names every command and closes its quotes`, () => {
    const script = completionScript(shell, places);

    for (const word of ["worker", "config", "add", "list", "force"]) {
      assert.ok(script.includes(word), word);
    }
    assert.ok(!script.includes("It's"));
    assert.equal(script.split("'").length % 2, 1);
  });
}
