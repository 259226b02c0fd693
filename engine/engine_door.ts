/**
 * What whoever starts an engine says and gets.
 *
 * @module
 */
import type { LogLevel } from "./ports/log.ts";
import type { Endpoint, EngineInfo } from "./ports/supervision.ts";

/** What to start. */
export interface StartOptions {
  /** The config.yaml to run. Default: the one in `directory`, else embedded defaults. */
  readonly configPath?: string;
  /** Where the project lies if `configPath` is left out. Default: the current directory. */
  readonly directory?: string;
  /** Port of the worker listener, instead of the file's `engine.port`; 0 for any free one. */
  readonly port?: number;
  /** Instead of the file's `log.level`. */
  readonly logLevel?: LogLevel;
}

/** How to stop. */
export interface StopOptions {
  /** Lets running calls finish first, for 5 s at most. Default `true`. */
  readonly drain?: boolean;
}

/** A running engine. */
export interface Engine extends AsyncDisposable {
  /** The addresses it serves now. */
  readonly endpoints: readonly Endpoint[];
  /** Settles when the engine has stopped. */
  readonly finished: Promise<void>;
  /** What it is and where its project lies. */
  info(): EngineInfo;
  /** Stops everything the engine started. A second call with `drain: false` ends the drain. */
  stop(options?: StopOptions): Promise<void>;
}
