/**
 * The data directory of a project is its user's alone: folders have the mode 0700, files 0600.
 *
 * What lies in the directory of installed dependencies and of the SDK copies keeps its modes, since
 * programs run from there; no one else gets that far.
 *
 * @module
 */

const PRIVATE_FOLDER_MODE = 0o700;
const PRIVATE_FILE_MODE = 0o600;

/** Folders that hold data only. */
const DATA_FOLDERS = ["logs", "telemetry", "contained", "run"];

/** Makes a data directory if there is none, and takes all rights of others away. */
export function makePrivate(directory: string): void {
  Deno.mkdirSync(directory, { recursive: true, mode: PRIVATE_FOLDER_MODE });
  if (Deno.build.os === "windows") return;
  tighten(directory, PRIVATE_FOLDER_MODE);
  for (const { name, isFile } of entriesOf(directory)) {
    if (isFile) tighten(`${directory}/${name}`, PRIVATE_FILE_MODE);
  }
  for (const folder of DATA_FOLDERS) tightenAll(`${directory}/${folder}`);
}

function tightenAll(folder: string): void {
  const entries = entriesOf(folder);
  if (entries.length > 0) tighten(folder, PRIVATE_FOLDER_MODE);
  for (const { name, isFile, isDirectory } of entries) {
    if (isDirectory) tightenAll(`${folder}/${name}`);
    else if (isFile) tighten(`${folder}/${name}`, PRIVATE_FILE_MODE);
  }
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return []; // There is none, or it is another user's.
  }
}

function tighten(path: string, mode: number): void {
  try {
    if (((Deno.lstatSync(path).mode ?? mode) & 0o777 & ~mode) !== 0) Deno.chmodSync(path, mode);
  } catch {
    // It is gone, or another user's: the folder above keeps others out.
  }
}
