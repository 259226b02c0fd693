/**
 * House rules that a program can check, one test per file so that a failure names both.
 *
 * An exception is a line in this file with its reason, never a comment in the source.
 *
 * @module
 */
import assert from "node:assert/strict";
import { importsOf, readSources, type SourceFile } from "./fakes/source_tree.ts";

const FILE_LINES_MAX = 600;
/** A suite of one subject may be longer than the subject. */
const TEST_FILE_LINES_MAX = 1000;
const FUNCTION_LINES_MAX = 60;
/** In a `.tsx`, where a component is mostly markup. */
const MARKUP_LINES_MAX = 100;
const LINE_CHARS_MAX = 100;
/** Titles of tests and texts they compare cannot be wrapped. */
const TEST_LINE_CHARS_MAX = 160;

const FOLDER_SOURCES_MAX = 25;
/** One file per thing that is replaced: by tests, or by another implementation. */
const SEAMS_MAX = 30;
const SEAMS = ["tests/fakes", "engine/ports"];

/** Started by a task, a person or another program, so no module imports them. */
const ENTRY_POINTS = new RegExp(
  "^(mod\\.ts|(engine|sdk/browser|sdk/testing)/mod\\.ts|cli/(quickstart/)?main\\.ts|" +
    "cli/install\\.ts|sdk/build_npm\\.ts|sdk/conformance/(main|probe)\\.ts|workers/console/page/main\\.tsx)$",
);

/** Sources without a unit test of their own beside them, and what holds them instead. */
const TESTED_ELSEWHERE: Readonly<Record<string, string>> = {
  "engine/cluster/nats_bus.ts": "tests/cluster/nats_bus_test.ts has it talk to a nats-server",
  "engine/cluster/jet_stream.ts": "tests/cluster/state_log_test.ts runs it on real servers",
  "engine/cluster/jet_stream_log.ts": "tests/cluster/state_log_test.ts runs it on real servers",
  "engine/cluster/postgres.ts": "tests/cluster/state_log_test.ts runs it on a real server",
  "engine/cluster/postgres_log.ts": "tests/cluster/state_log_test.ts runs it on a real server",
  "engine/engine.ts": "tests/e2e/e2e_test.ts starts and stops it whole",
  "engine/version.ts": "one constant",
  "engine/worker_port.ts": "tests/e2e/worker_port_test.ts opens connections and pages",
  "workers/console/web_socket.ts": "server_test.ts beside it opens WebSockets",
  "workers/kit/http/connection.ts": "port_test.ts beside it drives it over sockets",
  "workers/kit/http/response.ts": "port_test.ts beside it compares what clients get",
  "workers/configuration/start.ts": "mod_test.ts beside it starts it",
  "workers/cron/start.ts": "mod_test.ts beside it starts it",
  "workers/pubsub/start.ts": "mod_test.ts beside it starts it",
  "workers/queue/start.ts": "mod_test.ts beside it starts it",
  "workers/stream/start.ts": "mod_test.ts beside it starts it",
  "workers/queue/delayed_jobs.ts": "queues_test.ts beside it lets jobs wait for their time",
  "workers/queue/functions.ts": "mod_test.ts beside it calls each function",
  "workers/queue/job_queue.ts": "queues_test.ts beside it drives it by the port",
  "workers/queue/job_results.ts": "mod_test.ts beside it keeps results and lets them expire",
  "workers/queue/named_queues.ts": "mod_test.ts beside it enqueues to queues by name",
  "cli/main.ts": "tests/e2e/cli_test.ts runs it as a program",
  "cli/quickstart/main.ts": "tests/e2e/quickstart_test.ts runs it as a program",
  "cli/quickstart/jobs_walkthrough.ts": "tests/e2e/quickstart_jobs_test.ts runs all its steps",
  "sdk/typescript/register_worker.ts": "worker_test.ts beside it registers workers",
  "sdk/typescript/typed/standard_schema.ts": "types alone; tests/types/ checks programs",
  "sdk/testing/clock.ts": "engine_test.ts beside it lets time pass",
  "sdk/testing/peers.ts": "engine_test.ts beside it connects workers",
  "sdk/testing/queues.ts": "engine_test.ts beside it runs jobs",
  "sdk/testing/routing.ts": "engine_test.ts beside it makes calls",
  "sdk/testing/triggers.ts": "engine_test.ts beside it fires triggers",
  "sdk/build_npm.ts": "tests/e2e/npm_package_test.ts compares what it built",
  "sdk/package.ts": "tests/packages/ installs what it made",
};

/** Components and hooks of the console's page: tests/console/ drives them in a browser. */
function isComponent(file: SourceFile): boolean {
  return file.path.endsWith(".tsx") ||
    importsOf(file).some(({ specifier }) => specifier === "preact/hooks");
}

/** Run as a whole against both SDKs by sdk/conformance/conformance_test.ts. */
const CONFORMANCE = /^sdk\/conformance\//;

/** Only types, constants and lists, so there is nothing to run. */
const NOTHING_TO_RUN = [
  /^engine\/ports\//,
  /(^|\/)(define|mod|protocol|limits|transport|version|wire)\.ts$/,
];

/**
 * Private words and riddles that the code once had, each with the field's word for it. The words of
 * the wire and other meanings, such as a line of text, do not match. What stands in no document
 * either is in words_test.ts.
 */
const FORBIDDEN_WORDS: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\b(counted|fake|idle|local|recorded|sim|worker|batching)_?lines?\b/i, "connection"],
  [/\b(idle|local|worker|batching) lines?\b|\blines? of (a|the) peer\b/i, "connection"],
  [/\bpart(y|ies)\b/i, "endpoint"],
  [/\brelie(f|fs|ves?|ved|ving)\b/i, "drain"],
  [/\bunasked\b/i, "unexpected, unsolicited"],
  [/\bstrays?\b/i, "orphan process"],
  [/\bmisfits?\b/i, "validation error"],
  [/\bown[ _]?functions?\b/i, "core function"],
  [/\blate[ _]?(names?|fields?)\b/i, "trailing reserved key"],
  [/\bheld[ _]?calls?\b/i, "parked call"],
  [/#inTurn\b/, "#serialize"],
  [/\bwhileWanted\b/, "untilAborted"],
  [/\b(lends?|lent)\b/i, "provide"],
  [/\bplain words\b/i, "fast arguments"],
  [/\bMakes one\b/, "what the thing is"],
  // One detached buffer slows down every access to any: engine/platform/freed_memory.ts.
  [/\.transfer\(/, "no reference to the buffer"],
];

/** The models of the simulation and their world import each other's types. */
const CIRCLES_ALLOWED = /^tests\/simulation\//;

const FORBIDDEN_NAME = /(^|_)(utils?|helpers?|common|manager|base|misc)(_|\.ts$)/;

const sources = await readSources();
const imported = new Set(
  sources.flatMap((file) => importsOf(file).map(({ specifier }) => pathOf(file, specifier))),
);

for (const file of sources) {
  const isTest = isTestFile(file.path);

  Deno.test(`${file.path} is tidy`, () => {
    const problems = [
      ...sizeProblems(file),
      ...wordProblems(file),
      ...isTest ? [] : [...functionProblems(file), ...placeProblems(file)],
    ];

    assert.deepEqual(problems, []);
  });
}

for (const limits of sources.filter(({ path }) => path.endsWith("/limits.ts"))) {
  Deno.test(`every bound in ${limits.path} is shared`, () => {
    const names = [...limits.text.matchAll(/^export const (\w+)/gm)].map((match) => match[1]!);
    const code = sources.filter(({ path }) => path !== limits.path && !isTestFile(path));

    const unshared = names.filter((name) => {
      const users = code.filter(({ text }) => new RegExp(`\\b${name}\\b`).test(text)).length;
      const others = new RegExp(`^export const (?!${name}\\b).*\\b${name}\\b`, "m");
      return users + (others.test(limits.text) ? 1 : 0) < 2;
    });

    assert.deepEqual(unshared, [], "a bound of one file stands in that file");
  });
}

Deno.test(`no folder has more than ${FOLDER_SOURCES_MAX} sources`, () => {
  const counts = new Map<string, number>();
  for (const { path } of sources) {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (!path.endsWith("_test.ts")) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }

  const large = [...counts].filter(([folder, count]) =>
    count > (SEAMS.includes(folder) ? SEAMS_MAX : FOLDER_SOURCES_MAX)
  );

  assert.deepEqual(large, []);
});

Deno.test("no sources import each other in a circle, types included", () => {
  const imports = new Map(
    sources.filter(({ path }) => !CIRCLES_ALLOWED.test(path))
      .map((file) => [file.path, importsOf(file).map((each) => pathOf(file, each.specifier))]),
  );

  assert.deepEqual(circlesIn(imports), []);
});

/** One circle for each import that closes it, as a path of files. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]): void => {
    if (above.includes(path)) {
      circles.push([...above.slice(above.indexOf(path)), path].join(" > "));
    } else if (!done.has(path)) {
      for (const next of imports.get(path) ?? []) visit(next, [...above, path]);
      done.add(path);
    }
  };
  for (const path of imports.keys()) visit(path, []);
  return circles;
}

function pathOf({ path }: SourceFile, specifier: string): string {
  if (specifier === "engine-sdk") return "mod.ts";
  if (specifier === "engine-sdk/browser") return "sdk/browser/mod.ts";
  if (specifier === "engine-sdk/testing") return "sdk/testing/mod.ts";
  return new URL(specifier, `file:///${path}`).pathname.slice(1);
}

for (const door of ["mod.ts", "engine/mod.ts", "sdk/browser/mod.ts", "sdk/testing/mod.ts"]) {
  Deno.test(`${door} offers the names in tests/public_names.json`, async () => {
    const url = new URL("./public_names.json", import.meta.url);
    const committed = JSON.parse(await Deno.readTextFile(url))[door];
    const file = sources.find(({ path }) => path === door)!;

    assert.deepEqual(exportedNames(file.text), committed);
  });
}

function exportedNames(text: string): string[] {
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gms)].map((match) => match[1]!);
  const functions = [...text.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) =>
    name!
  );
  return [...lists, ...functions].flatMap((list) => list.split(","))
    .map((name) => name.replace(/\btype\b/, "").trim().split(" as ").at(-1)!)
    .filter((name) => name !== "").sort();
}

function isTestFile(path: string): boolean {
  return path.startsWith("tests/") || path.endsWith("_test.ts");
}

function sizeProblems({ path, text }: SourceFile): string[] {
  const lines = text.split("\n");
  const charsMax = isTestFile(path) ? TEST_LINE_CHARS_MAX : LINE_CHARS_MAX;
  const problems = lines.flatMap((line, i) =>
    [...line].length > charsMax ? [`line ${i + 1}: longer than ${charsMax}`] : []
  );
  const linesMax = isTestFile(path) ? TEST_FILE_LINES_MAX : FILE_LINES_MAX;
  if (lines.length > linesMax + 1) problems.push(`${lines.length - 1} lines`);
  return problems;
}

function wordProblems({ path, text }: SourceFile): string[] {
  if (path === "tests/tidy_test.ts") return [];
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/\/\/.*$/gm, "");
  const problems: string[] = [];
  if (!path.endsWith("_test.ts") && !/^(#!.*\n)?\/\*\*[\s\S]*?@module/.test(text)) {
    problems.push("no module header");
  }
  if (FORBIDDEN_NAME.test(path.split("/").at(-1)!)) problems.push("a name that says nothing");
  if (/:\s*any\b|<any>|\bas any\b/.test(code)) problems.push("any");
  if (/^export default/m.test(code)) problems.push("default export");
  if (/\.only\(|\bonly:\s*true/.test(code)) problems.push(".only");
  if (/\b(TODO|FIXME|XXX)\b(?!\(#\d)/.test(text)) problems.push("a TODO without an issue");
  if (/Deno\.test\(\s*"[^"]*\b(should|works)\b/.test(text)) problems.push("a test named should");
  const replaced = FORBIDDEN_WORDS.flatMap(([word, instead]) => {
    const found = word.exec(text)?.[0];
    return found === undefined ? [] : [`"${found}" instead of ${instead}`];
  });
  return [...problems, ...replaced];
}

/** Long functions, found by the indentation that the formatter gives them. */
function functionProblems({ path, text }: SourceFile): string[] {
  const lines = text.split("\n");
  const max = path.endsWith(".tsx") ? MARKUP_LINES_MAX : FUNCTION_LINES_MAX;
  const header =
    /^(\s*)(?:(?:export |async |static |get |set |function\b|constructor|#?\w+).*)?\) *(?::.*)?(?:=> )?\{$/;
  return lines.flatMap((line, start) => {
    const match = header.exec(line);
    if (!match || /^\s*(if|for|while|switch|else|\})/.test(line)) return [];
    const end = lines.findIndex((line, i) => i > start && line.startsWith(`${match[1]}}`));
    const length = end - start + 1;
    return length > max ? [`line ${start + 1}: a function of ${length} lines`] : [];
  });
}

function placeProblems(file: SourceFile): string[] {
  const { path } = file;
  const problems: string[] = [];
  if (!ENTRY_POINTS.test(path) && !imported.has(path)) problems.push("imported by nobody");
  const test = path.replace(/\.tsx?$/, "_test.ts");
  const tested = sources.some((file) => file.path === test) ||
    NOTHING_TO_RUN.some((pattern) => pattern.test(path)) || isComponent(file) ||
    CONFORMANCE.test(path) ||
    Object.hasOwn(TESTED_ELSEWHERE, path);
  if (!tested) problems.push(`no ${test}`);
  return problems;
}
