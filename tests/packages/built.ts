/**
 * The packages that the tests install: those of `deno task package`, else ones made for the tests.
 *
 * @module
 */
import { buildPython, packNpm, type PythonPackages } from "../../sdk/package.ts";

/** Set by `deno task package`: the directory that has the packages, to build them there. */
const PACKAGES = "ENGINE_PACKAGES";

let tarball: Promise<string> | undefined;
let python: Promise<PythonPackages> | undefined;

/** Path of the npm tarball, which is packed once. */
export function npmTarball(): Promise<string> {
  return tarball ??= directory().then(packNpm);
}

/** Wheel, sdist and tools, which are built once. */
export function pythonPackages(): Promise<PythonPackages> {
  return python ??= directory().then(buildPython);
}

async function directory(): Promise<string> {
  const given = Deno.env.get(PACKAGES);
  if (given !== undefined) return given;
  const made = await Deno.makeTempDir({ prefix: "engine-packages-" });
  globalThis.addEventListener("unload", () => Deno.removeSync(made, { recursive: true }));
  return made;
}
