import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

for (const shell of ["bash", "zsh", "fish"]) {
  Deno.test(`the ${shell} script knows every command`, async () => {
    const terminal = new FakeTerminal();

    assert.equal(await terminal.run("completions", shell), 0);

    for (const word of ["trigger", "create", "completions", "restart", "isolation", "timeout-ms"]) {
      assert.ok(terminal.outText.includes(word), word);
    }
    assert.match(terminal.outText, /\/worker\/add/);
  });
}

Deno.test("an unknown shell is not understood", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("completions", "cmd"), 2);
  assert.match(terminal.errText, /completions for bash, zsh, fish; not for cmd/);
});
