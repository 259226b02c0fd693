/**
 * The log of the state in a table of Postgres, one row per message, with its snapshot and the
 * leader's key in tables beside it.
 *
 * A message is appended by the statement that also moves the end of the log from the number before
 * it, so of two engines that append after the same one only one does, also when the other's rows
 * were replaced by a snapshot meanwhile. A row has an id; after a lost answer it tells whether the
 * row is this one's. The pieces of a snapshot count with the statement that names them in the end.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import {
  type LeaderKey,
  type LogEnd,
  type LogMessage,
  notOwner,
  type SnapshotPiece,
  type StateLog,
  unknownOutcome,
} from "../ports/state_log.ts";
import { Postgres, type Row } from "./postgres.ts";
import { APPEND_MS, pause, repeat } from "./repeat.ts";

/** The first version whose behaviour is relied on. */
const VERSION_MIN = 13;
/** Messages and bytes that one statement reads. */
const READ_ROWS = 500;
const READ_BYTES = 8 * 1024 * 1024;
/** Names the lock under which tables are made. */
const TABLES_LOCK = 4_711_016;
/** Pieces that belong to no snapshot are those of an engine that ended; deleted when so old. */
const ORPHAN_PIECES = "1 day";

const TABLES = `
begin;
select pg_advisory_xact_lock(${TABLES_LOCK});
create table if not exists engine_cluster_end (
  cluster text primary key,
  id uuid not null,
  number bigint not null default 0,
  bytes bigint not null default 0,
  snapshot_id uuid,
  snapshot_up_to bigint not null default 0,
  snapshot_pieces integer not null default 0,
  replaced_id uuid
);
create table if not exists engine_cluster_log (
  cluster text not null,
  number bigint not null,
  id uuid not null,
  bytes bytea not null,
  primary key (cluster, number)
);
create table if not exists engine_cluster_snapshot (
  cluster text not null,
  id uuid not null,
  piece integer not null,
  bytes bytea not null,
  made_at timestamptz not null default now(),
  primary key (cluster, id, piece)
);
create table if not exists engine_cluster_leader (
  cluster text primary key,
  life text not null,
  revision bigint not null
);
commit`;

const APPEND = `
with moved as (
  update engine_cluster_end set number = number + 1, bytes = bytes + length($4::bytea)
  where cluster = $1 and number = $2 returning number
)
insert into engine_cluster_log (cluster, number, id, bytes)
select $1, number, $3, $4 from moved returning number`;

const READ = `
select number, bytes from (
  select number, bytes, sum(length(bytes)) over (order by number) - length(bytes) as before
  from engine_cluster_log where cluster = $1 and number between $2 and $3
  order by number limit ${READ_ROWS}
) as batch where before < ${READ_BYTES} order by number`;

const FINISH_SNAPSHOT = `
update engine_cluster_end
set replaced_id = snapshot_id, snapshot_id = $2, snapshot_up_to = $3, snapshot_pieces = $4,
  bytes = (select coalesce(sum(length(bytes)), 0) from engine_cluster_log
    where cluster = $1 and number > $3)
where cluster = $1 and snapshot_up_to < $3 returning replaced_id`;

/** How to open the log. */
export interface PostgresLogSetup {
  /** Such as `postgres://user:password@host/database?sslmode=verify-full`. */
  readonly url: string;
  /** Name of the cluster. */
  readonly cluster: string;
  /** Keeps state in a database that may lose what it acknowledged. */
  readonly insecure: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Makes the tables if there are none, and refuses a database that may lose what it acknowledged.
 *
 * @throws {EngineError} `store_unavailable` with the reason.
 */
export async function openPostgresLog(setup: PostgresLogSetup): Promise<StateLog> {
  const { url, cluster, clock } = setup;
  const reader = new Postgres(url, `engine ${cluster}`);
  try {
    await repeat(clock, () => checkServer(reader, setup));
    await repeat(clock, () => makeTables(reader, cluster));
  } catch (thrown) {
    await reader[Symbol.asyncDispose]();
    throw thrown;
  }
  return new PostgresLog(reader, new Postgres(url, `engine ${cluster}, keeper`), setup);
}

/** The leader's key; a connection of its own, so that a slow write does not delay it. */
export function openPostgresKey(url: string, cluster: string): LeaderKey & AsyncDisposable {
  const database = new Postgres(url, `engine ${cluster}, leader`);
  return {
    async read() {
      const [row] = await database.query(
        "select life, revision from engine_cluster_leader where cluster = $1",
        cluster,
      );
      return row && { life: String(row.life), revision: Number(row.revision) };
    },
    async write(life, revision) {
      const text = revision === 0
        ? "insert into engine_cluster_leader (cluster, life, revision) values ($1, $2, 1 + $3) " +
          "on conflict do nothing returning revision"
        : "update engine_cluster_leader set life = $2, revision = revision + 1 " +
          "where cluster = $1 and revision = $3 returning revision";
      const [row] = await database.query(text, cluster, life, revision);
      if (!row) throw notOwner();
      return Number(row.revision);
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

class PostgresLog implements StateLog {
  /** Reads also while a write waits. */
  readonly #reader: Postgres;
  readonly #writer: Postgres;
  readonly #cluster: string;
  readonly #clock: Clock;
  bytes = 0;

  constructor(reader: Postgres, writer: Postgres, { cluster, clock }: PostgresLogSetup) {
    this.#reader = reader;
    this.#writer = writer;
    this.#cluster = cluster;
    this.#clock = clock;
  }

  async end(): Promise<LogEnd> {
    const { id, number, bytes } = await this.#end();
    this.bytes = Number(bytes);
    return { id: String(id), number: Number(number) };
  }

  async append(bytes: Uint8Array, after: number, signal?: AbortSignal): Promise<number> {
    const id = crypto.randomUUID();
    const until = this.#clock.now() + APPEND_MS;
    let isMaybeMade = false;
    let failure: unknown;
    for (let attempt = 1; !signal?.aborted && this.#clock.now() < until; attempt++) {
      if (attempt > 1) await pause(this.#clock, attempt, signal);
      try {
        const made = await this.#writer.query(APPEND, this.#cluster, after, id, bytes);
        if (made.length === 0 && !await this.#isMine(id, after + 1, isMaybeMade)) throw notOwner();
        this.bytes += bytes.length;
        return after + 1;
      } catch (thrown) {
        const reason = thrown instanceof EngineError ? thrown.details?.reason : undefined;
        if (thrown instanceof EngineError && reason !== "refused") throw thrown;
        isMaybeMade ||= reason !== "refused";
        failure = thrown;
      }
    }
    if (isMaybeMade) throw unknownOutcome(failure);
    throw failure ?? new EngineError("SET_ERROR", "This engine stops keeping the state");
  }

  /** Whether the message with a number is the one with an id, that may have been appended. */
  async #isMine(id: string, number: number, isMaybeMade: boolean): Promise<boolean> {
    if (!isMaybeMade) return false;
    const [row] = await this.#writer.query(
      "select id from engine_cluster_log where cluster = $1 and number = $2",
      this.#cluster,
      number,
    );
    if (!row) throw unknownOutcome(); // A snapshot has replaced it, whichever it was.
    return row.id === id;
  }

  async *read(from: number): AsyncGenerator<LogMessage | SnapshotPiece> {
    const end = await this.#end();
    const [last, upTo] = [Number(end.number), Number(end.snapshot_up_to)];
    let next = from;
    if (from <= upTo && (await this.#rows(from, from)).length === 0) {
      yield* this.#pieces(end);
      next = upTo + 1;
    }
    while (next <= last) {
      const rows = await this.#rows(next, last);
      if (Number(rows[0]?.number) !== next) {
        const message = `The log of the state has no message ${next}; read it anew`;
        throw new EngineError("store_unavailable", message);
      }
      for (const { number, bytes } of rows) {
        if (Number(number) !== next) break;
        yield { kind: "message", number: next++, bytes: plain(bytes) };
      }
    }
  }

  async *#pieces(end: Row): AsyncGenerator<SnapshotPiece> {
    const [upTo, count] = [Number(end.snapshot_up_to), Number(end.snapshot_pieces)];
    for (let piece = 0; piece < count; piece++) {
      const [row] = await this.#reader.query(
        "select bytes from engine_cluster_snapshot where cluster = $1 and id = $2 and piece = $3",
        this.#cluster,
        end.snapshot_id,
        piece,
      );
      if (!row) {
        throw new EngineError("store_unavailable", "The snapshot was replaced while it was read");
      }
      const ends = { isFirst: piece === 0, isLast: piece === count - 1 };
      yield { kind: "piece", upTo, ...ends, bytes: plain(row.bytes) };
    }
  }

  async snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void> {
    const id = crypto.randomUUID();
    let count = 0;
    for await (const bytes of pieces) {
      await this.#write(
        "insert into engine_cluster_snapshot (cluster, id, piece, bytes) values ($1, $2, $3, $4) " +
          "on conflict do nothing",
        ...[this.#cluster, id, count++, bytes],
      );
    }
    const finished = await this.#write(FINISH_SNAPSHOT, this.#cluster, id, upTo, count);
    const end = await repeat(this.#clock, () => this.#end());
    // Without a row it was finished by an attempt whose answer was lost, or a later one is there.
    if (finished.length === 0 && end.snapshot_id !== id) throw notOwner();
    await this.#write(
      "delete from engine_cluster_log where cluster = $1 and number <= $2",
      ...[this.#cluster, upTo],
    );
    await this.#write(
      "delete from engine_cluster_snapshot where cluster = $1 and id <> $2 " +
        `and (id = $3 or made_at < now() - interval '${ORPHAN_PIECES}')`,
      ...[this.#cluster, id, end.replaced_id],
    );
    await this.end();
  }

  /** A statement that may be executed twice. */
  #write(text: string, ...values: readonly unknown[]): Promise<Row[]> {
    return repeat(this.#clock, () => this.#reader.query(text, ...values));
  }

  #rows(from: number, to: number): Promise<Row[]> {
    return this.#reader.query(READ, this.#cluster, from, to);
  }

  async #end(): Promise<Row> {
    const text = "select * from engine_cluster_end where cluster = $1";
    const [row] = await this.#reader.query(text, this.#cluster);
    if (row) return row;
    throw new EngineError("store_unavailable", "The log of the state was deleted");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#reader[Symbol.asyncDispose](), this.#writer[Symbol.asyncDispose]()]);
  }
}

/** The bytes alone, without the package's kind of array around them. */
function plain(bytes: unknown): Uint8Array {
  const { buffer, byteOffset, length } = bytes as Uint8Array<ArrayBuffer>;
  return new Uint8Array(buffer, byteOffset, length);
}

async function makeTables(database: Postgres, cluster: string): Promise<void> {
  const text = "select to_regclass('engine_cluster_leader') is not null as have";
  const [found] = await database.query(text);
  // Where the tables were made by an administrator, this user need not have the right to.
  if (!found?.have) await database.query(TABLES);
  await database.query(
    "insert into engine_cluster_end (cluster, id) values ($1, $2) on conflict do nothing",
    ...[cluster, crypto.randomUUID()],
  );
}

/** The server says itself when an answer means that a write is on its disk. */
async function checkServer(
  database: Postgres,
  { insecure, log }: PostgresLogSetup,
): Promise<void> {
  const [row] = await database.query(
    "select current_setting('server_version_num')::int / 10000 as version, " +
      "current_setting('fsync') as fsync, " +
      "current_setting('synchronous_commit') as synchronous_commit, " +
      "current_setting('full_page_writes') as full_page_writes",
  );
  const { version, fsync, synchronous_commit, full_page_writes } = row!;
  const problems: string[] = [];
  if (Number(version) < VERSION_MIN) {
    problems.push(`version ${version} is before ${VERSION_MIN}, the first one that is supported`);
  }
  if (fsync !== "on") problems.push(`fsync is ${fsync}`);
  if (full_page_writes !== "on") problems.push(`full_page_writes is ${full_page_writes}`);
  if (synchronous_commit === "off") problems.push("synchronous_commit is off");
  if (problems.length === 0) return;
  if (insecure) {
    return log.warn("Postgres may lose state that it acknowledged", {
      reason: problems.join("; "),
    });
  }
  throw new EngineError(
    "store_unavailable",
    `State cannot be kept in this Postgres: ${problems.join("; ")}; change that, or set ` +
      "insecure: true below engine.cluster",
  );
}
