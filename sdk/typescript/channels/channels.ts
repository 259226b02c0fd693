/**
 * The channels of one worker: creates them, and turns references inside payloads into ends.
 *
 * @module
 */
import { type ChannelRef, type ChannelRefs, isChannelRef } from "../wire/channels.ts";
import { EngineError } from "../wire/errors.ts";
import { JSON_DEPTH_MAX } from "../wire/json_depth.ts";
import type { Json } from "../wire/protocol.ts";
import type { EndConnection, EndSetup } from "./end.ts";
import { ChannelReader } from "./reader.ts";
import type { OpenChannelSocket } from "./socket.ts";
import { ChannelWriter } from "./writer.ts";

/** The function of the engine that creates channels. */
export const CREATE_CHANNEL = "engine::channels::create";

/** Every reference contains it, so a frame without it need not be searched. */
const ACCESS_KEY = '"access_key"';

/** Options of `Worker.createChannel()`. */
export interface ChannelOptions {
  /**
   * Messages that the engine holds before the reader connects, from 1 to 1,024, of 256 KiB in all;
   * then the writer waits.
   *
   * @default {64}
   */
  readonly bufferFrames?: number | undefined;
}

/**
 * Both ends of a channel, of which one is usually passed to another worker: `{ file: reader }` in a
 * payload arrives as a {@linkcode ChannelReader}.
 */
export interface Channel {
  /** The end that sends. */
  readonly writer: ChannelWriter;
  /** The end that receives. */
  readonly reader: ChannelReader;
}

/** The ends of channels that one worker has. */
export class Channels {
  readonly #setup: EndSetup;
  readonly #open = new Set<EndConnection>();
  #ended: EngineError | undefined;

  constructor(url: string, open: OpenChannelSocket) {
    this.#setup = {
      url,
      open,
      opened: (end) => {
        this.#open.add(end);
        // Not at once, since the end is still being opened.
        if (this.#ended) queueMicrotask(() => end.end(this.#ended!));
      },
      closed: (end) => void this.#open.delete(end),
    };
  }

  /** The ends of a channel that the engine has created. */
  channel({ writer, reader }: ChannelRefs): Channel {
    return { writer: this.end(writer) as ChannelWriter, reader: this.end(reader) as ChannelReader };
  }

  /** The end of a reference; it connects when it is used. */
  end(ref: ChannelRef): ChannelReader | ChannelWriter {
    return ref.direction === "read"
      ? new ChannelReader(ref, this.#setup)
      : new ChannelWriter(ref, this.#setup);
  }

  /** Replaces references in a parsed value, which it changes, by ends. */
  revive(value: Json): Json {
    return this.#revive(value, JSON_DEPTH_MAX + 1);
  }

  /** Ends all connections; ends that connect later fail, too. */
  close(): void {
    this.#ended ??= new EngineError("SHUTDOWN", "engine client is shutting down");
    for (const end of [...this.#open]) end.end(this.#ended);
  }

  #revive(value: Json, levels: number): Json {
    if (typeof value !== "object" || value === null || levels === 0) return value;
    // In a payload it stands for the reference, as its type says: see toJSON().
    if (isChannelRef(value)) return this.end(value) as unknown as Json;
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) value[i] = this.#revive(value[i]!, levels - 1);
      return value;
    }
    for (const key of Object.keys(value)) {
      const part = value[key]!;
      const revived = this.#revive(part, levels - 1);
      // Not by assignment: `__proto__` is a key like any other in JSON.
      if (revived !== part) Object.defineProperty(value, key, { value: revived });
    }
    return value;
  }
}

/** Whether a frame may hold references. */
export function mayHoldRefs(frame: string): boolean {
  return frame.includes(ACCESS_KEY);
}
