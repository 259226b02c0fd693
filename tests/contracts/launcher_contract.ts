/**
 * What every launcher promises, as tests that any implementation has to pass.
 *
 * The programs are small shell scripts. An implementation that cannot meet a claim names it in
 * `skips` with the reason.
 *
 * @module
 */
import assert from "node:assert/strict";
import { OUTPUT_LINE_CHARS_MAX } from "../../engine/process/output.ts";
import type { Launcher, LaunchSpec, OutputLine, Running } from "../../engine/ports/launcher.ts";
import { PATIENCE_MS, until } from "../fakes/until.ts";

/** A launcher that a test may use, and a directory that its programs see. */
export interface LauncherUnderTest extends AsyncDisposable {
  readonly launcher: Launcher;
  /** Absolute; programs run in it. */
  readonly directory: string;
  /** Said with each start and stop; see {@linkcode LaunchSpec}. */
  readonly keep?: boolean;
  /** Whether the process with this id still runs such a program. Default: on this machine. */
  isProgram?(pid: number, name: string): Promise<boolean>;
}

/** What an implementation asks of the suite. */
export interface LauncherSuite {
  /** All claims are steps of one test, which opens once: for launchers that take their time. */
  readonly together?: boolean;
  /** Why the suite cannot run here; printed. */
  readonly skipped?: string | undefined;
}

/** A program that was started, and what it has printed. */
interface Started {
  readonly running: Running;
  readonly lines: OutputLine[];
  /** Resolves when a line with this text has come. */
  printed(text: string): Promise<void>;
}

/** Registers the suite for one implementation. */
export function testLauncher(
  name: string,
  open: () => Promise<LauncherUnderTest>,
  { together = false, skipped }: LauncherSuite = {},
): void {
  const claims: { what: string; run: Parameters<Claim>[1] }[] = [];
  const claim: Claim = (what, run) => void claims.push({ what, run });
  for (const add of [testOutput, testEnds, testStop, testExec]) add(claim);
  if (skipped !== undefined) console.log(`${name} is not tested here: ${skipped}`);
  const ignore = skipped !== undefined;
  if (together) {
    Deno.test({ name: `${name} keeps the launchers' contract`, ignore }, async (test) => {
      await using under = await open();
      for (const { what, run } of claims) await test.step(what, () => run(under));
    });
    return;
  }
  for (const { what, run } of claims) {
    Deno.test({ name: `${name} ${what}`, ignore }, async () => {
      await using under = await open();
      await run(under);
    });
  }
}

type Claim = (what: string, run: (under: LauncherUnderTest) => Promise<void>) => void;

function testOutput(claim: Claim): void {
  claim(
    "passes on both streams line by line, also a last line without a line end",
    async (under) => {
      const { running, lines } = await start(under, "echo one; echo two >&2; printf three");

      await running.ended;

      assert.deepEqual(textsOf(lines, "stdout"), ["one", "three"]);
      assert.deepEqual(textsOf(lines, "stderr"), ["two"]);
    },
  );

  claim(
    "runs the command as a shell does, in the directory, with the environment",
    async (under) => {
      const command = `pwd; echo "$GREETING \${MISSING:-x}" | tr a-z A-Z && echo "it's"`;
      const { running, lines } = await start(under, command, { GREETING: "hello 'there'" });

      await running.ended;

      assert.equal(textsOf(lines, "stdout")[0], await Deno.realPath(under.directory));
      assert.deepEqual(textsOf(lines, "stdout").slice(1), ["HELLO 'THERE' X", "it's"]);
    },
  );

  claim("gives a program empty standard input", async (under) => {
    const { running, lines } = await start(under, "cat; echo end");

    await running.ended;

    assert.deepEqual(textsOf(lines, "stdout"), ["end"]);
  });

  claim("bounds lines and accepts bytes that are not text", async (under) => {
    const long = OUTPUT_LINE_CHARS_MAX + 10;
    const command = `head -c ${long} /dev/zero | tr '\\0' x; echo; printf '\\377\\n'`;
    const { running, lines } = await start(under, command);

    await running.ended;

    const texts = textsOf(lines, "stdout");
    assert.deepEqual(texts.map(({ length }) => length), [OUTPUT_LINE_CHARS_MAX, 10, 1]);
    assert.equal(texts[2], "\ufffd");
  });
}

function testEnds(claim: Claim): void {
  claim("reports exit codes", async (under) => {
    const { running } = await start(under, "exit 7");

    assert.deepEqual(await running.ended, { code: 7, signal: null });
  });

  claim("distinguishes a signal from an exit code", async (under) => {
    const { running } = await start(under, "kill -KILL $$");

    assert.deepEqual(await running.ended, { code: null, signal: "SIGKILL" });
  });

  claim("reports a missing command with exit code 127", async (under) => {
    const { running } = await start(under, "no-such-program-anywhere");

    assert.equal((await running.ended).code, 127);
  });

  claim("ends processes that a program leaves behind", async (under) => {
    const { running, lines } = await start(under, "sleep 1000 & echo $!; exit 3");

    assert.deepEqual(await running.ended, { code: 3, signal: null });

    assert.equal(await isAlive(under, lines[0]!.text, "sleep"), false);
  });

  claim("refuses a directory that does not exist", async ({ launcher, directory }) => {
    const spec = specOf(`${directory}/nowhere`, "true");

    await assert.rejects(launcher.start(spec, () => {}), { code: "launch_failed" });
  });
}

function testStop(claim: Claim): void {
  claim("asks a program to exit and lets it finish", async (under) => {
    const command = "trap 'echo leaving; exit 5' TERM; echo up; while :; do sleep 0.05; done";
    const { running, lines, printed } = await start(under, command);
    await printed("up");

    const ended = await running.stop(PATIENCE_MS, keepOf(under));

    assert.deepEqual(ended, { code: 5, signal: null });
    assert.deepEqual(textsOf(lines, "stdout"), ["up", "leaving"]);
  });

  claim("ends a program that does not exit, and all that it started", async (under) => {
    const stubborn = "trap '' TERM; (while :; do sleep 0.1; done) & echo $!; echo up; wait";
    const { running, lines, printed } = await start(under, stubborn);
    await printed("up");

    await running.stop(300, keepOf(under));

    assert.equal(await isAlive(under, lines[0]!.text, "sh"), false);
  });

  claim("stops a program once, however often it is asked, also after its end", async (under) => {
    const { running, printed } = await start(under, "echo up; exec sleep 1000");
    await printed("up");

    const [first, second] = await Promise.all([
      running.stop(5_000, keepOf(under)),
      running.stop(1, keepOf(under)),
    ]);

    assert.deepEqual(first, second);
    assert.deepEqual(await running.stop(1), first);
    assert.deepEqual(await running.ended, first);
  });

  claim("runs several programs at once, each with its own output", async (under) => {
    const numbers = under.keep ? [1, 2] : [1, 2, 3];
    const starts = numbers.map((n) => start(under, `echo ${n}`, {}, `worker-${n}`));
    const programs = await Promise.all(starts);

    await Promise.all(programs.map(({ running }) => running.ended));

    const texts = programs.map(({ lines }) => textsOf(lines, "stdout"));
    assert.deepEqual(texts, numbers.map((n) => [`${n}`]));
  });
}

function testExec(claim: Claim): void {
  claim(
    "runs commands beside a program, as they are, with its directory and environment",
    async (under) => {
      const { running, printed } = await start(under, "echo up; exec sleep 1000", {
        GREETING: "hi",
      });
      await printed("up");

      const script = 'cat; pwd; echo "$GREETING $1"; echo bad >&2; exit 9';
      const first = await exec(running, ["/bin/sh", "-c", script, "sh", `a  'b' "c" $d`]);
      const second = await exec(running, ["true"]);

      assert.deepEqual(first.ended, { code: 9, signal: null });
      const directory = await Deno.realPath(under.directory);
      assert.equal(first.stdout, `${directory}\nhi a  'b' "c" $d\n`);
      assert.equal(first.stderr, "bad\n");
      assert.deepEqual(second.ended, { code: 0, signal: null });
      await running.stop(5_000, keepOf(under));
    },
  );

  claim("ends a command beside a program when its signal comes", async (under) => {
    const { running, printed } = await start(under, "echo up; exec sleep 1000");
    await printed("up");
    const leaving = new AbortController();

    const { ended } = await exec(running, WAITING, leaving.signal, () => leaving.abort());

    assert.deepEqual(ended, { code: null, signal: "SIGTERM" });
    await running.stop(5_000, keepOf(under));
  });

  claim("ends commands with the program, and starts none after it", async (under) => {
    const { running, printed } = await start(under, "echo up; exec sleep 1000");
    await printed("up");
    const waits = Promise.withResolvers<void>();
    const beside = exec(running, WAITING, undefined, waits.resolve);
    await waits.promise;

    await running.stop(5_000, keepOf(under));

    assert.notEqual((await beside).ended.code, 0);
    await assert.rejects(exec(running, ["true"]), { code: "launch_failed" });
  });
}

/** A command that says when it runs, and then does so until it is ended. */
const WAITING = ["/bin/sh", "-c", "echo here; exec sleep 1000"];

/** Runs a command to its end. */
async function exec(
  running: Running,
  command: readonly string[],
  signal = new AbortController().signal,
  onOutput = () => {},
) {
  const printed = { stdout: "", stderr: "" };
  const ended = await running.exec(command, ({ stream, bytes }) => {
    printed[stream] += new TextDecoder().decode(bytes);
    onOutput();
  }, signal);
  return { ...printed, ended };
}

function keepOf({ keep }: LauncherUnderTest): { keep?: boolean } {
  return keep === undefined ? {} : { keep };
}

async function isAlive(under: LauncherUnderTest, pid: string, name: string): Promise<boolean> {
  assert.match(pid, /^\d+$/);
  return await (under.isProgram ?? isProgram)(Number(pid), name);
}

async function start(
  under: LauncherUnderTest,
  command: string,
  env: Record<string, string> = {},
  name = "worker",
): Promise<Started> {
  const lines: OutputLine[] = [];
  const spec = { ...specOf(under.directory, command), env, name, ...keepOf(under) };
  const running = await under.launcher.start(spec, (line) => void lines.push(line));
  const printed = (text: string) => until(() => lines.some((line) => line.text === text));
  return { running, lines, printed };
}

function specOf(directory: string, command: string): LaunchSpec {
  return { name: "worker", command, directory, env: {} };
}

function textsOf(lines: readonly OutputLine[], stream: OutputLine["stream"]): string[] {
  return lines.filter((line) => line.stream === stream).map(({ text }) => text);
}

/** Whether a process with this id runs such a program; one that is only not buried does not. */
export async function isProgram(pid: number, name: string): Promise<boolean> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "");
  return stat.includes(`(${name})`) && !/\) [ZX] /.test(stat);
}
