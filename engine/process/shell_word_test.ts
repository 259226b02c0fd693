import assert from "node:assert/strict";
import { shellWord } from "./shell_word.ts";

const ODD = `it's "odd" $HOME \`id\` \\ ; | & * ~ \n\t ü -n #`;

Deno.test("shellWord() makes one word of anything", async () => {
  for (const text of [ODD, "", "'", "''", "'\\''", "\n", "-e", "~", "a b"]) {
    const args = ["-c", `printf '%s|' ${shellWord(text)}`];
    const { stdout } = await new Deno.Command("/bin/sh", { args }).output();

    assert.equal(new TextDecoder().decode(stdout), `${text}|`);
  }
});

Deno.test("shellWord() leaves a word as it is that means nothing else to a shell", () => {
  for (const text of ["src/main.py", "A=b", "user@host:80", "100%"]) {
    assert.equal(shellWord(text), text);
  }
});
