/**
 * `deno task test`: every check of the project, from quick to slow.
 *
 * Prints each step with its time, then the ten slowest tests, and last `N passed, N failed`, the sums
 * over all steps; a check such as the formatter's counts as one. Exit code 1 if anything failed.
 *
 * - `deno task test cli` runs only the steps and the test files whose name contains `cli`.
 * - `deno task test --quick` runs format, lint, types and the unit tests: no browser, no microVM, no
 *   program of its own. For work in progress; CI runs everything.
 *
 * @module
 */
import { readSources } from "./fakes/source_tree.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const STEP_LIMIT_MS = 40 * 60_000;
/** Exit code by which a step says that it cannot run here. */
const SKIPPED = 77;
const SLOWEST = 10;
/** Of a command in the output. */
const COMMAND_CHARS_MAX = 200;
/** Unit tests, beside their sources. */
const UNIT_TEST = /^(engine|workers|cli|sdk\/typescript|sdk\/testing)\/.*_test\.tsx?$/;
/** Unit tests that boot machines, or run a whole suite on sockets; only the full run has them. */
const SLOW_UNIT_TEST = /^engine\/(vm\/|transport\/\w+_listener_test)/;
/** Quick tests that read the tree. */
const RULES = [
  ...["tests/layers_test.ts", "tests/tidy_test.ts", "tests/spec_test.ts"],
  ...["tests/docs/reference_test.ts", "tests/docs/links_test.ts"],
];

/** One command, and how its output is counted. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  readonly count: (output: string, code: number) => Count;
}

/** Outcome of a step. */
interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const deno = Deno.execPath();
const doors = ["mod.ts", "engine/mod.ts", "sdk/browser/mod.ts", "sdk/testing/mod.ts"];
/** Their documentation has examples. */
const examples = [
  ...doors,
  ...["logger", "options", "register_worker", "worker", "wire/errors", "typed/standard_schema"]
    .map((name) => `sdk/typescript/${name}.ts`),
  "sdk/browser/client.ts",
  "sdk/testing/engine.ts",
];
const coverage = `${ROOT}coverage`;
const words = Deno.args.filter((word) => word !== "--quick");
const isQuick = words.length < Deno.args.length;
/** More than the machine has cores: many tests wait for processes, sockets and pages. */
const jobs = `${navigator.hardwareConcurrency + 1}`;
/** Types are a step of their own. */
const test = [deno, "test", "-A", "--parallel", "--no-check"];

const format: Step = { name: "format", command: [deno, "fmt", "--check"], count: countAsOne };
const lint: Step = { name: "lint", command: [deno, "lint"], count: countAsOne };
const types: Step = { name: "types", command: [deno, "check", "."], count: countAsOne };
const quick: readonly Step[] = [format, lint, types, {
  name: "unit tests",
  command: [...test, ...isQuick ? await unitTests() : [], ...RULES],
  count: countDeno,
}];
const all: readonly Step[] = [
  format,
  lint,
  types,
  { name: "documentation", command: [deno, "doc", "--lint", ...doors], count: countAsOne },
  {
    name: "package",
    command: [deno, "publish", "--dry-run", "--allow-dirty", "--quiet"],
    count: countAsOne,
  },
  { name: "examples", command: [deno, "test", "-A", "--doc", ...examples], count: countDeno },
  {
    name: "tests",
    command: [
      ...test,
      ...["--preload", "tests/time_limit.ts"],
      ...[`--coverage=${coverage}`, "--coverage-raw-data-only"],
    ],
    count: countDeno,
  },
  {
    name: "coverage",
    command: [deno, "run", "-A", "tests/coverage.ts", coverage],
    count: countAsOne,
  },
  { name: "python", command: ["bash", "sdk/python/check"], count: countPytest },
];

const total = { passed: 0, failed: 0, skipped: 0 };
const summary: string[] = [];
const durations: { readonly seconds: number; readonly name: string }[] = [];
await Deno.remove(coverage, { recursive: true }).catch(() => {}); // There may be none yet.

const steps = chosenSteps();
// The checks of the quick run take one core each; together they keep the machine busy.
if (isQuick) await Promise.all(steps.map(perform));
else for (const step of steps) await perform(step);

const slowest = durations.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
console.log("\nSlowest tests:");
for (const { seconds, name } of slowest) {
  console.log(`${seconds.toFixed(1).padStart(6)} s  ${name}`);
}
console.log(`\n${summary.join("\n")}\n`);
if (total.skipped > 0) console.log(`${total.skipped} skipped; the reasons are printed above`);
console.log(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);

/** The steps that the command line asks for; a word that names no step selects test files. */
function chosenSteps(): readonly Step[] {
  const steps = isQuick ? quick : all;
  if (words.length === 0) return steps;
  const named = steps.filter(({ name }) => words.some((word) => name.includes(word)));
  if (named.length > 0) return named;
  const globs = words.flatMap((word) => [`**/*${word}*_test.ts`, `**/*${word}*/**/*_test.ts`]);
  return [{ name: "tests", command: [...test, ...globs], count: countDeno }];
}

/** Paths of the unit tests of the quick run. */
async function unitTests(): Promise<string[]> {
  return (await readSources()).map(({ path }) => path)
    .filter((path) => UNIT_TEST.test(path) && !SLOW_UNIT_TEST.test(path));
}

/** Runs a step and adds to the sums; in the quick run its output is shown when it ends. */
async function perform(step: Step): Promise<void> {
  const command = step.command.map(shorten).join(" ").slice(0, COMMAND_CHARS_MAX);
  const title = `\n── ${step.name}: ${command}`;
  if (!isQuick) console.log(title);
  const start = performance.now();
  const { output, code } = await run(step.command);
  if (isQuick) console.log(`${title}\n${output}`);
  const count = step.count(output, code);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  total.passed += count.passed;
  total.failed += count.failed;
  total.skipped += count.skipped;
  durations.push(...durationsIn(output));
  const outcome = `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`;
  summary.push(`${step.name.padEnd(14)} ${outcome} (${seconds} s)`);
}

/** Runs a command; in the full run its output is shown as it arrives. */
async function run(command: readonly string[]): Promise<{ output: string; code: number }> {
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    cwd: ROOT,
    env: { NO_COLOR: "1", DENO_JOBS: jobs },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const limit = setTimeout(() => child.kill("SIGKILL"), STEP_LIMIT_MS);
  const parts: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      parts.push(text);
      if (!isQuick) await Deno.stdout.write(new TextEncoder().encode(text));
    }
  };
  await Promise.all([read(child.stdout), read(child.stderr)]);
  const { code } = await child.status;
  clearTimeout(limit);
  return { output: parts.join(""), code };
}

function countAsOne(_output: string, code: number): Count {
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
}

/** Reads `ok | 12 passed (3 steps) | 0 failed | 1 ignored`. */
function countDeno(output: string, code: number): Count {
  const line = [...output.matchAll(/\| (\d+) passed.*?\| (\d+) failed(?:.*?\| (\d+) ignored)?/g)];
  const [, passed = "0", failed = "0", ignored = "0"] = line.at(-1) ?? [];
  return atLeastOneFailure(Number(passed), Number(failed), Number(ignored), code);
}

/** Reads `12 passed, 1 failed, 2 skipped in 3.4s`, in any order. */
function countPytest(output: string, code: number): Count {
  if (code === SKIPPED) return { passed: 0, failed: 0, skipped: 1 };
  const line = output.split("\n").findLast((line) => / (passed|failed|error).* in /.test(line));
  const number = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(line ?? "")?.[1] ?? 0);
  const failed = number("failed") + number("errors?");
  return atLeastOneFailure(number("passed"), failed, number("skipped"), code);
}

/** A command that exits with an error without counting a failure has failed once. */
function atLeastOneFailure(passed: number, failed: number, skipped: number, code: number): Count {
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped };
}

/** Reads `./file_test.ts => name ... ok (1m2s)` of `deno test --parallel`. */
function durationsIn(output: string): { seconds: number; name: string }[] {
  const pattern = /^(\.\/\S+ => .*) \.\.\. (?:ok|FAILED) \((?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?\)$/gm;
  return [...output.matchAll(pattern)].map(([, name, m = "0", s = "0", ms = "0"]) => ({
    name: name!,
    seconds: Number(m) * 60 + Number(s) + Number(ms) / 1000,
  }));
}

function shorten(word: string): string {
  return word === deno ? "deno" : word.replace(ROOT, "");
}
