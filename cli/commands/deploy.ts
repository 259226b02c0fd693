/**
 * `engine deploy init`: write what runs a project on a server: a container image, a compose file, a
 * systemd unit.
 *
 * The files are the user's from then on; an existing one is overwritten with `--force` only.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { absolutePath } from "../arguments.ts";
import { CommandError, UsageError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { nameFor } from "./create.ts";

const EXAMPLES = `
Examples:
  engine deploy init --docker                a Dockerfile with a health check, not as root
  engine deploy init --compose               the same, and a compose.yaml
  engine deploy init --systemd               a hardened unit, NAME.service
  engine deploy init --systemd --directory /srv/shop --program /usr/local/bin/engine

Each file begins with the commands that use it.`;

interface DeployFlags {
  readonly docker?: boolean | undefined;
  readonly compose?: boolean | undefined;
  readonly systemd?: boolean | undefined;
  readonly directory?: string | undefined;
  readonly program?: string | undefined;
  readonly force?: boolean | undefined;
}

/** Adds `engine deploy`. */
export function addDeploy(program: Command, terminal: Terminal): void {
  program.command("deploy")
    .description("Write files for running a project on a server")
    .addHelpText("after", EXAMPLES)
    .command("init")
    .description("Write a Dockerfile, a compose file or a systemd unit for the project here")
    .option("--docker", "a Dockerfile and a .dockerignore")
    .option("--compose", "these and a compose.yaml")
    .option("--systemd", "a systemd unit, NAME.service")
    .option("--directory <dir>", "where the project is on the server (default: here)")
    .option("--program <path>", "the command engine on the server", "/usr/local/bin/engine")
    .option("--force", "overwrite existing files")
    .addHelpText("after", EXAMPLES)
    .action((flags) => init(flags, terminal));
}

async function init(flags: DeployFlags, terminal: Terminal): Promise<void> {
  if (!flags.docker && !flags.compose && !flags.systemd) {
    throw new UsageError("Which files? Add --docker, --compose or --systemd");
  }
  if (!await isThere(terminal, "config.yaml")) {
    throw new CommandError(
      `${terminal.directory} has no config.yaml; run this in the folder of a project`,
    );
  }
  const files = await filesOf(flags, terminal);
  if (!flags.force) await refuseExisting(Object.keys(files), terminal);
  for (const [path, text] of Object.entries(files)) {
    await terminal.writeFile(path, text);
    terminal.out(`  written  ${path}`);
  }
  if (await isThere(terminal, ".env")) {
    terminal.err("The image leaves .env out; pass its variables when a container starts");
  }
}

async function filesOf(
  { docker, compose, systemd, directory, program }: DeployFlags,
  terminal: Terminal,
): Promise<Record<string, string>> {
  const { deployTemplates } = await import("../../templates/deploy/mod.ts");
  const { VERSION } = await import("../../engine/mod.ts");
  const name = nameFor(terminal.directory);
  const place = absolutePath(terminal.directory, directory ?? ".");
  for (const [option, path] of [["--directory", place], ["--program", program!]] as const) {
    // A unit has no quotes for every place where these stand.
    if (/^\/[\w@+=:,./-]*$/.test(path)) continue;
    throw new UsageError(`${option}: expected an absolute path without spaces, received ${path}`);
  }
  const values: Readonly<Record<string, string>> = {
    name,
    version: VERSION,
    deno: Deno.version.deno,
    directory: place,
    engine: program!,
  };
  const filled = (text: string): string =>
    text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => values[key]!);
  const { dockerfile, dockerignore, composeFile, unit } = deployTemplates;
  return {
    ...(docker || compose) && {
      Dockerfile: filled(dockerfile),
      ".dockerignore": filled(dockerignore),
    },
    ...compose && { "compose.yaml": filled(composeFile) },
    ...systemd && { [`${name}.service`]: filled(unit) },
  };
}

async function refuseExisting(paths: readonly string[], terminal: Terminal): Promise<void> {
  const found: string[] = [];
  for (const path of paths) if (await isThere(terminal, path)) found.push(path);
  if (found.length === 0) return;
  throw new CommandError(
    `Files that exist already: ${found.join(", ")}; overwrite them with --force`,
  );
}

async function isThere(terminal: Terminal, path: string): Promise<boolean> {
  return await terminal.readFile(path).then(() => true, () => false);
}
