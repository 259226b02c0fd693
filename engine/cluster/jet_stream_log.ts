/**
 * The log of the state in a JetStream stream, its snapshot in a second one, the leader's key in a
 * third.
 *
 * A message names the number of the one before it (`Nats-Expected-Last-Sequence`) and has an id. A
 * request without an answer is repeated under the same id; when another message is last then, the
 * one that stands at the number tells by its id whether it was this one. The pieces of a snapshot
 * count only with the message behind them that names them all, so half a snapshot is none.
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
import { JetStream, type NatsLine } from "./jet_stream.ts";
import { APPEND_MS, pause, repeat } from "./repeat.ts";

/** How to open the log. */
export interface JetStreamLogSetup {
  readonly line: NatsLine;
  /** Name of the cluster. */
  readonly cluster: string;
  /** Copies of the streams. */
  readonly copies: number;
  /** Addresses where the servers answer `/jsz`; without any, their sync interval is unknown. */
  readonly monitors: readonly string[];
  /** Keeps state on servers that may lose what they acknowledged. */
  readonly insecure: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a finished snapshot is, as the last message of its subject. */
interface Done {
  readonly id: string;
  readonly upTo: number;
  /** Numbers of its first and last piece in the stream. */
  readonly first: number;
  readonly last: number;
}

/**
 * Makes the streams if there are none, and refuses servers that may lose what they acknowledged.
 *
 * @throws {EngineError} `store_unavailable` with the reason.
 */
export async function openJetStreamLog(setup: JetStreamLogSetup): Promise<StateLog> {
  const streams = await JetStream.open(setup.line);
  const warnings = await checkServers(setup, streams);
  const { cluster, copies, clock } = setup;
  const names = namesOf(cluster);
  await repeat(clock, async () => {
    await streams.ensure({ name: names.log, subjects: [names.subject], copies });
    await streams.ensure({ name: names.snapshot, subjects: [names.piece, names.done], copies });
  });
  for (const [text, fields] of warnings) setup.log.warn(text, fields);
  return new JetStreamLog(streams, names, clock);
}

/** The leader's key, readable as the key `keeper` of the bucket `E_<cluster>_KEEPER`. */
export async function openJetStreamKey(
  { line, cluster, copies, clock }: Omit<JetStreamLogSetup, "log" | "insecure" | "monitors">,
): Promise<LeaderKey> {
  const streams = await JetStream.open(line);
  const bucket = `E_${cluster}_KEEPER`;
  const [stream, subject] = [`KV_${bucket}`, `$KV.${bucket}.keeper`];
  const subjects = [`$KV.${bucket}.>`];
  await repeat(clock, () => streams.ensure({ name: stream, subjects, copies, perSubject: 1 }));
  const read: LeaderKey["read"] = async () => {
    const found = await streams.message(stream, { last_by_subj: subject });
    return found && { life: new TextDecoder().decode(found.bytes), revision: found.sequence };
  };
  return {
    read,
    async write(life, revision) {
      const bytes = new TextEncoder().encode(life);
      const options = { id: crypto.randomUUID(), stream, afterInSubject: revision };
      const number = await streams.publish(subject, bytes, options);
      if (number === "refused") throw notOwner();
      return number;
    },
  };
}

class JetStreamLog implements StateLog {
  readonly #streams: JetStream;
  readonly #names: ReturnType<typeof namesOf>;
  readonly #clock: Clock;
  bytes = 0;

  constructor(streams: JetStream, names: ReturnType<typeof namesOf>, clock: Clock) {
    this.#streams = streams;
    this.#names = names;
    this.#clock = clock;
  }

  async end(): Promise<LogEnd> {
    const { created, last, bytes } = await this.#streams.state(this.#names.log);
    this.bytes = bytes;
    return { id: created, number: last };
  }

  async append(bytes: Uint8Array, after: number, signal?: AbortSignal): Promise<number> {
    const id = crypto.randomUUID();
    const options = { id, stream: this.#names.log, after };
    const until = this.#clock.now() + APPEND_MS;
    let failure: unknown;
    let attempt = 1;
    for (; !signal?.aborted && this.#clock.now() < until; attempt++) {
      if (attempt > 1) await pause(this.#clock, attempt, signal);
      try {
        const number = await this.#streams.publish(this.#names.subject, bytes, options);
        // A server that no longer has the message may know its id, and have no number for it.
        if (number === after + 1) return this.#counted(bytes, number);
        if (number !== "refused") continue;
        const found = await this.#streams.message(this.#names.log, { seq: after + 1 });
        if (found?.id === id) return this.#counted(bytes, after + 1);
        if (found) throw notOwner();
        // None yet: perhaps an earlier attempt of this one is under way.
        const { first } = await this.#streams.state(this.#names.log);
        if (first > after + 1) throw attempt === 1 ? notOwner() : unknownOutcome();
      } catch (thrown) {
        if (thrown instanceof EngineError) throw thrown;
        failure = thrown;
      }
    }
    if (attempt > 1) throw unknownOutcome(failure);
    throw new EngineError("SET_ERROR", "This engine stops keeping the state");
  }

  #counted(bytes: Uint8Array, number: number): number {
    this.bytes += bytes.length;
    return number;
  }

  async *read(from: number): AsyncGenerator<LogMessage | SnapshotPiece> {
    const { first, last } = await this.#streams.state(this.#names.log);
    let next = from;
    if (from < first) {
      const done = await this.#done();
      if (done && done.value.upTo >= from) {
        yield* this.#pieces(done.value);
        next = done.value.upTo + 1;
      }
      if (next < first) throw gap(next, first);
    }
    for await (const { bytes } of this.#streams.read(this.#names.log, next, last)) {
      yield { kind: "message", number: next++, bytes };
    }
    if (next <= last) throw gap(next, last);
  }

  async #done(): Promise<{ readonly value: Done; readonly sequence: number } | undefined> {
    const { snapshot, done } = this.#names;
    const found = await this.#streams.message(snapshot, { last_by_subj: done });
    if (!found) return undefined;
    const value = JSON.parse(new TextDecoder().decode(found.bytes)) as Done;
    return { value, sequence: found.sequence };
  }

  async *#pieces({ id, first, last, upTo }: Done): AsyncGenerator<SnapshotPiece> {
    let isFirst = true;
    let atLast = false;
    for await (const found of this.#streams.read(this.#names.snapshot, first, last)) {
      // Two engines may have written pieces at once.
      if (!found.id.startsWith(`${id}/`)) continue;
      atLast = found.sequence === last;
      yield { kind: "piece", upTo, isFirst, isLast: atLast, bytes: found.bytes };
      isFirst = false;
    }
    if (!atLast) {
      throw new EngineError("store_unavailable", "The snapshot was replaced while it was read");
    }
  }

  async snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void> {
    const { snapshot, piece, done } = this.#names;
    const before = await repeat(this.#clock, () => this.#done());
    if (before && before.value.upTo > upTo) throw notOwner();
    const id = crypto.randomUUID();
    let [first, last, count] = [0, 0, 0];
    for await (const bytes of pieces) {
      const options = { id: `${id}/${count++}`, stream: snapshot };
      last = await repeat(this.#clock, () => this.#publish(piece, bytes, options));
      first ||= last;
    }
    const value: Done = { id, upTo, first, last };
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    const options = { id, stream: snapshot, afterInSubject: before?.sequence ?? 0 };
    await repeat(this.#clock, async () => {
      const number = await this.#streams.publish(done, bytes, options);
      if (number === "refused" && (await this.#done())?.value.id !== id) throw notOwner();
    });
    await repeat(this.#clock, () => this.#streams.purge(snapshot, first));
    await repeat(this.#clock, () => this.#streams.purge(this.#names.log, upTo + 1));
    await this.end();
  }

  async #publish(
    subject: string,
    bytes: Uint8Array,
    options: { id: string; stream: string },
  ): Promise<number> {
    const number = await this.#streams.publish(subject, bytes, options);
    if (number === "refused") throw notOwner();
    return number;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(); // The line is its owner's.
  }
}

function namesOf(cluster: string) {
  const subject = `E.${cluster}.state`;
  return {
    log: `E_${cluster}_STATE`,
    subject,
    snapshot: `E_${cluster}_STATE_SNAP`,
    piece: `${subject}_snap.piece`,
    done: `${subject}_snap.done`,
  };
}

function gap(next: number, found: number): EngineError {
  const message = `The log of the state has no message ${next}, though one ${found}`;
  return new EngineError("store_unavailable", message);
}

/**
 * What to warn of once the log is open. A node that does not answer may be down: more than half of
 * them have to sync, as more than half have to have a write.
 *
 * @throws {EngineError} `store_unavailable` for servers that may lose what they acknowledged.
 */
async function checkServers(setup: JetStreamLogSetup, streams: JetStream): Promise<Warning[]> {
  const { insecure, monitors, clock } = setup;
  const answers = await Promise.all(
    monitors.map(async (monitor) => [monitor, await askMonitor(monitor, clock)] as const),
  );
  const reasonOf = ([monitor, answer]: typeof answers[number]): string => `${monitor} ${answer}`;
  const silent = answers.filter(([, answer]) => answer.startsWith(SILENT)).map(reasonOf);
  const loose = answers.filter(([, answer]) => answer === LOOSE).map(reasonOf);
  const version = streams.versionProblem();
  const isMost = silent.length === 0 || 2 * silent.length < monitors.length;
  const problems = [...version ? [version] : [], ...loose, ...isMost ? [] : silent];
  if (problems.length > 0 && !insecure) {
    throw new EngineError(
      "store_unavailable",
      `State cannot be kept on this NATS: ${problems.join("; ")}; use 2.10.23 or later with ` +
        "`sync_interval: always`, or set insecure: true below engine.cluster",
    );
  }
  const lossy = insecure ? problems : [];
  return [
    ...lossy.map((reason): Warning => ["NATS may lose state that it acknowledged", { reason }]),
    ...isMost ? silent.map((reason): Warning => [UNKNOWN, { reason }]) : [],
    ...monitors.length === 0 && !insecure ? [[UNKNOWN, { hint: LIST_THEM }] as const] : [],
  ];
}

type Warning = readonly [text: string, fields: Readonly<Record<string, string>>];
const UNKNOWN = "it is unknown whether NATS syncs always";
const LIST_THEM = "list the servers' monitoring addresses below engine.cluster.monitor";
const LOOSE = "does not have `sync_interval: always`";
const SILENT = "does not answer";

async function askMonitor(monitor: string, clock: Clock): Promise<string> {
  const ending = new AbortController();
  const cancel = clock.after(2_000, () => ending.abort());
  try {
    const url = `${monitor.replace(/\/$/, "")}/jsz?config=true`;
    const response = await fetch(url, { signal: ending.signal });
    const { config } = await response.json() as { config?: { sync_always?: boolean } };
    return config?.sync_always ? "always" : LOOSE;
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return `${SILENT} (${reason})`;
  } finally {
    cancel();
  }
}
