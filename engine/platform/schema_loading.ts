/**
 * Loads what compiles schemas, in parts: ajv, its meta-schema and RE2.
 *
 * All of it takes 90 ms and 23 MB, so an engine without workers does without, and none of it may
 * come in one piece. The imports are deferred; each part touches one of them, whose module is
 * evaluated then with all that it imports, or compiles one vocabulary of the meta-schema. An
 * `import()` would not do, since the core compiles a schema while it routes a call and cannot wait.
 * A schema that comes before the last part gets the parts that are left at once.
 *
 * @module
 */
import defer * as ajv from "ajv/dist/2020.js";
import defer * as codegen from "ajv/dist/compile/codegen/index.js";
import defer * as core from "ajv/dist/core.js";
import defer * as vocabularies from "ajv/dist/vocabularies/draft2020.js";
import defer * as re2 from "re2js";
import type { Clock } from "../ports/clock.ts";

/** ajv for 2020-12. */
export type Ajv = InstanceType<typeof ajv.Ajv2020>;

/** Options of all instances. */
export const AJV_OPTIONS = {
  strict: false, // Unknown keywords are annotations.
  validateFormats: false,
  logger: false,
  code: { optimize: false }, // Optimizing takes longer than a check ever saves.
} as const;

/** Parts that follow each other at once take no longer together. */
export const PART_MS = 5;
/** How long nothing is loaded after that, in times of what it took. */
export const PART_REST_FACTOR = 2;

/** The vocabularies of the meta-schema that take long to compile, each without the others. */
const VOCABULARIES = ["core", "applicator", "validation"];
const META = "https://json-schema.org/draft/2020-12";

/** See the top of this file. */
export class SchemaLoading implements Disposable {
  readonly #clock: Pick<Clock, "now" | "after"> | undefined;
  readonly #parts: (() => unknown)[];
  #drafts: Ajv | undefined;
  #loaded: Promise<void> | undefined;
  #cancel = (): void => {};

  /** Without a clock, prepare() loads everything at once. */
  constructor(clock?: Pick<Clock, "now" | "after">) {
    this.#clock = clock;
    this.#parts = [
      () => codegen.str, // Half of it is the platform's, for the first package of its kind.
      () => core.default,
      () => vocabularies.default,
      () => this.#drafts = new ajv.Ajv2020(AJV_OPTIONS),
      ...VOCABULARIES.map((name) => () => this.#drafts!.getSchema(`${META}/meta/${name}`)),
      () => this.#drafts!.validateSchema({}),
      () => re2.RE2JS,
    ];
  }

  /** Checks schemas; loads what is left. */
  get drafts(): Ajv {
    while (this.#parts.length > 0) this.#loadNext();
    return this.#drafts!;
  }

  /** Whether nothing is left to be loaded. */
  get isLoaded(): boolean {
    return this.#parts.length === 0;
  }

  /** Loads the parts with rests between them; resolves when all are there. Never rejects. */
  prepare(): Promise<void> {
    return this.#loaded ??= new Promise((resolve) => this.#loadSome(resolve));
  }

  #loadSome(loaded: () => void): void {
    const began = this.#clock?.now() ?? 0;
    let ms = 0;
    try {
      while (this.#parts.length > 0 && ms < PART_MS) {
        this.#loadNext();
        if (this.#clock) ms = this.#clock.now() - began;
      }
    } catch {
      return loaded(); // Compiling a schema says what is wrong.
    }
    if (this.#parts.length === 0) return loaded();
    this.#cancel = this.#clock!.after(PART_REST_FACTOR * ms, () => this.#loadSome(loaded));
  }

  #loadNext(): void {
    this.#parts[0]!();
    this.#parts.shift();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}
