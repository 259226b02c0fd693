/**
 * The file of created tokens, which only the engine's user can read: who got a token, what it
 * allows and until when.
 *
 * It holds hashes: a token is shown once, when it is created. Each change writes a new file in its
 * place, one at a time, so a reader finds a whole one.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isWorkerName, NAME_RULE } from "../config/fields.ts";
import { PATTERN_CHARS_MAX, RULES_MAX } from "../core/access/patterns.ts";

/** Tokens in one file. */
export const TOKENS_MAX = 1_000;
/** Largest file. */
export const TOKEN_FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Longest life of a token: ten years. */
export const EXPIRES_MS_MAX = 315_360_000_000;
/** How long a change waits for another one. */
const LOCK_MS = 5_000;
const SECRET_BYTES = 32;
const ID_BYTES = 6;
const FORMAT = 1;

/** What created tokens look like: a public id and a secret. */
const TOKEN = /^ewt_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

/** A token without its secret. */
export interface TokenInfo {
  /** Chosen by its user; no two tokens that are in force have the same. */
  readonly name: string;
  /** Patterns of functions that it may call and register; `null`: all. */
  readonly allow: readonly string[] | null;
  /** Milliseconds since 1970. */
  readonly created_at_ms: number;
  /** Milliseconds since 1970; `null`: it does not expire. */
  readonly expires_at_ms: number | null;
  /** Milliseconds since 1970; `null`: it was not revoked. */
  readonly revoked_at_ms: number | null;
}

/** A token as the file has it. */
export interface TokenRecord extends TokenInfo {
  /** Part of the token that is not secret. */
  readonly id: string;
  /** SHA-256 of the whole token, in hex. */
  readonly hash: string;
}

/** What a new token is for. */
export interface NewToken {
  /** 1 to 64 letters, digits, -, _ or . */
  readonly name: string;
  /** Patterns of functions that it may call and register. Default: all. */
  readonly allow?: readonly string[];
  /** How long it is valid, in milliseconds. Default: until it is revoked. */
  readonly expires_ms?: number;
}

/** A token that was created; the only time that its text is known. */
export interface CreatedToken {
  /** What clients present. */
  readonly token: string;
  /** What the file knows of it. */
  readonly info: TokenInfo;
}

/** The id of a text that looks like a created token; `undefined` for any other. */
export function tokenIdOf(text: string): string | undefined {
  return TOKEN.exec(text)?.[1];
}

/** The hash of a token. */
export function tokenHash(token: string): string {
  return nodeCrypto.createHash("sha256").update(token).digest("hex");
}

/** Where the tokens of a project are. */
export function tokenPath(dataDirectory: string): string {
  return `${dataDirectory}/tokens.json`;
}

/**
 * Adds a token to the file.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for a name in use or another bad argument;
 * `store_unavailable` when the file cannot be read or written.
 */
export async function createToken(
  path: string,
  wanted: NewToken,
  now: number,
): Promise<CreatedToken> {
  const { name, allow, expires_ms } = wanted;
  checkWanted(wanted);
  const id = nodeCrypto.randomBytes(ID_BYTES).toString("hex");
  const token = `ewt_${id}_${nodeCrypto.randomBytes(SECRET_BYTES).toString("base64url")}`;
  const info: TokenInfo = {
    name,
    allow: allow ?? null,
    created_at_ms: now,
    expires_at_ms: expires_ms === undefined ? null : now + expires_ms,
    revoked_at_ms: null,
  };
  await change(path, (records) => {
    const kept = records.filter((each) => each.name !== name);
    const before = records.find((each) => each.name === name);
    if (before && tokenState(before, now) === "valid") {
      throw invalid(
        `Token ${name} exists already; revoke it first: engine token revoke ${name}`,
      );
    }
    if (kept.length >= TOKENS_MAX) {
      throw invalid(
        `There are ${TOKENS_MAX} tokens already, the maximum; revoke one: engine token revoke NAME`,
      );
    }
    return [...kept, { id, hash: tokenHash(token), ...info }];
  });
  return { token, info };
}

/**
 * Revokes a token; engines that run notice it within a second.
 *
 * @throws {EngineError} `NOT_FOUND`, `store_unavailable`.
 */
export async function revokeToken(path: string, name: string, now: number): Promise<TokenInfo> {
  let revoked: TokenRecord | undefined;
  await change(path, (records) =>
    records.map((record) => {
      if (record.name !== name) return record;
      revoked = { ...record, revoked_at_ms: record.revoked_at_ms ?? now };
      return revoked;
    }), () => {
    if (revoked) return;
    throw new EngineError("NOT_FOUND", `There is no token ${name}; see engine token list`);
  });
  return infoOf(revoked!);
}

/**
 * All tokens, oldest first.
 *
 * @throws {EngineError} `store_unavailable` when the file cannot be read.
 */
export function listTokens(path: string): TokenInfo[] {
  return readTokens(path).map(infoOf);
}

/** Whether a token may be used. */
export function tokenState(
  { expires_at_ms, revoked_at_ms }: TokenInfo,
  now: number,
): "valid" | "expired" | "revoked" {
  if (revoked_at_ms !== null) return "revoked";
  return expires_at_ms !== null && expires_at_ms <= now ? "expired" : "valid";
}

/**
 * The content of the file; nothing when there is none.
 *
 * @throws {EngineError} `store_unavailable`.
 */
export function readTokens(path: string): TokenRecord[] {
  let text: string;
  try {
    const { size } = Deno.statSync(path);
    if (size > TOKEN_FILE_BYTES_MAX) throw new Error(`it has ${size} bytes`);
    text = Deno.readTextFileSync(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    throw unreadable(path, (thrown as Error).message);
  }
  try {
    const { format, tokens } = JSON.parse(text);
    if (format !== FORMAT || !Array.isArray(tokens) || !tokens.every(isRecord)) {
      throw new Error("it has another format");
    }
    return tokens;
  } catch (thrown) {
    throw unreadable(path, (thrown as Error).message);
  }
}

function isRecord(value: unknown): value is TokenRecord {
  if (value === null || typeof value !== "object") return false;
  const { id, hash, name, allow, created_at_ms, expires_at_ms, revoked_at_ms } = value as Record<
    string,
    unknown
  >;
  const isTime = (time: unknown): boolean => time === null || Number.isFinite(time);
  return typeof id === "string" && /^[0-9a-f]{12}$/.test(id) &&
    typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash) &&
    typeof name === "string" && isWorkerName(name) && Number.isFinite(created_at_ms) &&
    isTime(expires_at_ms) && isTime(revoked_at_ms) &&
    (allow === null || (Array.isArray(allow) && allow.every((each) => typeof each === "string")));
}

function checkWanted({ name, allow = [], expires_ms = 1 }: NewToken): void {
  if (!isWorkerName(name)) throw invalid(`name: expected ${NAME_RULE}`);
  if (allow.length > RULES_MAX) throw invalid(`allow: expected at most ${RULES_MAX} patterns`);
  for (const pattern of allow) {
    if (pattern === "" || pattern.length > PATTERN_CHARS_MAX || /^match\(/.test(pattern)) {
      const expected = `a pattern such as orders::* of 1 to ${PATTERN_CHARS_MAX} characters`;
      throw invalid(
        `allow: expected ${expected}, received ${JSON.stringify(pattern.slice(0, 60))}`,
      );
    }
  }
  if (!Number.isInteger(expires_ms) || expires_ms < 1 || expires_ms > EXPIRES_MS_MAX) {
    throw invalid("expires: expected a time up to 3650d");
  }
}

/** Changes the file, when no other process does. `check` sees what was changed before it counts. */
async function change(
  path: string,
  next: (records: readonly TokenRecord[]) => readonly TokenRecord[],
  check: () => void = () => {},
): Promise<void> {
  using lock = openLock(`${path}.lock`);
  await locked(lock, path);
  const changed = next(readTokens(path));
  check();
  const draft = `${path}.${Deno.pid}`;
  try {
    Deno.removeSync(draft);
  } catch {
    // No dead process with this id has left one.
  }
  try {
    const text = `${JSON.stringify({ format: FORMAT, tokens: changed })}\n`;
    Deno.writeTextFileSync(draft, text, { createNew: true, mode: 0o600 });
    Deno.renameSync(draft, path);
  } catch (thrown) {
    throw new EngineError("store_unavailable", `${path} cannot be written (${thrown})`);
  }
}

function openLock(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path, { create: true, write: true, mode: 0o600 });
  } catch (thrown) {
    throw new EngineError("store_unavailable", `${path} cannot be opened (${thrown})`);
  }
}

/** Waits until this process may write; closing the file lets the next one. */
async function locked(file: Deno.FsFile, path: string): Promise<void> {
  const end = performance.now() + LOCK_MS;
  while (!file.tryLockSync(true)) {
    if (performance.now() > end) {
      throw new EngineError("store_unavailable", `Another program is changing ${path}; try again`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function infoOf({ id: _id, hash: _hash, ...info }: TokenRecord): TokenInfo {
  return info;
}

function invalid(message: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", message);
}

function unreadable(path: string, reason: string): EngineError {
  const message = `${path} cannot be read (${reason}); move it away and create the tokens again`;
  return new EngineError("store_unavailable", message);
}
