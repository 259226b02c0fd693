/**
 * What was installed for each worker, in one small file each (`<data>/installed/<worker>.json`).
 *
 * The files lie where no worker can write, so that none can lead the engine astray with a link.
 *
 * @module
 */

/** An installation that was finished. */
export interface Installation {
  /** See {@linkcode dependencyHash}. */
  readonly hash: string;
  /** Name of the folder that was made for it, below the worker's dependencies. */
  readonly folder: string;
}

/** The last one that was finished; `undefined` when there is none. */
export async function readInstallation(
  dataDirectory: string,
  name: string,
): Promise<Installation | undefined> {
  try {
    const text = await Deno.readTextFile(`${dataDirectory}/installed/${name}.json`);
    const { hash, folder } = JSON.parse(text);
    const isName = typeof folder === "string" && /^[\w-]+$/.test(folder);
    return typeof hash === "string" && isName ? { hash, folder } : undefined;
  } catch {
    return undefined; // None, or nothing that can be trusted: then it is done again.
  }
}

/** Writes down that one is finished, in one step. */
export async function writeInstallation(
  dataDirectory: string,
  name: string,
  installation: Installation,
): Promise<void> {
  const folder = `${dataDirectory}/installed`;
  await Deno.mkdir(folder, { recursive: true });
  const temporary = `${folder}/${name}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(installation));
  await Deno.rename(temporary, `${folder}/${name}.json`);
}
