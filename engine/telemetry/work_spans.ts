/**
 * Trace ids for work that is no call, such as an HTTP request, and who hears when it is done.
 *
 * @module
 */
import { bytesOf } from "../core/wire/bytes.ts";
import type { EndedSpan, Spans } from "../ports/telemetry.ts";
import type { IdSource } from "./id_source.ts";
import { kept } from "./kept_text.ts";
import { FLAGS_AT, PARENT_WORDS, readTraceparent, traceparentOf } from "./traceparent.ts";

/** What {@linkcode WorkSpans} works with. */
export interface WorkSpansOptions {
  readonly ids: IdSource;
  /** Whether anything is traced now. */
  isTracing(): boolean;
  /** Whether to record a new trace that begins with this operation; `chance` is 32 random bits. */
  isChosen(operation: string, chance: number): boolean;
}

/** Spans of built-in workers. */
export class WorkSpans implements Spans {
  readonly #options: WorkSpansOptions;
  readonly #words = new Uint32Array(PARENT_WORDS);
  readonly #listeners = new Set<(span: EndedSpan) => void>();

  /** Makes one to which nobody listens. */
  constructor(options: WorkSpansOptions) {
    this.#options = options;
  }

  open(parent: string | null, operation: string): string | null {
    const { ids, isTracing, isChosen } = this.#options;
    const flags = parent === null ? -1 : this.#read(parent);
    if (!isTracing()) return flags < 0 ? null : parent;
    const at = ids.take(24);
    const span_id = ids.text(at + 16, 8);
    if (flags >= 0) return kept(traceparentOf(parent!.slice(3, 35), span_id, flags === 1));
    const isSampled = isChosen(operation, ids.word(at));
    return kept(traceparentOf(ids.text(at, 16), span_id, isSampled));
  }

  record(span: EndedSpan): void {
    // As open() made it, so that the last digit tells: reading all takes a third of recording.
    if ((parseInt(span.traceparent.charAt(FLAGS_AT + 1), 16) & 1) !== 1) return;
    for (const listen of this.#listeners) listen(span);
  }

  #read(traceparent: string): number {
    const memory = bytesOf(traceparent);
    return readTraceparent(memory, 0, memory.length, this.#words, 0);
  }

  listen(listener: (span: EndedSpan) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
