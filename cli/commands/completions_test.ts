import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

for (const shell of ["bash", "zsh", "fish"]) {
  Deno.test(`the ${shell} script knows every command`, async () => {
    const terminal = new FakeTerminal();

    assert.equal(await terminal.run("completions", shell), 0);

    for (
      const word of [
        "trigger",
        "create",
        "completions",
        "restart",
        "exec",
        "isolation",
        "accel",
        "timeout-ms",
      ]
    ) {
      assert.ok(terminal.outText.includes(word), word);
    }
    assert.match(terminal.outText, /\/worker\/add/);
  });
}

for (
  const [option, values] of [
    ["/create --template", "quickstart"],
    ["/project/init --template", "bare"],
    ["/worker/add --isolation", "microvm process"],
    ["/worker/add --accel", "auto kvm tcg"],
    ["/worker/add", "--isolation --accel --replicas --force --timeout"],
    ["/worker/exec", "--replica --url --token"],
    ["/worker/start", "--timeout"],
    ["/worker", "restart logs exec"],
    [" --log-level", "debug info warn error"],
    ["/completions", "bash zsh fish"],
  ] as const
) {
  Deno.test(`the bash script offers ${values} behind engine${option}`, async () => {
    const terminal = new FakeTerminal();

    await terminal.run("completions", "bash");

    const line = terminal.outText.split("\n").find((line) => line.includes(`    '${option}')`));
    assert.ok(line?.includes(values), line);
  });
}

Deno.test("an unknown shell is not understood", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("completions", "cmd"), 2);
  assert.match(terminal.errText, /completions for bash, zsh, fish; not for cmd/);
});
