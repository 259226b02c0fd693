import assert from "node:assert/strict";
import { addressedEnv } from "./guest_env.ts";

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
