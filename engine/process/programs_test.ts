import assert from "node:assert/strict";
import {
  askProgram,
  findProgram,
  pathOutside,
  pathWithDeno,
  requireProgram,
  shellWord,
} from "./programs.ts";

/** A directory with a program `tool` and a file `text` that cannot be run. */
async function setup() {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/tool`, "#!/bin/sh\n", { mode: 0o755 });
  await Deno.writeTextFile(`${directory}/text`, "", { mode: 0o644 });
  const remove = () => Deno.remove(directory, { recursive: true });
  return { directory, [Symbol.asyncDispose]: remove };
}

Deno.test("findProgram() takes the first file on the PATH that may be run", async () => {
  await using there = await setup();
  const { directory } = there;

  const path = `/nowhere::${directory}:/bin`;

  assert.equal(await findProgram("tool", path), `${directory}/tool`);
  assert.equal(await findProgram("text", path), undefined);
  assert.equal(await findProgram("tool", ""), undefined);
});

Deno.test("requireProgram() names the worker, the program and what to install", async () => {
  await assert.rejects(requireProgram("python3", "/nowhere", "math"), {
    code: "launch_failed",
    message: "Worker math needs python3, which is not on the PATH; install Python 3.10 or later " +
      "(Debian, Ubuntu: sudo apt install python3 python3-pip)",
    details: { program: "python3" },
  });
  await requireProgram("python3", Deno.env.get("PATH")!, "math");
});

Deno.test("pathWithDeno() leaves a PATH alone that has one", async () => {
  await using there = await setup();
  await Deno.rename(`${there.directory}/tool`, `${there.directory}/deno`);

  assert.equal(await pathWithDeno(there.directory, "/nowhere", "/x/deno"), there.directory);
});

Deno.test("pathWithDeno() adds the engine's own Deno behind the others", async () => {
  await using there = await setup();
  const { directory } = there;

  const path = await pathWithDeno("/nowhere", directory, "/x/deno-1");
  const again = await pathWithDeno("/nowhere", directory, "/x/deno-2");

  assert.equal(path, `/nowhere:${directory}/bin`);
  assert.equal(again, path);
  assert.equal(await Deno.readLink(`${directory}/bin/deno`), "/x/deno-2");
  assert.equal([...Deno.readDirSync(`${directory}/bin`)].length, 1);
  assert.equal(
    await findProgram("deno", await pathWithDeno("", directory)),
    `${directory}/bin/deno`,
  );
});

Deno.test("pathWithDeno() adds nothing for a compiled engine", async () => {
  assert.equal(await pathWithDeno("/nowhere", "/nowhere", null), "/nowhere");
});

Deno.test("pathOutside() leaves out folders in which, or behind whose programs, somebody could write", async () => {
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

Deno.test("askProgram() gives what a program prints, and its arguments as they are", async () => {
  assert.equal(await ask(`printf ' %s|' "$@"`), "a b| c|");
});

for (
  const [what, script, said] of [
    ["fails", "echo no; echo why >&2; echo because >&2; exit 1", "because"],
    ["says nothing that can be read", "echo odd >&2", "odd"],
    ["fails without a word", "exit 1", ""],
  ] as const
) {
  Deno.test(`askProgram() says what a program complains of that ${what}`, async () => {
    await assert.rejects(ask(script), {
      code: "launch_failed",
      message: `Worker w needs node, which does not run here: ${said}`,
    });
  });
}

Deno.test("askProgram() does not wait for a program that gives no answer", {
  // It is told to end and not waited for, so it may end after this.
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
