/**
 * Descriptors: idle sockets on every port of an engine that may open few files. It stays up,
 * workers that are there and state go on, and it recovers when the sockets close.
 *
 * @module
 */
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { Peer } from "../peer.ts";
import { pause, within } from "../waiting.ts";

const FILES = 256;
/** More than the engine may open. */
const SOCKETS = 400;
const SLOW_BODIES = 1_024;
const SILENT = 64;
const CALL_MS_MAX = 10_000;
const RECOVER_MS_MAX = 20_000;
const MAX_MS = 250;

/** See the top of this file. */
export const descriptors: Scenario = {
  name: "descriptors",
  summary: `idle sockets with ulimit -n ${FILES}, slow bodies, silent pages`,
  async run(campaign) {
    for (const port of ["worker", "HTTP", "console"] as const) {
      const name = `idle sockets on the ${port} port`;
      if (!campaign.wants(name)) continue;
      await using subject = await campaign.subject({ files: FILES });
      await attack(campaign, subject, name, () => idle(subject, port));
    }
    if (campaign.wants("slow bodies")) {
      await using subject = await campaign.subject();
      await attack(campaign, subject, "slow bodies", () => slowBodies(campaign, subject));
    }
    if (campaign.wants("silent pages")) {
      await using subject = await campaign.subject();
      await attack(campaign, subject, "silent pages", () => silentPages(subject));
    }
  },
};

function attack(
  campaign: Campaign,
  subject: Subject,
  name: string,
  act: () => Promise<{ done: string; broken: string[] }>,
): Promise<void> {
  return campaign.attack(`descriptors: ${name}`, subject, { maxMs: MAX_MS }, act);
}

async function idle({ engine }: Subject, where: "worker" | "HTTP" | "console") {
  const broken: string[] = [];
  const ports = { worker: engine.port, HTTP: engine.httpPort, console: engine.consolePort };
  using writer = await Peer.connect(engine.port);
  const sockets = await hold(ports[where], SOCKETS);
  await pause(500);
  const write = { scope: "files", key: "k", value: 1 };
  const answer = await writer.call("state::set", write, CALL_MS_MAX);
  if (answer === undefined || answer.error) {
    broken.push(`state::set fails meanwhile: ${JSON.stringify(answer?.error ?? "no answer")}`);
  }
  const other = where === "worker" ? ports.HTTP : ports.worker;
  if (await answers(other) === "no response") broken.push("the other port does not answer");
  for (const socket of sockets) close(socket);
  const end = performance.now() + RECOVER_MS_MAX;
  let last = "";
  while (performance.now() < end && engine.isAlive) {
    const status = await answers(ports[where]);
    const joined = await Peer.connect(engine.port).then((peer) => peer.destroy(), String);
    last = `port: ${status}, a new worker: ${joined ?? "joins"}`;
    if (status !== "no response" && joined === undefined) {
      return { done: `${sockets.length} sockets; then ${last}`, broken };
    }
    await pause(200);
  }
  broken.push(`it has not recovered: ${last}`);
  return { done: `${sockets.length} sockets`, broken };
}

/** Opens sockets that send nothing; fewer when the engine refuses them. */
async function hold(port: number, count: number): Promise<Deno.Conn[]> {
  const sockets: Deno.Conn[] = [];
  for (let i = 0; i < count; i++) {
    const opened = Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    const socket = await within(opened, 1_000);
    if (socket === undefined) {
      void opened.then((late) => late && close(late));
      break;
    }
    sockets.push(socket);
  }
  return sockets;
}

/** Status of a request. */
async function answers(port: number): Promise<string> {
  const signal = AbortSignal.timeout(2_000);
  return await fetch(`http://127.0.0.1:${port}/healthz`, { signal }).then(async (response) => {
    await response.body?.cancel();
    return `${response.status}`;
  }, () => "no response");
}

/** Bodies that never end, from one address; a request from another one is served. */
async function slowBodies(campaign: Campaign, { engine }: Subject) {
  const broken: string[] = [];
  using owner = await Peer.connect(engine.port);
  owner.onText = (text) => {
    if (!text.startsWith('{"type":"invokefunction"')) return;
    const ids = /"invocation_id":"[^"]*","function_id":"[^"]*"/.exec(text)![0];
    void owner.send(`{"type":"invocationresult",${ids},"result":{"status_code":200}}`);
  };
  await owner.send({ type: "registerfunction", id: "files::http" });
  const config = { api_path: "/files", http_method: "POST" };
  const ids = { id: "files-route", trigger_type: "http", function_id: "files::http" };
  await owner.send({ type: "registertrigger", ...ids, config });
  await owner.settled(CALL_MS_MAX);
  const count = campaign.choose(200, SLOW_BODIES);
  const sockets = await hold(engine.httpPort, count);
  const head = "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{";
  for (const socket of sockets) {
    await socket.write(new TextEncoder().encode(head)).catch(() => {}); // Refused.
  }
  await pause(300);
  const status = await postFrom("127.0.0.9", engine.httpPort);
  if (!status.includes(" 200")) broken.push(`a request of another address got ${status}`);
  for (const socket of sockets) close(socket);
  return { done: `${sockets.length} slow bodies; another address: ${status}`, broken };
}

/** First line of the response to a whole request from another loopback address. */
async function postFrom(address: string, port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}/files`;
  const args = ["-s", "-i", "--max-time", "5", "--interface", address, "-d", "{}", url];
  const { stdout } = await new Deno.Command("curl", { args, stderr: "null" }).output()
    .catch(() => ({ stdout: new TextEncoder().encode("curl is missing") }));
  return new TextDecoder().decode(stdout).split("\r\n")[0] || "no response";
}

/** Connections to the console that never say hello; the engine's own user still gets in. */
async function silentPages({ engine }: Subject) {
  const broken: string[] = [];
  const origin = `http://127.0.0.1:${engine.consolePort}`;
  const headers = { "Host": origin.slice(7), "Origin": origin };
  const silent: Peer[] = [];
  for (let i = 0; i < SILENT; i++) {
    const peer = await Peer.connect(engine.consolePort, { path: "/live", headers })
      .catch(() => undefined);
    if (peer) silent.push(peer);
  }
  const { code, url } = await consoleAddress(engine.directory);
  if (url === undefined) broken.push(`engine console printed no address, code ${code}`);
  else {
    const page = await fetch(url).then((response) => response.text(), String);
    const token = /engine-console-token" content="([^"]*)"/.exec(page)?.[1] ?? "";
    const outcome = await enter(engine.consolePort, headers, token);
    if (outcome !== "welcome") broken.push(`the operator got ${outcome}`);
  }
  for (const peer of silent) peer.destroy();
  return { done: `${silent.length} of ${SILENT} silent connections; the operator's page`, broken };
}

async function consoleAddress(directory: string) {
  const program = new URL("../../../cli/main.ts", import.meta.url).pathname;
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", program, "console"],
    cwd: directory,
    env: { NO_COLOR: "1" },
    stdin: "null",
    stderr: "null",
  }).output();
  return { code, url: /http:\S+/.exec(new TextDecoder().decode(stdout))?.[0] };
}

async function enter(
  port: number,
  headers: Readonly<Record<string, string>>,
  token: string,
): Promise<string> {
  try {
    using page = await Peer.connect(port, { path: "/live", headers });
    const heard = new Promise<string>((resolve) => {
      page.onText = (text) => resolve(JSON.parse(text).type);
      void page.ended.then(({ code, reason }) => resolve(`close ${code} ${reason}`));
    });
    await page.send({ type: "hello", token });
    return await within(heard, CALL_MS_MAX) ?? "no answer";
  } catch (error) {
    return String(error);
  }
}

function close(socket: Deno.Conn): void {
  try {
    socket.close();
  } catch {
    // The engine has closed it.
  }
}
