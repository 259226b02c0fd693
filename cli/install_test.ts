import assert from "node:assert/strict";
import { installAdvice } from "./install.ts";

const BIN = "/home/ada/.deno/bin";
const FOUND = `${BIN}/engine`;

Deno.test("installAdvice() names the line for the PATH, by shell", () => {
  for (
    const [shell, file, line] of [
      ["/bin/bash", "~/.bashrc", `export PATH="${BIN}:$PATH"`],
      ["/usr/bin/zsh", "~/.zshrc", `export PATH="${BIN}:$PATH"`],
      ["/usr/bin/fish", "~/.config/fish/config.fish", `fish_add_path --prepend '${BIN}'`],
      ["", "~/.bashrc", `export PATH="${BIN}:$PATH"`],
    ] as const
  ) {
    const text = installAdvice({ bin: BIN, path: "/usr/bin", shell, found: undefined }).join("\n");

    assert.ok(text.includes(`${BIN} is not on your PATH`), text);
    assert.ok(text.includes(`Add to ${file}, and open a new terminal:\n  ${line}\n`), text);
  }
});

Deno.test("installAdvice() says nothing of the PATH when the command is found", () => {
  const path = `/usr/bin:${BIN}`;

  const advice = installAdvice({ bin: BIN, path, shell: "/bin/zsh", found: FOUND });

  assert.equal(advice.length, 1);
  assert.match(advice[0]!, /^Completion .* ~\/\.zshrc:\n {2}source <\(engine completions zsh\)$/);
});

Deno.test("installAdvice() names another command that comes first", () => {
  const path = `/usr/bin:${BIN}`;

  const advice = installAdvice({ bin: BIN, path, shell: "/bin/bash", found: "/usr/bin/engine" });

  assert.match(advice[0]!, /^Your shell runs another command, \/usr\/bin\/engine, since/);
  assert.match(advice[1]!, /put \/home\/ada\/\.deno\/bin first: add to ~\/\.bashrc/);
});
