/**
 * The files of `engine deploy init`: the unit as systemd reads it, and the steps of the image in a
 * plain directory.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isAlive } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

async function run(cwd: string, program: string, args: readonly string[], env = {}) {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", ENGINE_URL: "", ...env },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

/** A project with the files of `engine deploy init`. */
async function setup(...options: string[]) {
  const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-deploy-" }));
  const project = `${directory}/shop`;
  await Deno.mkdir(project);
  const config = `engine: { port: 0 }
workers:
  - name: engine-state
  - name: engine-http
    config:
      host: \${HTTP_HOST:127.0.0.1}
      port: 0
      insecure: \${HTTP_OPEN:false}
`;
  await Deno.writeTextFile(`${project}/config.yaml`, config);
  const main = `${ROOT}cli/main.ts`;
  const made = await run(project, Deno.execPath(), [
    "run",
    "-A",
    main,
    "deploy",
    "init",
    ...options,
  ]);
  assert.equal(made.code, 0, made.stderr);
  return {
    directory,
    project,
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

async function isThere(program: string): Promise<boolean> {
  return (await run("/", "sh", ["-c", `command -v ${program}`])).code === 0;
}

const hasSystemd = Deno.build.os === "linux" && await isThere("systemd-analyze");
if (!hasSystemd) console.log("skipped: systemd-analyze is not on this machine");

Deno.test({
  name: "systemd accepts the unit, and finds it well protected",
  ignore: !hasSystemd,
  fn: async () => {
    await using place = await setup("--systemd", "--program", "/bin/true");
    const unit = `${place.project}/shop.service`;

    const verified = await run("/", "systemd-analyze", ["verify", "--man=no", unit]);
    assert.equal(verified.code, 0, verified.stderr);
    assert.doesNotMatch(verified.stderr, /shop\.service/);

    const args = ["security", "--offline=true", "--no-pager", unit];
    const security = await run("/", "systemd-analyze", args);
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(security.stdout)?.[1]);
    assert.ok(exposure < 5, security.stdout + security.stderr);
  },
});

Deno.test({
  name: "the steps of the Dockerfile make a project that gets healthy",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using place = await setup("--docker");
    const dockerfile = await Deno.readTextFile(`${place.project}/Dockerfile`);
    const lines = dockerfile.replaceAll(/\\\n\s*/g, "").split("\n");
    const install = lines.find((line) => line.startsWith("RUN deno install"))!.slice(4)
      .replace("--root /usr/local", `--root ${place.directory}/local`)
      .replace("deno install", `${Deno.execPath()} install --quiet -c ${ROOT}deno.json`);
    const env = { ENGINE: `${ROOT}cli/main.ts` };

    const installed = await run(place.project, "sh", ["-c", install], env);
    assert.equal(installed.code, 0, installed.stderr);
    const [, variables] = /^ENV (.*)$/m.exec(dockerfile)!;
    const command = JSON.parse(/^CMD (.*)$/m.exec(dockerfile)![1]!) as string[];
    const engine = new Deno.Command(`${place.directory}/local/bin/${command[0]}`, {
      args: command.slice(1),
      cwd: place.project,
      env: {
        ...Object.fromEntries(variables!.split(" ").map((each) => each.split("="))),
        PATH: `${Deno.execPath().replace(/\/[^/]*$/, "")}:${Deno.env.get("PATH")}`,
      },
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    try {
      const url = await addressOf(engine.stdout);
      const health = /CMD (curl .*) \|\| exit 1$/m.exec(dockerfile)![1]!
        .replace("http://127.0.0.1:49134", url.replace("ws:", "http:"));
      await until(async () => (await run("/", "sh", ["-c", health])).code === 0);
    } finally {
      if (isAlive(engine.pid)) engine.kill("SIGTERM");
      await engine.status;
    }
  },
});

/** The address of the worker port, which the engine prints; reads the rest, too. */
async function addressOf(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const found = Promise.withResolvers<string>();
  let text = "";
  void (async () => {
    for await (const part of stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      const [, url] = /^workers +(ws:\S+)$/m.exec(text) ?? [];
      if (url !== undefined) found.resolve(url);
    }
    found.reject(new Error(`the engine ended: ${text}`));
  })();
  return await found.promise;
}
