/**
 * The entries on the store: one record each, with its last changes, so that a change and its
 * history are one write.
 *
 * @module
 */
import type { Store } from "../../engine/ports/store.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** What an id may be. */
export const CONFIGURATION_ID = /^[a-z0-9_-]{1,64}$/;
/** Entries in all. */
export const ENTRIES_MAX = 1_000;
/** Changes that are kept of an entry. */
export const CHANGES_KEPT = 20;
/** What is read of the store at once. */
const PAGE_BYTES = 8 * 1024 * 1024;
const TABLE = "configuration";

/** A change; secrets are masked. */
export interface ConfigurationChange {
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  /** The worker that made it. */
  readonly by: string | null;
  readonly old_value: Json;
  readonly new_value: Json;
}

/** An entry as it is stored; `value` is as it was set, with its references. */
export interface ConfigurationRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly schema: Json;
  readonly metadata: Json;
  /** `undefined`: none was set. */
  readonly value: Json | undefined;
  /** Changes of the value so far. */
  readonly version: number;
  readonly updated_at_ms: number;
  /** The newest first. */
  readonly changes: readonly ConfigurationChange[];
}

/** Some entries, and where the next ones begin. */
export interface RecordPage {
  readonly records: ConfigurationRecord[];
  readonly cursor: string | undefined;
}

/** All entries, by id. */
export class ConfigurationRecords {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** One entry. @throws {EngineError} `ADAPTER_ERROR` */
  async get(id: string): Promise<ConfigurationRecord | undefined> {
    return await adapted(async () => {
      const entry = await this.#store.get([TABLE, id]);
      return entry && fromJson(entry.value as JsonObject);
    });
  }

  /**
   * Entries behind an id, sorted by id, of about {@linkcode PAGE_BYTES} with their histories;
   * `cursor` is the id behind which there may be more.
   *
   * @throws {EngineError} `ADAPTER_ERROR`
   */
  async page(after?: string): Promise<RecordPage> {
    const from = after === undefined ? undefined : [TABLE, after];
    const entries = await adapted(() => this.#store.list([TABLE], ENTRIES_MAX, from, PAGE_BYTES));
    const records = entries.filter(({ damaged }) => damaged === undefined)
      .map(({ value }) => fromJson(value as JsonObject));
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    return { records, cursor: bytes < PAGE_BYTES ? undefined : entries.at(-1)!.key[1]! };
  }

  /** Ids of all entries. @throws {EngineError} `ADAPTER_ERROR` */
  async ids(): Promise<Set<string>> {
    const ids = new Set<string>();
    let after: string | undefined;
    do {
      const { records, cursor } = await this.page(after);
      for (const { id } of records) ids.add(id);
      after = cursor;
    } while (after !== undefined);
    return ids;
  }

  /**
   * Changes one entry; resolves when it is on disk.
   *
   * @throws {EngineError} `ADAPTER_ERROR`; what `change` throws.
   */
  async write(
    id: string,
    change: (old: ConfigurationRecord | undefined) => ConfigurationRecord,
  ): Promise<ConfigurationRecord> {
    let refused: unknown;
    const written = await adapted(async () => {
      const [changed] = await this.#store.write([[[TABLE, id], (old) => {
        const before = old?.damaged === undefined
          ? old && fromJson(old.value as JsonObject)
          : undefined;
        try {
          return toJson(change(before));
        } catch (thrown) {
          refused = thrown;
          return old;
        }
      }]]);
      return changed!.new;
    });
    if (refused !== undefined) throw refused;
    return fromJson(written!.value as JsonObject);
  }
}

function toJson({ value, description, changes, ...rest }: ConfigurationRecord): JsonObject {
  return {
    ...rest,
    description,
    ...value !== undefined && { value },
    changes: changes as unknown as Json,
  };
}

function fromJson(stored: JsonObject): ConfigurationRecord {
  return { value: undefined, ...stored } as unknown as ConfigurationRecord;
}

/** Failures of the store, in the protocol's code. */
async function adapted<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (thrown instanceof EngineError && thrown.code === "overloaded") throw thrown;
    const details = thrown instanceof EngineError ? thrown.details : undefined;
    throw new EngineError("ADAPTER_ERROR", `The store failed: ${thrownText(thrown)}`, {
      cause: thrown,
      ...details && { details },
    });
  }
}
