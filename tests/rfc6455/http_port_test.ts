/**
 * RFC 6455 on a port of HTTP, as `engine-http` has it: the request is read by the port, which hands
 * the connection over.
 *
 * @module
 */
import type { Listen } from "../../engine/ports/connection.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { TickBudget } from "../../engine/transport/tick_budget.ts";
import { RawWebSockets } from "../../engine/transport/web_sockets.ts";
import { HttpPort } from "../../workers/kit/http/port.ts";
import type { ServedRequest, ServedResponse } from "../../workers/kit/http/response.ts";
import { recordingLog } from "../fakes/fake_http.ts";
import { testConformance } from "./conformance.ts";

const SETTINGS = { port: "port", address: "host and port" };

/** A port on which every request for an upgrade becomes a connection of the gate. */
const listenHttp: Listen = (options, gate) => {
  const { maxMessageBytes, maxQueuedBytes, silenceMs, memory = UNLIMITED_MEMORY } = options;
  const sockets = new RawWebSockets({
    ticks: new TickBudget(),
    memory,
    ...silenceMs !== undefined && { silenceMs },
    ...options.onCut && { onCut: options.onCut },
  });
  const upgrades = new Set<Promise<void>>();
  const handle = (request: ServedRequest): ServedResponse => {
    const problem = sockets.problemOf(request);
    const { target, headers, client } = request;
    const url = URL.parse(target.startsWith("/") ? `http://localhost${target}` : target)!;
    const upgrade = { path: url.pathname, query: url.searchParams, headers: new Headers(headers) };
    const verdict = problem ?? gate({ ...upgrade, address: client.name });
    if (typeof verdict !== "function") {
      const { status, message } = verdict;
      return {
        status,
        headers: Object.entries(problem?.headers ?? {}),
        body: message,
        isLast: true,
      };
    }
    return {
      status: 101,
      headers: [],
      body: null,
      upgrade(stream, rest) {
        const start = { request, stream, rest, address: client.name, protocol: undefined };
        const done = sockets.accept({ ...start, maxMessageBytes, maxQueuedBytes }, verdict);
        upgrades.add(done);
        return done.finally(() => upgrades.delete(done));
      },
    };
  };
  const port = new HttpPort({
    host: options.hostname,
    port: options.port,
    name: "test",
    settings: SETTINGS,
    clock: systemClock,
    log: recordingLog([]),
    memory,
    socketsMax: 1_000,
    handle,
  });
  return {
    hostname: port.hostname,
    port: Number(new URL(port.url).port),
    async close() {
      await port.close();
      port.destroy();
      await Promise.all(upgrades);
    },
  };
};

testConformance("HTTP port", { listen: listenHttp }, {
  "section 4.1 HTTP/1.0": "Upgrade is ignored, as RFC 9110 asks for: 426 instead of 400",
  "section 4.2.1 HTTP/2": "the port answers 505",
  "section 4.2.1 a target that is no path": "it is a path without a route",
  "section 4.2.1 a head that does not end": "heads may have 64 KiB",
});
