import assert from "node:assert/strict";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";

Deno.test("engine worker alone prints the commands there are and is not understood", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("worker"), 2);

  for (
    const command of ["add", "remove", "list", "status", "start", "stop", "restart", "logs", "exec"]
  ) {
    assert.match(terminal.errText, new RegExp(`^ {2}${command} `, "m"));
  }
});
