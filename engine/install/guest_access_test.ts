import assert from "node:assert/strict";
import type { Containment, LaunchSpec } from "../ports/launcher.ts";
import {
  checkDirectory,
  guestEnv,
  processEnv,
  type ProtectedFolders,
  resolveShares,
  WorkerFolders,
} from "./guest_access.ts";

const CONTAINMENT: Containment = {
  reads: [],
  writes: [],
  network: "full",
  resources: { cpus: 1, memory_mb: 128 },
  accel: "auto",
};

/** A project with a worker, a home beside it and a runtime. */
async function setup() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const data = `${root}/p/.engine`;
  const worker = `${root}/p/workers/w`;
  const home = `${root}/home`;
  const deps = `${data}/deps/w`;
  const runtime = `${root}/opt/python`;
  for (const path of [worker, home, deps, runtime]) await Deno.mkdir(path, { recursive: true });
  const hidden: ProtectedFolders = { dataDirectory: data, home };
  const shares = (containment: Partial<Containment> = {}, directory = worker) => {
    const spec: LaunchSpec = { name: "w", command: "run", directory, env: {} };
    return resolveShares({ ...spec, containment: { ...CONTAINMENT, ...containment } }, hidden);
  };
  const refused = (path: string, why: RegExp) =>
    assert.rejects(shares({}, path), { code: "isolation_unavailable", message: why });
  const remove = () => Deno.remove(root, { recursive: true });
  const rest = { hidden, shares, refused, [Symbol.asyncDispose]: remove };
  return { root, data, worker, home, deps, runtime, ...rest };
}

Deno.test("resolveShares() shares the system, folders to read and the worker's own, nothing else", async () => {
  await using there = await setup();
  const { worker, deps, runtime } = there;

  const shares = await there.shares({ reads: [runtime], writes: [deps] });

  assert.deepEqual(shares.map(({ path }) => path).sort(), ["/usr", worker, deps, runtime].sort());
  assert.deepEqual(
    shares.filter(({ writable }) => writable).map(({ path }) => path).sort(),
    [worker, deps].sort(),
  );
});

Deno.test("resolveShares() lists outer folders first and leaves out folders inside them", async () => {
  await using there = await setup();
  const { worker, runtime } = there;
  await Deno.mkdir(`${runtime}/inner`);
  await Deno.mkdir(`${worker}/venv`);

  const shares = await there.shares({
    reads: [`${runtime}/inner`, runtime, "/usr/lib/python3", `${worker}/venv`, worker],
    writes: [`${worker}/venv`, `${runtime}/inner`],
  });

  assert.deepEqual(shares.filter(({ path }) => path !== "/usr"), [
    { path: runtime, writable: false },
    { path: `${runtime}/inner`, writable: true },
    { path: worker, writable: true },
  ]);
});

Deno.test("resolveShares() takes paths with spaces, commas, quotes and letters of all kinds", async () => {
  await using there = await setup();
  const odd = `${there.root}/it's, a "dir" $x \\ ü`;
  await Deno.mkdir(odd);

  assert.ok((await there.shares({}, odd)).some(({ path }) => path === odd));
  await Deno.mkdir(`${odd}\n`);
  await there.refused(`${odd}\n`, /has control characters/);
});

Deno.test("resolveShares() refuses missing folders and files", async () => {
  await using there = await setup();
  await Deno.writeTextFile(`${there.root}/file`, "");
  const missing = { code: "launch_failed", message: /nowhere is not a folder$/ };

  await assert.rejects(there.shares({}, `${there.root}/nowhere`), missing);
  await assert.rejects(there.shares({ reads: ["/nowhere"] }), missing);
  await assert.rejects(there.shares({ writes: ["/nowhere"] }), missing);
  await assert.rejects(there.shares({}, `${there.root}/file`), { code: "launch_failed" });
});

Deno.test("resolveShares() refuses a worker's directory that contains private files", async () => {
  await using there = await setup();
  const { root, data, home } = there;

  await there.refused(`${root}/p`, new RegExp(`which holds ${data}; move it`));
  await there.refused(root, /which holds/);
  await there.refused(home, new RegExp(`all of ${home} would be shown`));
  await there.refused(data, /lies among the engine's own files|which holds/);
  await there.refused(`${data}/deps`, /lies among the engine's own files/);
  for (const path of ["/", "/etc", "/usr", "/usr/lib", "/tmp", "/var"]) {
    await there.refused(path, /would be shown|which holds/);
  }
  for (const path of ["/proc/self", "/sys/kernel"]) {
    await there.refused(path, /no ordinary files/);
  }
});

Deno.test("resolveShares() resolves links before it checks", async () => {
  await using there = await setup();
  const { root, home, worker } = there;
  await Deno.symlink(`${root}/p`, `${root}/project`);
  await Deno.symlink(home, `${root}/elsewhere`);
  await Deno.symlink("/proc/self", `${root}/self`);
  await Deno.symlink(worker, `${root}/linked`);

  await there.refused(`${root}/project`, /which holds/);
  await there.refused(`${root}/elsewhere`, /would be shown/);
  await there.refused(`${root}/self`, /no ordinary files/);
  const shares = await there.shares({}, `${root}/linked`);
  assert.ok(shares.some(({ path, writable }) => path === `${root}/linked` && writable));
});

Deno.test("resolveShares() refuses runtimes in folders where many programs keep files", async () => {
  await using there = await setup();
  const { root, home, data } = there;
  for (const path of [`${home}/.local/share`, `${home}/.pyenv/versions/3`]) {
    await Deno.mkdir(path, { recursive: true });
  }
  const refuses = async (path: string): Promise<void> => {
    const refusal = { code: "isolation_unavailable", message: /: it needs the folder .*; move it/ };
    await assert.rejects(there.shares({ reads: [path] }), refusal, path);
  };

  for (const path of ["/", "/etc", "/opt", "/home", home, `${home}/.local`]) await refuses(path);
  for (const path of [`${home}/.local/share`, data, `${root}/p`, root]) await refuses(path);
  const shares = await there.shares({ reads: [`${home}/.pyenv/versions/3`] });
  assert.ok(shares.some(({ path }) => path === `${home}/.pyenv/versions/3`));
});

Deno.test("resolveShares() refuses folders behind a link in another shared folder", async () => {
  await using there = await setup();
  const { root, runtime, worker } = there;
  await Deno.mkdir(`${root}/real`);
  await Deno.symlink(`${root}/real`, `${runtime}/link`);

  await assert.rejects(there.shares({ reads: [runtime], writes: [`${runtime}/link`] }), {
    code: "isolation_unavailable",
    message: new RegExp(`link is a link inside ${runtime}; use its real path ${root}/real`),
  });
  assert.ok((await there.shares({ reads: [runtime] }, worker)).length > 0);
});

Deno.test("checkDirectory() refuses every microVM of a project below /usr", async () => {
  await using there = await setup();
  const refused = {
    code: "isolation_unavailable",
    message: /lies below \/usr, which every microVM/,
  };

  const below = (more: Partial<ProtectedFolders>) =>
    checkDirectory("w", there.worker, { ...there.hidden, ...more });

  await assert.rejects(below({ dataDirectory: "/usr/local/p/.engine" }), refused);
  await assert.rejects(below({ home: "/usr/home/u" }), refused);
  await Deno.symlink("/usr/lib", `${there.root}/linked-home`);
  await assert.rejects(below({ home: `${there.root}/linked-home` }), refused);
  await below({ home: "/usr/sbin" });
  await below({ home: undefined });
});

Deno.test("checkDirectory() refuses a directory that contains further hidden folders", async () => {
  await using there = await setup();
  const cache = `${there.worker}/cache`;
  await Deno.mkdir(cache);

  await assert.rejects(checkDirectory("w", there.worker, { ...there.hidden, more: [cache] }), {
    message: new RegExp(`which holds ${cache}`),
  });
});

Deno.test("WorkerFolders refuses a worker whose directory lies in that of another", async () => {
  const folders = new WorkerFolders();
  const overlap = { code: "isolation_unavailable", message: /and that of a, \/p\/a, overlap/ };
  await folders.claim("a", "/p/a");

  await assert.rejects(folders.claim("b", "/p/a/b"), overlap);
  await assert.rejects(folders.claim("b", "/p"), overlap);
  await folders.claim("b", "/p/ab");
});

Deno.test("WorkerFolders lets copies share a directory and a worker move", async () => {
  const folders = new WorkerFolders();
  await folders.claim("a", "/p/a");
  await folders.claim("a@2", "/p/a");

  await folders.claim("a", "/p/a/moved");
  await folders.claim("a@2", "/p/a/moved");
  await folders.claim("b", "/p/a/other");
});

Deno.test("guestEnv() passes settings of network, packages, certificates and language only", () => {
  const passed = {
    https_proxy: "http://proxy:3128",
    HTTP_PROXY: "http://user:word@proxy:3128",
    NO_PROXY: "localhost,.corp",
    PIP_INDEX_URL: "https://packages.example/simple",
    UV_INDEX_URL: "https://packages.example/simple",
    npm_config_registry: "https://packages.example/npm/",
    NPM_CONFIG_REGISTRY: "https://packages.example/npm/",
    SSL_CERT_FILE: "/etc/ssl/certs/ca-certificates.crt",
    SSL_CERT_DIR: "/etc/ssl/certs",
    LANG: "de_DE.UTF-8",
    LC_ALL: "C",
    TZ: "Europe/Berlin",
  };
  const kept = {
    AWS_SECRET_ACCESS_KEY: "key",
    GITHUB_TOKEN: "key",
    DATABASE_URL: "postgres://",
    HOME: "/home/u",
    PATH: "/home/u/bin",
    LD_PRELOAD: "evil.so",
    PYTHONPATH: "/home/u/lib",
    NODE_OPTIONS: "--require x",
    MY_PIP_TOKEN: "key",
    ENGINE_URL: "ws://127.0.0.1:1",
  };

  assert.deepEqual(guestEnv({ ...passed, ...kept }, []), passed);
});

Deno.test("guestEnv() leaves out files that the guest does not have", () => {
  const env = {
    SSL_CERT_FILE: "/home/u/corp.pem",
    NODE_EXTRA_CA_CERTS: "/srv/w/corp.pem",
    REQUESTS_CA_BUNDLE: "/etc/ssl/certs/../../shadow",
    PIP_CERT: "~/corp.pem",
    CURL_CA_BUNDLE: "/usr/local/share/ca.pem",
    PIP_FIND_LINKS: "/srv/elsewhere/wheels https://wheels.example file:///srv/w/wheels",
    PIP_EXTRA_INDEX_URL: "file:///opt/index",
  };

  assert.deepEqual(guestEnv(env, ["/srv/w"]), {
    NODE_EXTRA_CA_CERTS: "/srv/w/corp.pem",
    CURL_CA_BUNDLE: "/usr/local/share/ca.pem",
    PIP_FIND_LINKS: "https://wheels.example file:///srv/w/wheels",
  });
});

Deno.test("guestEnv() leaves out places of the host's package managers", () => {
  const env = {
    npm_config_cache: "/usr/cache",
    NPM_CONFIG_PREFIX: "/usr",
    npm_config_userconfig: "/srv/w/.npmrc",
    PIP_TARGET: "/usr/lib",
    UV_CACHE_DIR: "/srv/w/cache",
  };

  assert.deepEqual(guestEnv(env, ["/srv/w"]), {});
});

Deno.test("processEnv() passes what guests get and places of the host, and no keys", () => {
  const passed = {
    PATH: "/usr/bin",
    HOME: "/home/u",
    TMPDIR: "/tmp/u",
    LC_ALL: "C",
    TZ: "UTC",
    https_proxy: "http://proxy:3128",
    SSL_CERT_FILE: "/home/u/corp.pem",
    PIP_INDEX_URL: "https://packages.example/simple",
    DENO_DIR: "/home/u/.deno",
    NVM_DIR: "/home/u/.nvm",
    PYENV_ROOT: "/home/u/.pyenv",
    XDG_CACHE_HOME: "/home/u/.cache",
  };
  const kept = {
    AWS_SECRET_ACCESS_KEY: "key",
    GITHUB_TOKEN: "key",
    DATABASE_URL: "postgres://",
    ENGINE_TOKEN: "key",
    MISE_GITHUB_TOKEN: "key",
    DENO_AUTH_TOKENS: "key",
    SSH_AUTH_SOCK: "/run/agent",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=key",
  };

  assert.deepEqual(processEnv({ ...passed, ...kept }), passed);
});
