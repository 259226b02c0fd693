/**
 * The created tokens as a running engine sees them: who comes with one, and when one ends.
 *
 * The file is looked at whenever a client presents a token, so a new one works and a revoked one is
 * refused at once; and every second, so that connections of a token that was revoked or has expired
 * end soon. A file that cannot be read refuses all created tokens, and ends no connection.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { Clock } from "../ports/clock.ts";
import type { Connection } from "../ports/connection.ts";
import type { Log } from "../ports/log.ts";
import { readTokens, tokenHash, tokenIdOf, type TokenRecord, tokenState } from "./token_file.ts";

/** Time between two looks at the file. */
export const TOKENS_POLL_MS = 1_000;
/** A file that changed so shortly before may change again with the same date. */
const SETTLED_MS = 2_000;

/** What a presented text is. */
export type TokenFound =
  /** No created token. */
  | { readonly state: "unknown" }
  | { readonly state: "refused"; readonly message: string }
  | { readonly state: "valid"; readonly token: TokenRecord };

/** What {@linkcode Tokens} works with. */
export interface TokensOptions {
  /** Of the file. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** A hash that no token has, so that unknown ids take as long as known ones. */
const NO_HASH = "0".repeat(64);

/** The created tokens of one project. */
export class Tokens implements Disposable {
  readonly #options: TokensOptions;
  #records = new Map<string, TokenRecord>();
  /** Ids that were valid at the last look. */
  #valid = new Set<string>();
  /** Of the file at the last look. */
  #mark = "";
  #problem: string | undefined;
  readonly #held = new Map<string, Set<Connection>>();
  #cancel: (() => void) | undefined;

  constructor(options: TokensOptions) {
    this.#options = options;
    this.#refresh();
    this.#valid = this.#validIds();
  }

  /** The token that a client presents. */
  find(presented: string): TokenFound {
    const id = tokenIdOf(presented);
    if (id === undefined) return { state: "unknown" };
    this.#refresh();
    if (this.#problem !== undefined) {
      return {
        state: "refused",
        message: "Created tokens cannot be checked; see the engine's log",
      };
    }
    const token = this.#records.get(id);
    const isEqual = nodeCrypto.timingSafeEqual(
      new TextEncoder().encode(tokenHash(presented)),
      new TextEncoder().encode(token?.hash ?? NO_HASH),
    );
    if (!token || !isEqual) return { state: "refused", message: "The token is wrong" };
    const state = tokenState(token, this.#options.clock.wall());
    if (state === "valid") {
      this.#valid.add(id);
      return { state, token };
    }
    return { state: "refused", message: endText(token, state) };
  }

  /** Why a token that was valid is not any more; `undefined`: it still is. */
  endOf(id: string): string | undefined {
    const token = this.#records.get(id);
    const state = token && tokenState(token, this.#options.clock.wall());
    if (token && state === "valid") return undefined;
    return token ? endText(token, state!) : "The token was removed";
  }

  /**
   * Looks at the file every {@linkcode TOKENS_POLL_MS} from now on; calls `ended` for each token
   * that ends, with a sentence. Connections of {@linkcode hold} are closed.
   */
  watch(ended: (id: string, message: string) => void): this {
    this.#cancel = this.#options.clock.after(TOKENS_POLL_MS, () => {
      this.#look(ended);
      this.watch(ended);
    });
    return this;
  }

  /** Closes a connection when its token ends; call the result when it closes otherwise. */
  hold(id: string, connection: Connection): () => void {
    const held = this.#held.get(id) ?? new Set();
    this.#held.set(id, held.add(connection));
    return () => {
      held.delete(connection);
      if (held.size === 0 && this.#held.get(id) === held) this.#held.delete(id);
    };
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
  }

  #look(ended: (id: string, message: string) => void): void {
    this.#refresh();
    if (this.#problem !== undefined) return;
    const valid = this.#validIds();
    for (const id of this.#valid) {
      if (valid.has(id)) continue;
      const message = this.endOf(id)!;
      this.#options.log.info("a token expired or was revoked; its connections are closed", {
        token: id,
        reason: message,
      });
      ended(id, message);
      for (const connection of this.#held.get(id) ?? []) connection.close(1008, message);
    }
    this.#valid = valid;
  }

  #validIds(): Set<string> {
    const now = this.#options.clock.wall();
    const valid = [...this.#records.values()].filter((token) => tokenState(token, now) === "valid");
    return new Set(valid.map(({ id }) => id));
  }

  /** Reads the file if it changed. */
  #refresh(): void {
    const { path, log } = this.#options;
    const mark = markOf(path);
    if (mark !== undefined && mark === this.#mark) return;
    this.#mark = mark ?? "";
    try {
      this.#records = new Map(readTokens(path).map((token) => [token.id, token]));
      this.#problem = undefined;
    } catch (thrown) {
      const { message } = thrown as Error;
      if (message !== this.#problem) {
        log.error("created tokens cannot be checked and are refused", { reason: message });
      }
      this.#problem = message;
    }
  }
}

function endText({ name }: TokenRecord, state: string): string {
  return state === "revoked" ? `Token ${name} was revoked` : `Token ${name} has expired`;
}

/** Equal for equal files; `undefined` for one that may still change without being noticed. */
function markOf(path: string): string | undefined {
  try {
    const { mtime, size, ino } = Deno.statSync(path);
    const changedMs = mtime?.getTime() ?? 0;
    if (Math.abs(Date.now() - changedMs) < SETTLED_MS) return undefined;
    return `${ino} ${size} ${changedMs}`;
  } catch {
    return "none";
  }
}
