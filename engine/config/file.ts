/**
 * Edits of config.yaml that leave the rest of it as it is.
 *
 * An edit removes and inserts lines of text, then reads its own result back; only if that is not
 * the intended content (unusual layouts), the YAML library writes the whole file. Keys and values
 * are not checked here.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Accelerator, Isolation } from "../ports/launcher.ts";
import { invalidFile, type ListChange, problemText, readYaml, rewriteYaml } from "./yaml.ts";

/** Largest config.yaml, in bytes: the engine's only thread reads it. */
export const CONFIG_BYTES_MAX = 256 * 1024;
/** Programs that opened config.yaml before the engine replaced it may write to it this long. */
const LATE_WRITE_MS = 20;

/** Keys that a request to add a directory may set. */
export interface WorkerKeys {
  readonly isolation?: Isolation;
  readonly accel?: Accelerator | "auto";
  readonly replicas?: number;
}

/** An item of `workers` as the file has it. */
export interface NewWorkerEntry extends WorkerKeys {
  readonly name: string;
  /** Relative to config.yaml. */
  readonly path?: string;
  /** Configuration of a built-in worker. */
  readonly config?: JsonObject;
}

/**
 * The text with one more worker at the end of the list. Does not look for the name.
 *
 * @throws {EngineError} `config_invalid` when the text is not a mapping with a list of workers.
 */
export function addWorkerEntry(text: string, entry: NewWorkerEntry): string {
  const { name, path, isolation, accel, replicas, config } = entry;
  const item: JsonObject = {
    name,
    ...path !== undefined && { path },
    ...isolation && { isolation },
    ...accel && { accel },
    ...replicas && { replicas },
    ...config && { config },
  };
  return edit(text, { type: "add", item }, (lines, list) => {
    const dash = " ".repeat(list?.dashColumn ?? 2);
    const added = blockOf(item).map((line, i) => `${dash}${i === 0 ? "- " : "  "}${line}`);
    if (!list) return [...withoutTrailingBlank(lines), "workers:", ...added];
    const head = emptyHead(lines[list.keyLine]!);
    if (list.items.length === 0 && head === undefined) return undefined;
    const end = list.items.at(-1)?.end ?? list.keyLine + 1;
    const before = lines.slice(0, end);
    if (list.items.length === 0) before[list.keyLine] = head!;
    return [...before, ...added, ...lines.slice(end)];
  });
}

/**
 * The text without the worker of that name; comments above it stay.
 *
 * @throws {EngineError} `config_invalid`; `NOT_FOUND` when no item has the name.
 */
export function removeWorkerEntry(text: string, name: string): string {
  const index = indexOfWorker(text, name);
  return edit(text, { type: "remove", index }, (lines, list) => {
    const item = list?.items[index];
    if (!list || !item) return undefined;
    const left = [...lines.slice(0, item.start), ...lines.slice(item.end)];
    if (list.items.length > 1) return left;
    const comment = /\s#.*$/.exec(left[list.keyLine]!)?.[0] ?? "";
    left[list.keyLine] = `workers: []${comment}`;
    return left;
  });
}

/**
 * The text with these keys of one worker; the item stays in its place, and its other keys stay.
 *
 * @throws {EngineError} `config_invalid`; `NOT_FOUND` when no item has the name.
 */
export function changeWorkerKeys(text: string, name: string, keys: WorkerKeys): string {
  const index = indexOfWorker(text, name);
  return Object.entries(keys).reduce(
    (edited, [key, value]) => setKey(edited, index, key, value),
    text,
  );
}

function setKey(text: string, index: number, key: string, value: string | number): string {
  return edit(text, { type: "set", index, key, value }, (lines, list) => {
    const item = list?.items[index];
    if (!list || !item) return undefined;
    const own = new RegExp(`^(\\s*(?:- +)?${key}\\s*:\\s*)[\\w"'-]+`);
    const at = lines.findIndex((line, i) => i >= item.start && i < item.end && own.test(line));
    if (at >= 0) return lines.with(at, lines[at]!.replace(own, `$1${value}`));
    const last = lines.slice(item.start, item.end).findLastIndex((line) => /^\s*[^\s#]/.test(line));
    const added = `${" ".repeat(list.dashColumn + 2)}${key}: ${value}`;
    return lines.toSpliced(item.start + last + 1, 0, added);
  });
}

/**
 * The text with these keys in the configuration of one worker; its other keys stay.
 *
 * @throws {EngineError} `config_invalid`; `NOT_FOUND` when no item has the name.
 */
export function changeWorkerConfig(text: string, name: string, config: JsonObject): string {
  const index = indexOfWorker(text, name);
  const item = (read(text).workers as Json[])[index] as JsonObject;
  const value = { ...item.config as JsonObject | null | undefined, ...config };
  // Values may have many layouts: the library writes them.
  return edit(text, { type: "set", index, key: "config", value }, () => undefined);
}

/**
 * The text of config.yaml; `undefined` when there is no such file.
 *
 * @throws {EngineError} `config_invalid` when it cannot be read, or is larger than
 * {@linkcode CONFIG_BYTES_MAX}.
 */
export async function readConfigFile(path: string): Promise<string | undefined> {
  try {
    checkSize(path, (await Deno.stat(path)).size);
    return await Deno.readTextFile(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    if (thrown instanceof EngineError) throw thrown;
    const problem = problemText("config.yaml", `a file at ${path}`, String(thrown));
    throw invalidFile("config_invalid", path, [problem]);
  }
}

/** @throws {EngineError} `config_invalid` when a config.yaml of this size is not read. */
export function checkSize(path: string, bytes: number): void {
  if (bytes <= CONFIG_BYTES_MAX) return;
  const problem = problemText("config.yaml", `at most ${CONFIG_BYTES_MAX} bytes`, `${bytes}`);
  throw invalidFile("config_invalid", path, [problem]);
}

/**
 * Replaces a file atomically: a reader sees the old text or the new one. A link stays a link, and
 * the mode is kept. Fails when the file has another text than `before` by now, or when there is one
 * although `before` is left out; what another program wrote stays.
 *
 * @throws {EngineError} `config_conflict` when the file differs from `before`.
 */
export async function writeConfigFile(path: string, text: string, before?: string): Promise<void> {
  const target = await Deno.realPath(path).catch(() => path);
  const mode = await Deno.stat(target).then((info) => info.mode, () => null);
  const temporary = `${target}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  try {
    // No other user may read it before it has its mode: it may contain a token.
    await Deno.writeTextFile(temporary, text, { createNew: true, mode: 0o600 });
    await Deno.chmod(temporary, (mode ?? 0o644) & 0o7777);
    if (!await replaceFile(temporary, target, before)) {
      const message = `${path} was changed by another program at the same moment; try again`;
      throw new EngineError("config_conflict", message);
    }
  } finally {
    await Deno.remove(temporary).catch(() => {}); // It has become the file.
  }
}

/** Removes the file if it still has this text. */
export async function removeConfigFile(path: string, text: string): Promise<void> {
  if (await readConfigFile(path) === text) await Deno.remove(path);
}

/**
 * Puts one file in the place of another; returns whether that one had the text `before`.
 *
 * A program that opened the old file may still write to it. So the old file keeps a second name
 * for a moment, and returns to its place if it was written to. Until the new file is in place all
 * calls are synchronous, so that other programs have microseconds to come in between.
 */
async function replaceFile(source: string, target: string, before?: string): Promise<boolean> {
  if (before === undefined) return linkTo(source, target);
  const text = await Deno.readTextFile(source);
  const old = `${source}.old`;
  if (!linkTo(target, old)) return false;
  try {
    if (Deno.readTextFileSync(old) !== before || !isOneFile(old, target)) return false;
    Deno.renameSync(source, target);
    for (const waitMs of [0, LATE_WRITE_MS]) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (Deno.readTextFileSync(old) === before) continue;
      // Not over a file that came later.
      if (Deno.readTextFileSync(target) === text) Deno.renameSync(old, target);
      return false;
    }
    return true;
  } finally {
    await Deno.remove(old).catch(() => {}); // It has its place again.
  }
}

/** Gives a file a further name; `false` when there is no such file, or the name is taken. */
function linkTo(path: string, name: string): boolean {
  try {
    Deno.linkSync(path, name);
    return true;
  } catch (thrown) {
    const { NotFound, AlreadyExists } = Deno.errors;
    if (thrown instanceof NotFound || thrown instanceof AlreadyExists) return false;
    Deno.copyFileSync(path, name); // A file system without such links.
    return true;
  }
}

/** Whether two names are one file, or a copy of it. */
function isOneFile(one: string, other: string): boolean {
  const [a, b] = [Deno.statSync(one), Deno.statSync(other)];
  return a.ino === b.ino || Deno.readTextFileSync(one) === Deno.readTextFileSync(other);
}

/** Lines of one item: `start` is the one with its dash, `end` the first that is not its own. */
interface ItemLines {
  readonly start: number;
  readonly end: number;
}

/** The lines of the list `workers`, if it is a block or empty. */
interface ListLines {
  readonly keyLine: number;
  readonly dashColumn: number;
  readonly items: readonly ItemLines[];
}

type CutLines = (lines: string[], list: ListLines | undefined) => string[] | undefined;

function edit(text: string, change: ListChange, cut: CutLines): string {
  const value = read(text);
  const wanted = JSON.stringify(applied(value, change));
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(end);
  const edited = cut(lines, findList(lines))?.join(end);
  const whole = edited === undefined || edited.endsWith(end) ? edited : edited + end;
  const fits = (result: string): boolean => {
    const { value, problems } = readYaml("config.yaml", result);
    return problems.length === 0 && JSON.stringify(value) === wanted;
  };
  return whole !== undefined && fits(whole) ? whole : rewriteYaml(text, "workers", change);
}

function read(text: string): JsonObject {
  const { value, problems } = readYaml("config.yaml", text);
  if (problems.length > 0) throw invalidFile("config_invalid", "config.yaml", problems);
  if (value === null) return {};
  const list = typeof value === "object" && !Array.isArray(value) ? value.workers ?? [] : undefined;
  if (Array.isArray(list)) return value as JsonObject;
  const problem = "config.yaml: expected a mapping whose workers are a list, received another one";
  throw invalidFile("config_invalid", "config.yaml", [problem]);
}

function applied(value: JsonObject, change: ListChange): Json {
  const workers = [...(value.workers ?? []) as Json[]];
  if (change.type === "add") workers.push(change.item);
  else if (change.type === "remove") workers.splice(change.index, 1);
  else {
    const item = { ...workers[change.index] as JsonObject, [change.key]: change.value };
    workers[change.index] = item;
  }
  return { ...value, workers };
}

function indexOfWorker(text: string, name: string): number {
  const workers = (read(text).workers ?? []) as Json[];
  const index = workers.findIndex((item) => (item as JsonObject | null)?.name === name);
  if (index >= 0) return index;
  throw new EngineError("NOT_FOUND", `config.yaml has no worker ${name}`);
}

function findList(lines: readonly string[]): ListLines | undefined {
  const keyLine = lines.findIndex((line) => /^(workers|"workers"|'workers')\s*:/.test(line));
  if (keyLine < 0) return undefined;
  const items: ItemLines[] = [];
  let dashColumn = -1;
  for (let i = keyLine + 1; i < lines.length; i++) {
    const column = lines[i]!.search(/\S/);
    if (column < 0 || lines[i]![column] === "#") continue;
    const isDash = /^-(\s|$)/.test(lines[i]!.slice(column));
    if (dashColumn < 0 && isDash) dashColumn = column;
    if (column < dashColumn || dashColumn < 0 || (column === dashColumn && !isDash)) break;
    if (column === dashColumn) items.push({ start: i, end: endOfItem(lines, i, column) });
  }
  return { keyLine, dashColumn: dashColumn < 0 ? 2 : dashColumn, items };
}

/** Blank lines and comments that are not indented deeper than the dash belong to the next item. */
function endOfItem(lines: readonly string[], start: number, dashColumn: number): number {
  let end = start + 1;
  for (let i = start + 1; i < lines.length; i++) {
    const column = lines[i]!.search(/\S/);
    if (column < 0) continue;
    if (column <= dashColumn) break;
    end = i + 1;
  }
  return end;
}

/** The line of the key without an empty value, if the value is one. */
function emptyHead(line: string): string | undefined {
  const parts = /^([^:]+:)\s*(?:\[\s*\]|~|null)?(\s*#.*)?$/.exec(line);
  return parts ? `${parts[1]}${parts[2] ?? ""}` : undefined;
}

function withoutTrailingBlank(lines: readonly string[]): string[] {
  return lines.slice(0, lines.findLastIndex((line) => line.trim() !== "") + 1);
}

/** A mapping as lines of block YAML; a list in it takes one line. */
function blockOf(value: JsonObject): string[] {
  return Object.entries(value).flatMap(([key, member]) => {
    const head = `${scalar(key)}:`;
    if (member === null || typeof member !== "object") return [`${head} ${scalar(member)}`];
    const inner = Array.isArray(member) ? [] : blockOf(member);
    if (inner.length === 0) return [`${head} ${JSON.stringify(member)}`];
    return [head, ...inner.map((line) => `  ${line}`)];
  });
}

function scalar(value: Json): string {
  if (typeof value !== "string" || !/^[A-Za-z./_][\w./-]*$/.test(value)) {
    return JSON.stringify(value);
  }
  return readYaml("", value).value === value ? value : JSON.stringify(value);
}
