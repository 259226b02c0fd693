/**
 * `deno task test`: everything that has to hold, in the order from quick to slow.
 *
 * Prints each step with its time, and last `N passed, N failed`, the sums over all steps; a check
 * such as the formatter's counts as one. Exit code 1 if anything failed. With words behind it
 * (`deno task test cli`), runs only the steps whose name contains one of them.
 *
 * @module
 */
const ROOT = new URL("../", import.meta.url).pathname;
const STEP_LIMIT_MS = 40 * 60_000;
/** Exit code by which a step says that it cannot run here. */
const SKIPPED = 77;

/** One command, and how its output is counted. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  readonly count: (output: string, code: number) => Count;
}

/** What a step came to. */
interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const deno = Deno.execPath();
const doors = ["mod.ts", "engine/mod.ts"];
const coverage = `${ROOT}coverage`;
const steps: readonly Step[] = [
  { name: "format", command: [deno, "fmt", "--check"], count: asOne },
  { name: "lint", command: [deno, "lint"], count: asOne },
  { name: "types", command: [deno, "check", "."], count: asOne },
  { name: "documentation", command: [deno, "doc", "--lint", ...doors], count: asOne },
  {
    name: "package",
    command: [deno, "publish", "--dry-run", "--allow-dirty", "--quiet"],
    count: asOne,
  },
  { name: "examples", command: [deno, "test", "-A", "--doc", ...doors], count: denoCount },
  {
    name: "tests",
    command: [
      deno,
      "test",
      "-A",
      "--parallel",
      `--coverage=${coverage}`,
      "--coverage-raw-data-only",
    ],
    count: denoCount,
  },
  { name: "coverage", command: [deno, "run", "-A", "tests/coverage.ts", coverage], count: asOne },
  { name: "python", command: ["bash", "sdk/python/check"], count: pytestCount },
];

const words = Deno.args;
const wanted = steps.filter(({ name }) =>
  words.length === 0 || words.some((word) => name.includes(word))
);
const total = { passed: 0, failed: 0, skipped: 0 };
const summary: string[] = [];
await Deno.remove(coverage, { recursive: true }).catch(() => {}); // There may be none yet.

for (const step of wanted) {
  console.log(`\n── ${step.name}: ${step.command.map(shorten).join(" ")}`);
  const began = performance.now();
  const { output, code } = await run(step.command);
  const count = step.count(output, code);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  total.passed += count.passed;
  total.failed += count.failed;
  total.skipped += count.skipped;
  const ending = `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`;
  summary.push(`${step.name.padEnd(14)} ${ending} (${seconds} s)`);
}

console.log(`\n${summary.join("\n")}\n`);
if (total.skipped > 0) console.log(`${total.skipped} skipped; the reasons are printed above`);
console.log(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);

/** Runs a command, showing what it prints as it comes. */
async function run(command: readonly string[]): Promise<{ output: string; code: number }> {
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const limit = setTimeout(() => child.kill("SIGKILL"), STEP_LIMIT_MS);
  const parts: string[] = [];
  const show = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      parts.push(text);
      await Deno.stdout.write(new TextEncoder().encode(text));
    }
  };
  await Promise.all([show(child.stdout), show(child.stderr)]);
  const { code } = await child.status;
  clearTimeout(limit);
  return { output: parts.join(""), code };
}

function asOne(_output: string, code: number): Count {
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
}

/** Reads `ok | 12 passed (3 steps) | 0 failed | 1 ignored`. */
function denoCount(output: string, code: number): Count {
  const line = [...output.matchAll(/\| (\d+) passed.*?\| (\d+) failed(?:.*?\| (\d+) ignored)?/g)];
  const [, passed = "0", failed = "0", ignored = "0"] = line.at(-1) ?? [];
  return atLeastOneFailure(Number(passed), Number(failed), Number(ignored), code);
}

/** Reads `12 passed, 1 failed, 2 skipped in 3.4s`, in any order. */
function pytestCount(output: string, code: number): Count {
  if (code === SKIPPED) return { passed: 0, failed: 0, skipped: 1 };
  const line = output.split("\n").findLast((line) => / (passed|failed|error).* in /.test(line));
  const number = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(line ?? "")?.[1] ?? 0);
  const failed = number("failed") + number("errors?");
  return atLeastOneFailure(number("passed"), failed, number("skipped"), code);
}

/** A command that failed without counting a failure has failed all the same. */
function atLeastOneFailure(passed: number, failed: number, skipped: number, code: number): Count {
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped };
}

function shorten(word: string): string {
  return word === deno ? "deno" : word.replace(ROOT, "");
}
