/**
 * One connection to Postgres, opened when it is needed and again after it failed. The only file
 * that imports the package.
 *
 * A statement that fails in the server was not executed; one without an answer may have been, and
 * its connection is given up, so that no later statement can meet it half-done.
 *
 * @module
 */
import { Client } from "pg";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** How long one statement, and the opening of a connection, may take. */
export const POSTGRES_ANSWER_MS = 5_000;

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** What this file uses of the package. */
interface PgClient {
  connect(): Promise<void>;
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: Row[] }>;
  on(event: "error", listener: (error: Error) => void): void;
  end(): Promise<void>;
  readonly connection?: { readonly stream?: { destroy(): void } };
}

/** Rows through one connection, one statement at a time. */
export class Postgres implements AsyncDisposable {
  readonly #url: string;
  readonly #name: string;
  #client: PgClient | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** `name` is what the server lists the connection as. */
  constructor(url: string, name: string) {
    this.#url = url;
    this.#name = name;
  }

  /**
   * Executes a statement and resolves to its rows.
   *
   * @throws {EngineError} `refused` as `details.reason` when the server refused it.
   */
  query(text: string, ...values: readonly unknown[]): Promise<Row[]> {
    const result = this.#turn.then(() => this.#query(text, values));
    this.#turn = result.catch(() => {}); // The caller has it.
    return result;
  }

  async #query(text: string, values: readonly unknown[]): Promise<Row[]> {
    const client = this.#client ??= await this.#connect();
    try {
      return (await client.query(text, values)).rows;
    } catch (thrown) {
      const { code, severity } = thrown as { code?: string; severity?: string };
      // 57P: the server ends the connection; 08: the connection failed.
      if (severity === "ERROR" && code && !/^(57P|08)/.test(code)) throw refused(code, thrown);
      this.#drop(client);
      throw thrown;
    }
  }

  async #connect(): Promise<PgClient> {
    if (this.#isClosed) throw new EngineError("store_unavailable", "The log is closed");
    const client: PgClient = new Client({
      connectionString: this.#url,
      application_name: this.#name,
      connectionTimeoutMillis: POSTGRES_ANSWER_MS,
      query_timeout: POSTGRES_ANSWER_MS,
      keepAlive: true,
    });
    client.on("error", () => this.#drop(client));
    try {
      await client.connect();
    } catch (thrown) {
      this.#drop(client);
      throw thrown;
    }
    return client;
  }

  /** Closes the socket without a word: the server may not answer any more. */
  #drop(client: PgClient): void {
    if (this.#client === client) this.#client = undefined;
    client.connection?.stream?.destroy();
    client.end().catch(() => {}); // It has ended.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#turn;
    await this.#client?.end().catch(() => {}); // The server may have gone.
    this.#client = undefined;
  }
}

function refused(code: string, cause: unknown): EngineError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EngineError("store_unavailable", `Postgres refused a statement (${code}: ${reason})`, {
    cause,
    details: { reason: "refused", sqlstate: code },
  });
}
