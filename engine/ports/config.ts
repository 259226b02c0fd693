/**
 * What a checked configuration looks like, for those who act on it.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Accelerator, Isolation } from "./launcher.ts";
import type { LogLevel } from "./log.ts";

/** A config.yaml after every check: types are true and nobody checks again. */
export interface Config {
  /** Absolute path of the file; `null` when the embedded defaults are in use. */
  readonly path: string | null;
  /** Absolute; relative paths in the file start here. */
  readonly directory: string;
  /** `<directory>/.engine`: store, logs, caches. */
  readonly dataDirectory: string;
  readonly engine: EngineSettings;
  readonly log: LogSettings;
  /** In the order of the file; names are unique. */
  readonly workers: readonly WorkerEntry[];
  /** Every value in force, and where it comes from. */
  readonly values: readonly ConfigValue[];
}

/** The section `engine`; spelled as in the file. */
export interface EngineSettings {
  /** Address of the worker listener. */
  readonly host: string;
  /** Port of the worker listener; 0: any free one. */
  readonly port: number;
  /** What clients have to present; left out: nothing. */
  readonly auth_token?: string;
  /** Allows an address that is not loopback without a token. */
  readonly insecure: boolean;
  /** Web origins besides loopback ones that may open a line. */
  readonly allowed_origins: readonly string[];
  /** What carries lines: our own framing on TCP, or Deno's HTTP server and WebSocket. */
  readonly transport: "raw" | "deno-serve";
  /** PEM files of the certificate and of its key, absolute; left out: lines are not encrypted. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly max_message_bytes: number;
  readonly invocation_timeout_ms: number;
  readonly validate_payloads: boolean;
  readonly max_inflight_calls_per_worker: number;
  readonly max_inflight_bytes_per_worker: number;
}

/** The section `log`. */
export interface LogSettings {
  readonly level: LogLevel;
  /** `auto`: text on a terminal, else JSON. */
  readonly format: "auto" | "json" | "text";
}

/** One item of `workers`. */
export type WorkerEntry = BuiltinEntry | DirectoryEntry;

/** A worker that comes with the engine. */
export interface BuiltinEntry {
  readonly kind: "builtin";
  readonly name: string;
  /** As the worker's own `parse` returned it. */
  readonly config: unknown;
  /** As it stands in the file, variables filled in; what is compared to see a change. */
  readonly raw: Json;
}

/** A worker that is a directory with an engine.worker.yaml. */
export interface DirectoryEntry {
  readonly kind: "directory";
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Left out: what the manifest says, else what the platform offers. */
  readonly isolation?: Isolation;
  /** What runs its microVM; left out: `auto`. */
  readonly accel?: Accelerator | "auto";
  /** How many copies run at once; left out: what the manifest says, else 1. */
  readonly replicas?: number;
  /** Wins over the manifest's `env`. */
  readonly env: Readonly<Record<string, string>>;
}

/** One value of the configuration, and where it comes from. */
export interface ConfigValue {
  /** Such as `engine.port` or `workers[2].config.port`. */
  readonly key: string;
  /** Secrets show their first four characters at most. */
  readonly value: Json;
  /** `null` when there is none. */
  readonly default: Json;
  /** What decided: the file (with the line), a variable in it, the command line, or nobody. */
  readonly source: "file" | "variable" | "option" | "default";
  /** From 1; `null` unless a file decided. */
  readonly line: number | null;
  /** Name of the environment variable; `null` unless one decided. */
  readonly variable: string | null;
  /** Takes effect when the engine starts anew. */
  readonly needs_restart: boolean;
}
