/**
 * The port that workers connect to: which listener, which requests pass, and what takes a
 * connection.
 *
 * A port with TLS is for other machines, and its certificate is for the name that those dial. So
 * workers that the engine itself starts use a second port: on loopback, without TLS, with the same
 * rules otherwise. They need no CA, and none of their data leaves the machine.
 *
 * @module
 */
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import {
  type Accept,
  type AnswerPage,
  CONNECTIONS_MAX,
  type Listen,
  type Listener,
  type Upgrade,
} from "./ports/connection.ts";
import { LAUNCH_ID_HEADER } from "../sdk/typescript/wire/protocol.ts";
import { CONTROL_HEADER, type ControlKey } from "./auth/control_key.ts";
import type { ChannelTable } from "./channels/channel_table.ts";
import type { ListenerAccess } from "./auth/listener_access.ts";
import type { TokenRecord } from "./auth/token_file.ts";
import type { Tokens } from "./auth/tokens.ts";
import { Access, type TokenRules } from "./core/access/access.ts";
import { Pattern } from "./core/access/patterns.ts";
import type { Router } from "./core/router.ts";
import { makeGate, type SocketPaths, TelemetryConnection } from "./transport/gate.ts";
import { type Certificate, readCertificate, validityOf } from "./transport/certificate.ts";
import type { Pages } from "./transport/pages.ts";
import { connectionsOf, listenRawWith } from "./transport/raw_listener.ts";
import { listenServe, listenServeTls } from "./transport/serve_listener.ts";
import type { TickBudget } from "./transport/tick_budget.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineSettings, ListenerSettings } from "./ports/config.ts";
import type { ListenSettings } from "./ports/listen.ts";
import type { Log } from "./ports/log.ts";
import type { MemoryBudget } from "./ports/memory.ts";
import type { TelemetryListener } from "./ports/telemetry.ts";
import { RefusedOrigins } from "../workers/kit/refused_origins.ts";

/** A certificate that expires within this time causes a warning: two weeks. */
const CERTIFICATE_WARNING_MS = 1_209_600_000;

/** What {@linkcode openWorkerPort} works with. */
export interface WorkerPortOptions {
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes the connections of workers. */
  readonly router: Router;
  /** Takes the connections of ends of channels. */
  readonly channels: Pick<ChannelTable, "claim">;
  /** Takes frames of telemetry. */
  readonly telemetry: TelemetryListener;
  readonly pages: Pages;
  /** Paths that built-in workers serve. Default: none. */
  readonly socketPaths?: SocketPaths;
  /** Created tokens. Default: there are none. */
  readonly tokens?: Tokens | undefined;
  /** For what peers send and do not read. */
  readonly memory: MemoryBudget;
  /** The thread's time, shared with the connections of built-in workers. */
  readonly ticks: TickBudget;
  /** Sockets that the port may have open. Default: {@linkcode CONNECTIONS_MAX}. */
  readonly sockets?: number;
  /** Whether the engine stops: no worker may connect. Default: it does not. */
  isStopping?(): boolean;
  /** The control key; `undefined` before it was made. */
  key(): ControlKey | undefined;
}

/**
 * Opens the port.
 *
 * @throws {EngineError} `address_in_use`, `address_not_available`, `config_invalid`.
 */
export function openWorkerPort(options: WorkerPortOptions): Listener {
  const { settings, pages, socketPaths } = options;
  const listen = listenerOf(options, certificateOf(options));
  const address = { hostname: settings.host, port: settings.port };
  return open(options, listen, address, {
    answerPage: pages.answer,
    ...socketPaths && { socketPaths },
  });
}

/**
 * Opens a listener besides the default one, with an address, tokens and rules of its own. It serves
 * no pages.
 *
 * @throws {EngineError} `address_in_use`, `address_not_available`, `config_invalid`.
 */
export function openListener(
  options: WorkerPortOptions,
  listener: ListenerSettings,
  access: ListenerAccess | undefined,
): Listener {
  const { auth_token: _token, tls: _tls, ...shared } = options.settings;
  const { name, host, port, tokens, auth_token, tls, insecure, allowed_origins } = listener;
  const settings: EngineSettings = {
    ...shared,
    host,
    port,
    insecure,
    allowed_origins,
    ...auth_token === undefined ? {} : { auth_token },
    ...tls === undefined ? {} : { tls },
  };
  const own = { ...options, settings };
  const listen = listenerOf(own, certificateOf(own, `listener ${name}`));
  const rules = { name: `listener ${name}`, access, tokensRequired: tokens };
  return open(own, listen, { hostname: host, port }, rules);
}

/** Opens the second port, for workers that the engine starts: on loopback, without TLS. */
export function openLoopbackPort(options: WorkerPortOptions): Listener {
  const listen = listenerOf(options, undefined);
  return open(options, listen, { hostname: "127.0.0.1", port: 0 });
}

function listenerOf(
  { settings: { transport }, ticks }: WorkerPortOptions,
  certificate: Certificate | undefined,
): Listen {
  if (transport === "raw") return listenRawWith(ticks, certificate);
  return certificate ? listenServeTls(certificate) : listenServe;
}

/** What differs between the ports of an engine. */
interface PortRules {
  readonly answerPage?: AnswerPage;
  readonly socketPaths?: SocketPaths;
  /** How messages name its settings. Default: `engine`. */
  readonly name?: string;
  /** Default: connections may do what their token allows. */
  readonly access?: ListenerAccess | undefined;
  /** Asks for a created token. Default: no. */
  readonly tokensRequired?: boolean;
}

function open(
  options: WorkerPortOptions,
  listen: Listen,
  address: Pick<Listener, "hostname" | "port">,
  { answerPage, socketPaths, name, access, tokensRequired }: PortRules = {},
): Listener {
  const { settings, clock, log, router, telemetry, channels } = options;
  const { sockets = CONNECTIONS_MAX } = options;
  const isOperator = (headers: Headers): boolean => {
    return options.key()?.matches(headers.get(CONTROL_HEADER)) ?? false;
  };
  const { tokens } = options;
  const accept = (upgrade: Upgrade, token: TokenRecord | undefined): Accept => {
    const { address, headers } = upgrade;
    const launch_id = headers.get(LAUNCH_ID_HEADER);
    const peer = { address, launch_id, builtin: null, operator: isOperator(headers) };
    const info = token ? { ...peer, token: token.id } : peer;
    const rules = rulesOf(token);
    if (access) return access.admit(upgrade, info, rules);
    const limited = rules ? { ...info, access: new Access({ token: rules }) } : info;
    return (connection) => router.open(connection, limited);
  };
  const acceptTelemetry = ({ address }: Upgrade, token: TokenRecord | undefined): Accept => {
    return (connection) => {
      const closed = token && tokens?.hold(token.id, connection);
      const listener = telemetry;
      return new TelemetryConnection({ clock, log, address, listener, ...closed && { closed } });
    };
  };
  const refused = new RefusedOrigins(log, `${name ?? "engine"}.allowed_origins`);
  const gate = makeGate({
    ...name === undefined ? {} : { name },
    authToken: settings.auth_token,
    created: tokens,
    required: tokensRequired,
    allowedOrigins: settings.allowed_origins,
    originRefused: (origin) => refused.report(origin),
    maxConnections: connectionsOf(sockets),
    isOperator: ({ headers }) => isOperator(headers),
    closedReason: () => options.isStopping?.() ? "The engine is stopping" : undefined,
    accept,
    acceptTelemetry,
    claimChannel: (upgrade) => channels.claim(upgrade),
    ...socketPaths && { sockets: socketPaths },
  });
  return listen({
    ...address,
    maxMessageBytes: settings.max_message_bytes,
    maxQueuedBytes: settings.max_inflight_bytes_per_worker,
    heartbeatMs: settings.heartbeat_ms,
    silenceMs: settings.silence_ms,
    memory: options.memory,
    maxSockets: sockets,
    ...name === undefined ? {} : { settings: settingsOf(name) },
    onAcceptError: (reason) => log.warn("the worker port cannot accept a connection", { reason }),
    onCut: (address, reason) => log.warn("connection cut", { address, reason }),
    ...answerPage && { answerPage },
  }, gate);
}

/** How errors name the address of a listener. */
function settingsOf(name: string): ListenSettings {
  return {
    port: `port of ${name} in config.yaml`,
    address: `host and port of ${name} in config.yaml`,
  };
}

/** What a created token limits its connections to; `undefined`: nothing. */
function rulesOf(token: TokenRecord | undefined): TokenRules | undefined {
  if (!token || token.allow === null) return undefined;
  return { name: token.name, allow: token.allow.map(Pattern.glob) };
}

/** Reads the certificate; warns when it is not valid, or not for long. */
function certificateOf(
  { settings, clock, log }: WorkerPortOptions,
  name = "engine",
): Certificate | undefined {
  const { tls } = settings;
  if (!tls) return undefined;
  const read = readCertificate(tls);
  if (!("cert" in read)) {
    const problems = read.map(({ file, expected, found }) => {
      return `${name}.tls.${file}: expected ${expected}, received ${found}`;
    });
    throw new EngineError("config_invalid", problems.join("; "), { details: { problems } });
  }
  const { from, to } = validityOf(read);
  const now = clock.wall();
  if (now < from || now > to - CERTIFICATE_WARNING_MS) {
    const [since, until] = [from, to].map((ms) => new Date(ms).toISOString());
    log.warn("the certificate has to be renewed", { path: tls.cert, since, until });
  }
  return read;
}

/** The address of a port as a client dials it. */
export function addressOf({ hostname, port }: Listener, scheme: "ws" | "wss" = "ws"): string {
  return `${scheme}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

/** Where workers on this machine reach a listener, whatever address it listens on. */
export function reachable(listener: Listener): Listener {
  const everywhere = listener.hostname === "0.0.0.0" || listener.hostname === "::";
  return everywhere ? { ...listener, hostname: "127.0.0.1" } : listener;
}

/** The address that workers which the engine starts dial, with the token they need. */
export function workerUrl(listener: Listener, token: string | undefined): string {
  const url = addressOf(reachable(listener));
  return token === undefined ? url : `${url}?token=${encodeURIComponent(token)}`;
}
