import assert from "node:assert/strict";
import { addressedEnv, cacheEnv, guestEnv } from "./guest_env.ts";

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

Deno.test("guestEnv() leaves out where this machine's package managers keep things", () => {
  const env = {
    npm_config_cache: "/usr/cache",
    NPM_CONFIG_PREFIX: "/usr",
    npm_config_userconfig: "/srv/w/.npmrc",
    PIP_TARGET: "/usr/lib",
    UV_CACHE_DIR: "/srv/w/cache",
  };

  assert.deepEqual(guestEnv(env, ["/srv/w"]), {});
});

Deno.test("cacheEnv() has everything that is fetched kept in one folder", () => {
  const env = cacheEnv("/p/.engine/deps/w/cache");

  const places = Object.values(env).filter((value) => value.startsWith("/"));
  assert.equal(places.length, 5);
  assert.ok(places.every((place) => place.startsWith("/p/.engine/deps/w/cache")));
});

Deno.test("addressedEnv() leads ENGINE_URL to where the guest reaches the engine", () => {
  const url = (text: string) => addressedEnv({ ENGINE_URL: text }, "10.0.2.2:7").ENGINE_URL;

  assert.equal(url("ws://127.0.0.1:49134"), "ws://10.0.2.2:7");
  assert.equal(url("ws://[::1]:49134?token=a%2Fb"), "ws://10.0.2.2:7?token=a%2Fb");
  assert.equal(url("ws://localhost:49134/path"), "ws://10.0.2.2:7/path");
});

Deno.test("addressedEnv() leads proxies on loopback to this machine, and none to the engine", () => {
  const env = {
    http_proxy: "http://user:word@127.0.0.1:3128/",
    HTTPS_PROXY: "localhost:3128",
    all_proxy: "socks5://[::1]:1080",
    ftp_proxy: "http://127.0.0.1.example:80",
    no_proxy: ".corp",
  };

  const addressed = addressedEnv(env, "10.0.2.2:7");

  assert.equal(addressed.http_proxy, "http://user:word@10.0.2.2:3128/");
  assert.equal(addressed.HTTPS_PROXY, "10.0.2.2:3128");
  assert.equal(addressed.all_proxy, "socks5://10.0.2.2:1080");
  assert.equal(addressed.ftp_proxy, "http://127.0.0.1.example:80");
  assert.equal(addressed.no_proxy, ".corp,10.0.2.2");
  assert.equal(addressed.NO_PROXY, ".corp,10.0.2.2");
});

Deno.test("addressedEnv() invents no proxy settings", () => {
  const names = Object.keys(addressedEnv({ LANG: "C" }, "10.0.2.2:7"));

  assert.deepEqual(names, ["LANG"]);
});
