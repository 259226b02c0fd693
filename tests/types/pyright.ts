/**
 * pyright, as an editor checks a Python program of a user.
 *
 * @module
 */
import manifest from "../../deno.json" with { type: "json" };

const ROOT = new URL("../../", import.meta.url).pathname;

/** What pyright printed. */
export interface PyrightOutcome {
  readonly success: boolean;
  readonly text: string;
}

/** Checks programs against the sources of the Python SDK. */
export async function runPyright(
  files: Readonly<Record<string, string>>,
  typeCheckingMode: "strict" | "basic" = "strict",
): Promise<PyrightOutcome> {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${directory}/${name}`, text);
    }
    const options = {
      typeCheckingMode,
      pythonVersion: "3.10",
      extraPaths: [`${ROOT}sdk/python/src`],
      // The package that the SDK imports need not be installed.
      reportMissingModuleSource: false,
    };
    await Deno.writeTextFile(`${directory}/pyrightconfig.json`, JSON.stringify(options));
    const command = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-lock",
        `${manifest.imports.pyright}/pyright`,
        "--project",
        directory,
      ],
      cwd: directory,
      env: { NO_COLOR: "1" },
      stdout: "piped",
      stderr: "piped",
    });
    const { success, stdout, stderr } = await command.output();
    const decoder = new TextDecoder();
    return { success, text: `${decoder.decode(stdout)}${decoder.decode(stderr)}` };
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}
