/**
 * The validated configuration.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Accelerator, Isolation } from "./launcher.ts";
import type { LogLevel } from "./log.ts";

/** A config.yaml after validation; its users need no further checks. */
export interface Config {
  /** Absolute path of the file; `null` when the embedded defaults are in use. */
  readonly path: string | null;
  /** The text of the file that it was made from; `null` for the embedded defaults. */
  readonly text: string | null;
  /** Absolute; relative paths in the file start here. */
  readonly directory: string;
  /** `<directory>/.engine`: store, logs, caches. */
  readonly dataDirectory: string;
  readonly engine: EngineSettings;
  readonly log: LogSettings;
  /** In the order of the file; names are unique. */
  readonly workers: readonly WorkerEntry[];
  /** Every effective value and its source. */
  readonly values: readonly ConfigValue[];
}

/** The section `engine`; spelled as in the file. */
export interface EngineSettings {
  /** Address of the worker listener. */
  readonly host: string;
  /** Port of the worker listener; 0 for any free port. */
  readonly port: number;
  /** The token that clients have to present; without it none is required. */
  readonly auth_token?: string;
  /** Allows an address that is not loopback without a token. */
  readonly insecure: boolean;
  /** Web origins besides loopback ones that may connect. */
  readonly allowed_origins: readonly string[];
  /** The WebSocket implementation: our own on TCP, or Deno's HTTP server and WebSocket. */
  readonly transport: "raw" | "deno-serve";
  /** Absolute paths of the PEM files of the certificate and its key; without them no encryption. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly max_message_bytes: number;
  readonly invocation_timeout_ms: number;
  readonly validate_payloads: boolean;
  /**
   * Functions that workers of different names may offer: ids, or their beginnings with a `*`
   * behind. Without it all may, and the engine warns.
   */
  readonly shared_functions?: readonly string[];
  readonly max_inflight_calls_per_worker: number;
  readonly max_inflight_bytes_per_worker: number;
  /** Memory for what peers send and do not read, in MiB, over the whole process. */
  readonly memory_mb: number;
  /** Time between pings. A worker that leaves one unanswered until the next is suspect. */
  readonly heartbeat_ms: number;
  /** A connection on which nothing arrives for this long is closed. */
  readonly silence_ms: number;
  /** Worker listeners besides this one; their names are unique. */
  readonly listeners: readonly ListenerSettings[];
  /** What functions that are served by HTTP may request. */
  readonly http_functions: HttpFunctionSettings;
  /** The engines that are one system with this one; without it this engine is alone. */
  readonly cluster?: ClusterSettings;
}

/** Several engines as one, over NATS; spelled as in the file. */
export interface ClusterSettings {
  /** Part of every subject; equal in all engines of the cluster. */
  readonly name: string;
  /** Addresses of NATS nodes, such as `nats://n1:4222`. */
  readonly nats: readonly string[];
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** Absolute path of a file with a user's JWT and seed. */
  readonly credentials?: string;
  readonly tls?: ClusterTls;
  /** Allows addresses that other machines reach without a secret, and one copy of the log. */
  readonly insecure: boolean;
  /** For lists and logs; need not be unique. Default: the name of the machine. */
  readonly engine_name: string;
  /** Where state, queues and cron are kept: `jetstream`, a `postgres://` URL, or `none`. */
  readonly log: string;
  /** Whether this engine may keep the state. */
  readonly keeper: boolean;
  /** Of the log, if that is JetStream. */
  readonly copies: 1 | 3 | 5;
  /** Refuses to keep state where an answer does not mean that it is on the disk. */
  readonly require_sync: boolean;
  /** Monitoring addresses of the NATS nodes, which say how the log is kept. */
  readonly monitor: readonly string[];
  /** Calls that a worker of this engine may run beyond another engine before that one gets any. */
  readonly far_calls: number;
}

/** Absolute paths of PEM files. */
export interface ClusterTls {
  /** Of the authority that signed the certificates of the NATS nodes. */
  readonly ca?: string;
  /** Of this engine, with `key`. */
  readonly cert?: string;
  readonly key?: string;
}

/** Rules for functions whose implementation is a URL: PROTOCOL 2.2; spelled as in the file. */
export interface HttpFunctionSettings {
  /** Hosts that may be requested, as patterns such as `https://*.example.com:8443`. */
  readonly allow: readonly string[];
  /** Allows addresses of private networks and of this machine. */
  readonly allow_private: boolean;
  /** Environment variables of the engine whose values `auth` may send. */
  readonly auth_env: readonly string[];
}

/** One worker listener besides the default one; spelled as in the file. */
export interface ListenerSettings {
  /** For logs and lists. */
  readonly name: string;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The token that clients have to present; a created token counts as well. */
  readonly auth_token?: string;
  /** Asks for a created token also where there is no `auth_token`. */
  readonly tokens: boolean;
  /** Allows an address that is not loopback without a token. */
  readonly insecure: boolean;
  readonly allowed_origins: readonly string[];
  /** As that of the section `engine`. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Called instead of each allowed function outside `engine::*`. */
  readonly middleware_function_id?: string;
  /** Access rules; without them everything is allowed. */
  readonly rbac?: RbacSettings;
}

/** The access rules of a listener; PROTOCOL 8. */
export interface RbacSettings {
  /** Decides about each connection. */
  readonly auth_function_id?: string;
  /** How long it, and a hook, may take. */
  readonly auth_timeout_ms: number;
  /** Rules as they are written, checked. */
  readonly expose_functions: readonly Json[];
  readonly on_function_registration_function_id?: string;
  readonly on_trigger_registration_function_id?: string;
  readonly on_trigger_type_registration_function_id?: string;
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
  /** As the worker's `parse` returned it. */
  readonly config: unknown;
  /** As in the file, with variables filled in; compared to detect changes. */
  readonly raw: Json;
}

/** A worker that is a directory with an engine.worker.yaml. */
export interface DirectoryEntry {
  readonly kind: "directory";
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Default: the manifest's, else what the platform offers. */
  readonly isolation?: Isolation;
  /** Accelerator of the microVM. Default: `auto`. */
  readonly accel?: Accelerator | "auto";
  /** Number of replicas. Default: the manifest's, else 1. */
  readonly replicas?: number;
  /** The engine is not ready while it is not. Default `false`. */
  readonly required?: boolean;
  /** Overrides the manifest's `env`. */
  readonly env: Readonly<Record<string, string>>;
}

/** A worker that comes with the engine, as its configuration sees it. */
export interface KnownWorker {
  /** Such as `engine-state`. */
  readonly name: string;
  /** Runs in every engine, whether or not config.yaml names it. */
  readonly runsAlways?: boolean;
  /** Runs in an engine without a config.yaml. */
  readonly runsByDefault?: boolean;
  /** What it provides while it runs, for those who ask for it while it does not. */
  readonly offers?: WorkerOffers;
  /**
   * Checks the `config` of its entry in config.yaml.
   *
   * @throws {Error} With every problem as `issues`, a list of {@linkcode ConfigIssue}.
   */
  parse(raw: unknown): unknown;
  /** JSON Schema of that `config`, for editors. Default: any mapping. */
  configSchema?(): JsonObject;
}

/** What a built-in worker provides in the default namespace. */
export interface WorkerOffers {
  /** Ids, or their beginnings with a `*` behind. */
  readonly functions?: readonly string[];
  /** Ids. */
  readonly triggerTypes?: readonly string[];
}

/** One thing that is wrong with the `config` of a built-in worker. */
export interface ConfigIssue {
  /** Keys and list indexes from `config` to the value. */
  readonly path: readonly (string | number)[];
  /** What should be there, such as `a whole number` or `one of open, shut`. */
  readonly expected: string;
  /** What is there, when that is not the value itself. */
  readonly received?: string;
}

/** One effective value and its source. */
export interface ConfigValue {
  /** Such as `engine.port` or `workers[2].config.port`. */
  readonly key: string;
  /** Of a secret, the first four characters at most. */
  readonly value: Json;
  /** `null` without a default. */
  readonly default: Json;
  /** What set the value: the file, a variable in it, the command line, or the default. */
  readonly source: "file" | "variable" | "option" | "default";
  /** Line in the file, from 1; `null` unless the file set the value. */
  readonly line: number | null;
  /** Name of the environment variable; `null` unless one set the value. */
  readonly variable: string | null;
  /** Takes effect after a restart of the engine. */
  readonly needs_restart: boolean;
}
