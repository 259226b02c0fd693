import assert from "node:assert/strict";
import {
  askProgram,
  describeEnd,
  findProgram,
  inTerminal,
  pathOutside,
  requireProgram,
  shellWord,
} from "./programs.ts";

const PYTHON = { name: "python3", advice: "install Python" };

/** A directory with a program `tool` and a file `text` that cannot be run. */
async function setup() {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/tool`, "#!/bin/sh\n", { mode: 0o755 });
  await Deno.writeTextFile(`${directory}/text`, "", { mode: 0o644 });
  const remove = () => Deno.remove(directory, { recursive: true });
  return { directory, [Symbol.asyncDispose]: remove };
}

Deno.test("findProgram() takes the first executable file on the PATH", async () => {
  await using there = await setup();
  const { directory } = there;

  const path = `/nowhere::${directory}:/bin`;

  assert.equal(await findProgram("tool", path), `${directory}/tool`);
  assert.equal(await findProgram("text", path), undefined);
  assert.equal(await findProgram("tool", ""), undefined);
});

Deno.test("requireProgram() names the worker, the program and what to install", async () => {
  await assert.rejects(requireProgram(PYTHON, "/nowhere", "math"), {
    code: "launch_failed",
    message: "Worker math needs python3, which is not on the PATH; install Python",
    details: { program: "python3" },
  });
  await requireProgram(PYTHON, Deno.env.get("PATH")!, "math");
});

Deno.test("pathOutside() leaves out folders that lie, or whose programs lie, in a writable directory", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  for (const folder of ["w/bin", "linked", "fine", "w-2"]) {
    await Deno.mkdir(`${root}/${folder}`, { recursive: true });
  }
  await Deno.writeTextFile(`${root}/w/bin/node`, "");
  await Deno.symlink(`${root}/w/bin/node`, `${root}/linked/node`);
  await Deno.symlink(`${root}/w/bin`, `${root}/alias`);
  await Deno.symlink(`${root}/w`, `${root}/other-name`);
  const folders = ["w/bin", "w", "linked", "alias", "fine", "w-2", "missing"];
  const path = folders.map((folder) => `${root}/${folder}`).join(":");
  const left = ["fine", "w-2", "missing"].map((folder) => `${root}/${folder}`).join(":");

  assert.equal(await pathOutside(`${path}:.:bin:`, [`${root}/w`], ["node"]), left);
  assert.equal(await pathOutside(path, [`${root}/other-name`], ["node"]), left);
  assert.equal(await pathOutside(path, [], ["node"]), path);
  await Deno.remove(root, { recursive: true });
});

/** Asks a `node` that is this script. */
async function ask(script: string, limitMs?: number): Promise<string> {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  try {
    await Deno.writeTextFile(`${directory}/node`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const env = { PATH: `${directory}:/usr/bin:/bin` };
    const question = { worker: "w", program: "node", args: ["a b", "c"], directory, env } as const;
    return await askProgram(question, (text) => text === "" ? undefined : text, limitMs);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("askProgram() returns what a program prints, and passes arguments unchanged", async () => {
  assert.equal(await ask(`printf ' %s|' "$@"`), "a b| c|");
});

for (
  const [what, script, said] of [
    ["fails", "echo no; echo why >&2; echo because >&2; exit 1", "because"],
    ["prints nothing usable", "echo odd >&2", "odd"],
    ["fails silently", "exit 1", ""],
  ] as const
) {
  Deno.test(`askProgram() reports the last error line of a program that ${what}`, async () => {
    await assert.rejects(ask(script), {
      code: "launch_failed",
      message: `Worker w needs node, which does not run here: ${said}`,
    });
  });
}

Deno.test("askProgram() does not wait for a program that gives no answer", {
  // The killed program is not awaited, so it may end after this.
  sanitizeOps: false,
  sanitizeResources: false,
}, async () => {
  await assert.rejects(ask("exec sleep 1000", 100), {
    code: "launch_failed",
    message: "Worker w needs node, which does not run here: it gave no answer within 0.1 s",
  });
});

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

Deno.test("inTerminal() quotes the words of a command and has a shell of its own", async () => {
  const tty = { columns: 91, rows: 17, term: "xterm-256color" };
  const plain = { command: ["a b", "it's"], env: { SHELL: "/bin/fish", A: "1" } };
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/script`, "", { mode: 0o755 });

  const linux = await inTerminal(plain, tty, { os: "linux", path: directory });
  const darwin = await inTerminal(plain, tty, { os: "darwin", path: directory });

  const run = "stty echo rows 17 columns 91 2>/dev/null; exec 'a b' 'it'\\''s'";
  assert.deepEqual(linux.command, [`${directory}/script`, "-qfec", run, "/dev/null"]);
  assert.deepEqual(darwin.command.slice(1), ["-q", "/dev/null", "/bin/sh", "-c", run]);
  assert.deepEqual(linux.env, { SHELL: "/bin/sh", A: "1", TERM: "xterm-256color" });
  await Deno.remove(directory, { recursive: true });
  await assert.rejects(inTerminal(plain, tty, { path: directory }), {
    code: "launch_failed",
    message: /needs the program script.*leave out --tty$/,
  });
});

Deno.test("describeEnd() appends the reason", () => {
  const reason = "out of memory (128 MiB)";

  assert.equal(
    describeEnd({ code: null, signal: "SIGKILL", reason }),
    `signal SIGKILL (${reason})`,
  );
  assert.equal(describeEnd({ code: 1, signal: null, reason }), `exit code 1 (${reason})`);
  assert.equal(describeEnd({ code: null, signal: null, reason }), reason);
  assert.equal(describeEnd({ code: null, signal: null }), "an unknown exit status");
});

Deno.test("describeEnd() distinguishes exit codes and signals", () => {
  assert.equal(describeEnd({ code: 1, signal: null }), "exit code 1");
  assert.equal(describeEnd({ code: null, signal: "SIGKILL" }), "signal SIGKILL");
  assert.match(describeEnd({ code: 127, signal: null }), /127 \(a program that it needs was not/);
});
