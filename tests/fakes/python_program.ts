/**
 * Programs that run in a real Python with the SDK's sources.
 *
 * @module
 */

const ROOT = new URL("../../", import.meta.url).pathname;
const PACKAGES = `${ROOT}.ci-cache/python-packages`;

/** The environment in which Python finds the SDK and what it needs. */
export const PYTHON_ENV: Readonly<Record<string, string>> = {
  PYTHONPATH: `${ROOT}sdk/python/src:${PACKAGES}`,
};

/**
 * Whether Python is on the path and finds what the SDK needs, which is installed if it is not
 * there; says that tests are left out if that is not possible.
 */
export async function findPython(test: string): Promise<boolean> {
  const imports = ["-c", "import websockets.asyncio.client"];
  const found = await succeeds(imports) || await install() || await succeeds(imports);
  if (!found) console.log(`left out: ${test} needs python3 with websockets`);
  return found;
}

/** Beside its place first: tests that run at the same time may all find that it is missing. */
async function install(): Promise<boolean> {
  const own = `${PACKAGES}.${Deno.pid}`;
  const args = ["-m", "pip", "install", "--quiet", "--target", own, "websockets>=13.0,<18"];
  if (!await succeeds(args)) return false;
  return await Deno.rename(own, PACKAGES).then(() => true, async () => {
    await Deno.remove(own, { recursive: true });
    return false; // Another one was quicker.
  });
}

async function succeeds(args: readonly string[]): Promise<boolean> {
  const command = new Deno.Command("python3", {
    args: [...args],
    env: PYTHON_ENV,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  return await command.output().then(({ success }) => success, () => false);
}
