/**
 * The OpenAPI document of `engine-http`: `GET /openapi.json` if the configuration says so, and the
 * function `engine::http::openapi` for the command line.
 *
 * The document is written when it is asked for and kept until a route or a function changes, or
 * nothing has asked for {@linkcode KEEP_MS}. It is written in slices between which other work runs,
 * once for all that wait for it. Functions whose worker is away appear without their schemas.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { EngineEvent } from "../../../engine/ports/events.ts";
import type { MemoryBudget } from "../../../engine/ports/memory.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { fit } from "../../kit/fit.ts";
import { PartBuffer } from "../../kit/http/part_buffer.ts";
import type { ServedResponse } from "../../kit/http/response.ts";
import * as v from "../../kit/schema.ts";
import type { Target } from "../handler.ts";
import type { RouteTable } from "../routes.ts";
import { type DocumentText, writeDocument } from "./document.ts";

/** The function that returns it. */
export const OPENAPI_FUNCTION = "engine::http::openapi";
/** How long writing may hold the thread, and how long other work then runs. */
export const SLICE_MS = 2;
/** How long a document is kept that nothing asks for. */
export const KEEP_MS = 60_000;

const Query = v.object({ cursor: v.nullish(v.text(1, 100)) });

/** What {@linkcode OpenApi} works with. */
export interface OpenApiOptions {
  readonly clock: Clock;
  readonly memory: MemoryBudget;
  readonly directory: Pick<Directory, "function">;
  readonly routes: RouteTable<Target>;
  /** The listener asks for a token of its own. */
  readonly hasToken: boolean;
}

/** A document that was written. */
interface Written extends DocumentText {
  /** Counts the changes up to which it was written. */
  readonly version: number;
  readonly bytes: number;
  /** Responses that are sending it, and one if it is kept; with none its memory is free. */
  holders: number;
}

/** Writes and keeps the document. */
export class OpenApi {
  readonly #options: OpenApiOptions;
  /** Changes so far. */
  #version = 0;
  #written: Written | undefined;
  #writing: Promise<Written> | undefined;
  #cancelDrop: (() => void) | undefined;
  /** Goes on with the next slice at once. */
  #goOn: (() => void) | undefined;
  #isStopped = false;

  constructor(options: OpenApiOptions) {
    this.#options = options;
  }

  /** A route was added or removed, or a function has changed: the document is out of date. */
  change(): void {
    this.#version++;
  }

  /** Changes of functions and of the names of their workers. */
  hear({ type }: EngineEvent): void {
    if (type === "functions_changed" || type === "worker_announced") this.change();
  }

  /** Drops the document. */
  stop(): void {
    this.#isStopped = true;
    this.#goOn?.();
    this.#drop();
  }

  /**
   * The document as it is now.
   *
   * @throws {EngineError} `overloaded` when it does not fit into memory.
   */
  async read(): Promise<DocumentText & { readonly version: number }> {
    return await this.#read();
  }

  async #read(): Promise<Written> {
    const wanted = this.#version;
    // One that is being written may have begun before the last change.
    while (!this.#written || this.#written.version < wanted) {
      this.#writing ??= this.#write().finally(() => this.#writing = undefined);
      const written = await this.#writing;
      if (written.version >= wanted) return written;
    }
    this.#keep();
    return this.#written;
  }

  /** The response to a request for the document. */
  async respond(): Promise<ServedResponse> {
    const written = await this.#read();
    const { pieces } = written;
    const headers = [["content-type", "application/json"], ["cache-control", "no-cache"]] as const;
    if (pieces.length === 1) return { status: 200, headers, body: pieces[0]! };
    const encoder = new TextEncoder();
    let next = 0;
    this.#hold(written);
    const part = new PartBuffer();
    const read = (): Promise<PartBuffer | undefined> => {
      if (next >= pieces.length) return Promise.resolve(undefined);
      part.clear();
      part.add(encoder.encode(pieces[next++]));
      return Promise.resolve(part);
    };
    let isHolding = true;
    const cancel = (): void => {
      if (isHolding) this.#release(written);
      isHolding = false;
    };
    return { status: 200, headers, body: null, stream: { read, rest() {}, cancel } };
  }

  /** One piece of the document, as the function returns it. */
  async page(payload: Json, url: string): Promise<Json> {
    const { cursor } = fit(OPENAPI_FUNCTION, Query, payload ?? {});
    const [mark, at] = (cursor ?? "").split(":").map(Number);
    const { pieces, routes, version } = await this.read();
    const index = cursor ? at ?? NaN : 0;
    if (cursor && (mark !== version || !Number.isInteger(index) || !pieces[index])) {
      throw new EngineError(
        "version_mismatch",
        "The routes have changed since the first page, or the cursor is not one of this engine; " +
          "read again without cursor",
      );
    }
    const isLast = index + 1 >= pieces.length;
    const rest = isLast ? {} : { next_cursor: `${version}:${index + 1}` };
    return { text: pieces[index]!, routes, url, ...rest };
  }

  async #write(): Promise<Written> {
    const version = this.#version;
    const { clock, routes, directory, hasToken } = this.#options;
    const writing = writeDocument({
      routes: routes.served(),
      viewOf: (namespace, function_id) => directory.function(namespace, function_id),
      hasToken,
    });
    while (!this.#isStopped) {
      const end = clock.now() + SLICE_MS;
      let step = writing.next();
      while (!step.done && clock.now() < end) step = writing.next();
      if (step.done) return this.#store({ ...step.value, version });
      await new Promise<void>((resolve) => {
        const cancel = clock.after(SLICE_MS, resolve);
        this.#goOn = () => {
          cancel();
          resolve();
        };
      });
    }
    throw new EngineError("invocation_stopped", "engine-http stops");
  }

  #store(text: DocumentText & { readonly version: number }): Written {
    this.#drop();
    // A character of text takes one byte, or two if one of its piece does not fit into one.
    const bytes = text.pieces.reduce((sum, piece) => sum + 2 * piece.length, 0);
    const written = { ...text, bytes, holders: 0 };
    this.#hold(written);
    this.#written = written;
    this.#keep();
    return this.#written;
  }

  #keep(): void {
    this.#cancelDrop?.();
    this.#cancelDrop = this.#options.clock.after(KEEP_MS, () => this.#drop());
  }

  #drop(): void {
    this.#cancelDrop?.();
    this.#cancelDrop = undefined;
    if (this.#written) this.#release(this.#written);
    this.#written = undefined;
  }

  /** Takes its memory, also again if it was dropped meanwhile. */
  #hold(written: Written): void {
    if (written.holders === 0 && !this.#options.memory.take("bodies", written.bytes)) {
      throw new EngineError("overloaded", "The memory of the engine has no room for the document");
    }
    written.holders++;
  }

  #release(written: Written): void {
    if (--written.holders === 0) this.#options.memory.release("bodies", written.bytes);
  }
}

/** Registers the function that returns the document in pages. */
export function registerOpenApi(
  worker: Pick<Worker, "registerFunction">,
  openapi: OpenApi,
  url: string,
): void {
  worker.registerFunction(OPENAPI_FUNCTION, (payload) => openapi.page(payload as Json, url), {
    description: "The OpenAPI document of the HTTP routes, in pages of its text",
  });
}
