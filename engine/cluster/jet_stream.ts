/**
 * What the cluster uses of JetStream: streams of one subject or two, messages that name the one
 * before them, reading from a number on. The only file that imports the package.
 *
 * Requests get no answer while a stream chooses its leader; the callers repeat them, since only
 * they know what may happen twice.
 *
 * @module
 */
import {
  DiscardPolicy,
  jetstream,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";

/** A connection to NATS, of whatever transport. */
export type NatsLine = Parameters<typeof jetstream>[0];

/** How long one request waits for its answer. */
export const JET_STREAM_ANSWER_MS = 1_000;
/** Messages that are requested at once when a stream is read. */
const READ_AHEAD = 32;
/** The first version that keeps `sync_interval: always` in clusters, and loses no stream. */
const VERSION_MIN = [2, 10, 23] as const;
/** How long a published message is known by its id, in nanoseconds. */
const DUPLICATES_NS = 120e9;

const WRONG_LAST_SEQUENCE = new Set([10071, 10164]);
const MESSAGE_NOT_FOUND = 10037;
/** There is a stream of that name with other settings. */
const OTHER_SETTINGS = 10058;

/** A stream to have. */
export interface StreamSetup {
  readonly name: string;
  readonly subjects: readonly string[];
  /** Copies, on as many nodes. */
  readonly copies: number;
  /** Older messages of a subject are removed. Default: none are. */
  readonly perSubject?: number;
}

/** Where a stream begins and ends. */
export interface StreamState {
  /** When it was created; another stream of the same name has another. */
  readonly created: string;
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** A stored message. */
export interface StoredMessage {
  readonly sequence: number;
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** What a message has to come after, and what it is known by. */
export interface PublishOptions {
  readonly id: string;
  readonly stream: string;
  /** The last message of the stream; left out: whichever. */
  readonly after?: number;
  /** The last message of the same subject; left out: whichever. */
  readonly afterInSubject?: number;
}

/** JetStream of one connection. */
export class JetStream {
  readonly #line: NatsLine;
  readonly #manager: JetStreamManager;
  readonly #client: JetStreamClient;

  private constructor(line: NatsLine, manager: JetStreamManager) {
    this.#line = line;
    this.#manager = manager;
    this.#client = jetstream(line, { timeout: JET_STREAM_ANSWER_MS });
  }

  /** Asks nothing of the server. */
  static async open(line: NatsLine): Promise<JetStream> {
    const timeout = JET_STREAM_ANSWER_MS;
    return new JetStream(line, await jetstreamManager(line, { timeout, checkAPI: false }));
  }

  /** Why the server is not one to keep state on, by its version; `undefined`: it is. */
  versionProblem(): string | undefined {
    const version = this.#line.info?.version ?? "unknown";
    const parts = version.split(/[.-]/, 3).map(Number);
    const at = VERSION_MIN.findIndex((part, i) => part !== parts[i]);
    if (at === -1 || parts[at]! > VERSION_MIN[at]!) return undefined;
    return `nats-server ${version} is older than ${VERSION_MIN.join(".")}`;
  }

  /** Makes a stream unless there is one; one of another number of copies gets this one. */
  async ensure(setup: StreamSetup): Promise<void> {
    try {
      await this.#add(setup);
    } catch (thrown) {
      if (!(thrown instanceof JetStreamApiError) || thrown.code !== OTHER_SETTINGS) throw thrown;
      await this.#manager.streams.update(setup.name, { num_replicas: setup.copies });
    }
  }

  async #add({ name, subjects, copies, perSubject = -1 }: StreamSetup): Promise<void> {
    await this.#manager.streams.add({
      name,
      subjects: [...subjects],
      num_replicas: copies,
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      max_msgs_per_subject: perSubject,
      duplicate_window: DUPLICATES_NS,
      allow_direct: true,
      ...perSubject > 0 && { discard: DiscardPolicy.Old },
    });
  }

  async state(stream: string): Promise<StreamState> {
    const { created, state } = await this.#manager.streams.info(stream);
    return { created, first: state.first_seq, last: state.last_seq, bytes: state.bytes };
  }

  /**
   * Publishes a message once: to be repeated with the same id when it fails, unless it was refused.
   * Resolves to its number, or to `refused` when another message is the last one.
   */
  async publish(
    subject: string,
    bytes: Uint8Array,
    { id, stream, after, afterInSubject }: PublishOptions,
  ): Promise<number | "refused"> {
    const expect = {
      streamName: stream,
      ...after !== undefined && { lastSequence: after },
      ...afterInSubject !== undefined && { lastSubjectSequence: afterInSubject },
    };
    try {
      const timeout = JET_STREAM_ANSWER_MS;
      const { seq } = await this.#client.publish(subject, bytes, { msgID: id, expect, timeout });
      return seq;
    } catch (thrown) {
      if (thrown instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.has(thrown.code)) {
        return "refused";
      }
      throw thrown;
    }
  }

  /** The message with a number, or the last one of a subject; asks the leader. */
  async message(
    stream: string,
    query: { readonly seq: number } | { readonly last_by_subj: string },
  ): Promise<StoredMessage | undefined> {
    try {
      const found = await this.#manager.streams.getMessage(stream, query);
      if (found === null) return undefined;
      return { sequence: found.seq, id: found.header.get("Nats-Msg-Id"), bytes: found.data };
    } catch (thrown) {
      if (thrown instanceof JetStreamApiError && thrown.code === MESSAGE_NOT_FOUND) {
        return undefined;
      }
      throw thrown;
    }
  }

  /** Removes the messages before a number. */
  async purge(stream: string, before: number): Promise<void> {
    await this.#manager.streams.purge(stream, { seq: before });
  }

  /**
   * The messages of a stream from one number to another, both included; it ends where one is
   * missing. Every message is a request of its own, many at a time: consumers have a place on one
   * node and lose requests while interest spreads and leaders change, each for seconds.
   */
  async *read(stream: string, from: number, to: number): AsyncGenerator<StoredMessage> {
    const ahead: Promise<StoredMessage | undefined>[] = [];
    let next = from;
    try {
      for (let at = from; at <= to; at++) {
        for (; next <= to && ahead.length < READ_AHEAD; next++) {
          const found = this.#direct(stream, next);
          found.catch(() => {}); // Thrown when its turn comes.
          ahead.push(found);
        }
        const found = await ahead.shift();
        if (!found) return;
        yield found;
      }
    } finally {
      await Promise.allSettled(ahead);
    }
  }

  /** From any copy; from the leader where that one is behind or has gone. */
  async #direct(stream: string, seq: number): Promise<StoredMessage | undefined> {
    try {
      const found = await this.#manager.direct.getMessage(stream, { seq });
      if (found) {
        const { header, data } = found;
        return { sequence: found.seq, id: header.get("Nats-Msg-Id"), bytes: data };
      }
    } catch {
      // The leader is asked.
    }
    return await this.message(stream, { seq });
  }
}
