/**
 * The words and options of `engine worker add`, as requests to the engine.
 *
 * Everything is read before anything is done, so that a word that makes no sense changes nothing.
 *
 * @module
 */
import type { Isolation, WorkerStatus } from "../../../engine/mod.ts";
import type { JsonObject } from "../../../mod.ts";
import { UsageError } from "../../failure.ts";
import { absolutePath, looksLikePath } from "../../paths.ts";
import { withFields } from "../../payload.ts";
import { readNumber, type Terminal } from "../../terminal.ts";

/** What `--isolation` takes. */
export const ISOLATIONS = ["microvm", "process"] as const satisfies readonly Isolation[];
/** What `--accel` takes. */
export const ACCELERATORS = ["auto", "kvm", "tcg"] as const satisfies readonly (
  | "auto"
  | NonNullable<WorkerStatus["accelerator"]>
)[];
/** Most copies of one worker, as the engine has it. */
export const REPLICAS_MAX = 64;

/** Options that say how a directory is to run. */
export interface AddFlags {
  readonly isolation?: string | undefined;
  readonly accel?: string | undefined;
  readonly replicas?: string | undefined;
  readonly force?: true | undefined;
}

/** One worker to add. */
export interface WantedWorker {
  /** As it was typed. */
  readonly word: string;
  /** Payload of `engine::supervisor::add`. */
  readonly request: JsonObject;
}

/**
 * The workers that were typed, in their order.
 *
 * @throws {UsageError} A word or an option makes no sense.
 */
export async function readWanted(
  words: readonly string[],
  flags: AddFlags,
  terminal: Pick<Terminal, "directory" | "readFile">,
): Promise<WantedWorker[]> {
  const options = readOptions(flags);
  const wanted: WantedWorker[] = [];
  for (const { word, fields } of groupWords(words)) {
    const isPath = await isDirectory(word, terminal);
    if (isPath && fields.length > 0) {
      throw new UsageError(
        `${word} is a directory; its configuration is in its engine.worker.yaml`,
      );
    }
    const request: JsonObject = isPath
      ? { path: absolutePath(terminal.directory, word), ...options }
      : { name: word, ...fields.length > 0 ? { config: withFields({}, fields) } : {} };
    wanted.push({ word, request });
  }
  refuseTwice(wanted);
  refuseIdle(wanted, flags);
  return wanted;
}

/** Each worker with the `key=value` words behind it. */
function groupWords(words: readonly string[]): { word: string; fields: string[] }[] {
  const groups: { word: string; fields: string[] }[] = [];
  for (const word of words) {
    if (!isField(word)) groups.push({ word, fields: [] });
    else if (groups.length > 0) groups.at(-1)!.fields.push(word);
    else throw new UsageError(`Which worker is ${word} for? Its name comes first`);
    if (word === "") throw new UsageError("Which worker? Such as: engine worker add ./my-worker");
  }
  return groups;
}

/** A key has no slash, so `./a=b` is a directory. */
function isField(word: string): boolean {
  const key = word.slice(0, Math.max(0, word.indexOf("=")));
  return word.includes("=") && !looksLikePath(key);
}

function readOptions({ isolation, accel, replicas, force }: AddFlags): JsonObject {
  if (accel !== undefined && isolation === "process") {
    throw new UsageError("--accel is for microVMs, so it does not go with --isolation process");
  }
  return {
    ...isolation === undefined ? {} : { isolation: readIsolation(isolation) },
    ...accel === undefined ? {} : { accel: readChoice("--accel", accel, ACCELERATORS) },
    ...replicas === undefined
      ? {}
      : { replicas: readNumber("--replicas", replicas, 1, REPLICAS_MAX) },
    ...force ? { reinstall: true } : {},
  };
}

/**
 * What was typed behind `--isolation`.
 *
 * @throws {UsageError} Naming what is expected.
 */
export function readIsolation(text: string): Isolation {
  return readChoice("--isolation", text, ISOLATIONS);
}

function readChoice<T extends string>(option: string, text: string, known: readonly T[]): T {
  const choice = known.find((each) => each === text);
  if (choice !== undefined) return choice;
  const list = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  throw new UsageError(`${option}: expected ${list}, received ${JSON.stringify(text)}`);
}

async function isDirectory(
  word: string,
  terminal: Pick<Terminal, "readFile">,
): Promise<boolean> {
  if (looksLikePath(word)) return true;
  return await terminal.readFile(`${word}/engine.worker.yaml`).then(() => true, () => false);
}

function refuseTwice(wanted: readonly WantedWorker[]): void {
  const seen = new Set<unknown>();
  for (const { word, request } of wanted) {
    const key = request["path"] ?? request["name"];
    if (seen.has(key)) throw new UsageError(`${word} is there twice`);
    seen.add(key);
  }
}

/** Options that would do nothing to any of them. */
function refuseIdle(wanted: readonly WantedWorker[], flags: AddFlags): void {
  if (wanted.some(({ request }) => request["path"] !== undefined)) return;
  const idle = (["isolation", "accel", "replicas"] as const).find((name) =>
    flags[name] !== undefined
  );
  if (idle === undefined) return;
  const names = wanted.map(({ word }) => word).join(", ");
  throw new UsageError(
    `--${idle} is for workers that are directories; ${names} would be part of the engine`,
  );
}
