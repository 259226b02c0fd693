import assert from "node:assert/strict";
import { LiveShell } from "./live_shell.ts";

/** A shell whose program is `sh -c`, so that a test says in its arguments what is run. */
function setup() {
  const said: string[] = [];
  const shell = new LiveShell({
    name: "sh",
    command: ["sh", "-c"],
    directory: "/",
    env: { ANSWER: "42" },
    say: (line) => said.push(line),
  });
  return { said, shell };
}

Deno.test("LiveShell.run() shows the command, then what it printed, and hands it out", async () => {
  const { said, shell } = setup();

  const outcome = await shell.run(['echo "a $ANSWER"; printf "no newline"; exit 3']);

  assert.deepEqual(outcome, { code: 3, stdout: "a 42\nno newline\n", stderr: "" });
  assert.deepEqual(said, [
    `$ sh 'echo "a $ANSWER"; printf "no newline"; exit 3'`,
    "  a 42",
    "  no newline",
  ]);
});

Deno.test("LiveShell keeps what it does not show", async () => {
  const { said, shell } = setup();

  const outcome = await shell.run(["echo out; echo log >&2"], { outOnly: true });
  await shell.run(["echo hidden"], { quiet: true });

  assert.equal(outcome.stderr, "log\n");
  assert.deepEqual(said.slice(1), ["  out"]);
});

Deno.test("LiveShell.start() tells when a text was printed, or never will be", async () => {
  const { shell } = setup();
  const process = shell.start(["echo ready; exec sleep 600"]);

  assert.equal(await process.sees("ready"), true);
  const never = process.sees("steady");
  process.kill("SIGKILL");

  assert.equal(await never, false);
  assert.match(process.printed, /ready/);
  await process.ended;
  process.kill("SIGKILL");
});

Deno.test("LiveShell.runUntil() repeats quietly until the outcome is accepted", async () => {
  const { said, shell } = setup();
  const file = await Deno.makeTempFile();

  const outcome = await shell.runUntil(
    [`echo x >> ${file}; wc -l < ${file}`],
    ({ stdout }) => stdout.trim() === "3",
    30_000,
  );

  assert.equal(outcome.stdout.trim(), "3");
  assert.equal(said.length, 2);
  await Deno.remove(file);
});

Deno.test("LiveShell.runUntil() gives up", async () => {
  const { said, shell } = setup();

  await assert.rejects(() => shell.runUntil(["echo no"], () => false, 0), /no other outcome/);
  assert.deepEqual(said, ["$ sh 'echo no'", "  no"]);
});
