/**
 * `engine create` and `engine project init`: a directory to start from.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Template } from "../../templates/mod.ts";
import { UsageError } from "../failure.ts";
import { absolutePath, shellWord } from "../paths.ts";
import type { Terminal } from "../terminal.ts";

const CREATE_EXAMPLES = `
Examples:
  engine create --template quickstart --directory hello
  engine create --template python-worker --directory hello/workers/my-worker

Templates: quickstart, bare (projects); python-worker, typescript-worker (workers of a project).
--force never removes anything; it says which files it writes over.`;

const INIT_EXAMPLES = `
Examples:
  engine project init hello
  engine project init hello --template bare`;

/** Puts the SDK copies below a `.engine` directory; lent by tests. */
export type WriteSdkCopies = (dataDirectory: string) => Promise<unknown>;

/** Adds `engine create` and `engine project init`. */
export function addCreate(
  program: Command,
  terminal: Terminal,
  writeSdkCopies: WriteSdkCopies = writeRealCopies,
): void {
  program.command("create")
    .description("Make a project, or a worker for one, from a template")
    .option("--template <name>", "which template", "quickstart")
    .option("--directory <dir>", "where to put it; made if it is not there")
    .option("--force", "write into a directory that is not empty")
    .addHelpText("after", CREATE_EXAMPLES)
    .action(async ({ template, directory, force }) => {
      if (directory === undefined || directory === "") {
        throw new UsageError("Where to? Such as: engine create --directory hello");
      }
      await create({ template, directory, force: force ?? false, writeSdkCopies }, terminal);
    });
  program.command("project")
    .description("Make projects")
    .addHelpText("after", INIT_EXAMPLES)
    .command("init")
    .description("Make a project in a new directory of that name")
    .argument("<name>", "name of the project and its directory")
    .option("--template <name>", "which template", "quickstart")
    .option("--force", "write into a directory that is not empty")
    .addHelpText("after", INIT_EXAMPLES)
    .action(async (name, { template, force }) => {
      if (name.trim() === "") throw new UsageError("The name of a project cannot be empty");
      await create({ template, directory: name, force: force ?? false, writeSdkCopies }, terminal);
    });
}

interface CreateOptions {
  readonly template: string;
  readonly directory: string;
  readonly force: boolean;
  readonly writeSdkCopies: WriteSdkCopies;
}

async function create(options: CreateOptions, terminal: Terminal): Promise<void> {
  const { templates } = await import("../../templates/mod.ts");
  const { findTemplate, scaffold } = await import("../scaffold.ts");
  const template = findTemplate(templates, options.template);
  const directory = absolutePath(terminal.directory, options.directory);
  const { written, overwritten } = await scaffold({ ...options, template, directory });
  for (const path of written) {
    terminal.out(`  ${overwritten.includes(path) ? "overwritten" : "written"}  ${path}`);
  }
  terminal.out(`Created ${template.name} in ${directory}`);
  for (const line of nextSteps(template, options.directory)) terminal.out(line);
}

function nextSteps(template: Template, directory: string): string[] {
  if (template.kind === "worker") {
    const word = shellWord(pathWord(directory));
    return [
      "",
      "Next, with the engine running:",
      `  engine worker add ${word} --isolation process`,
    ];
  }
  return ["", "Next:", `  cd ${shellWord(directory)}`, "  engine --config config.yaml"];
}

function pathWord(directory: string): string {
  return /^(\/|\.\.?(\/|$))/.test(directory) ? directory : `./${directory}`;
}

async function writeRealCopies(dataDirectory: string): Promise<void> {
  const { writeSdkCopies } = await import("../../engine/mod.ts");
  await writeSdkCopies(dataDirectory);
}
