import assert from "node:assert/strict";
import type { JsonObject } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { UsageError } from "../../failure.ts";
import { type AddFlags, readWanted } from "./words.ts";

const terminal = new FakeTerminal({ files: { "plain/engine.worker.yaml": "" } });

for (
  const [words, flags, requests] of [
    [["./workers/math"], {}, [{ path: "/project/workers/math" }]],
    [["../m"], { isolation: "process", force: true }, [
      { path: "/m", isolation: "process", reinstall: true },
    ]],
    [["/a"], { isolation: "microvm", accel: "tcg", replicas: "3" }, [
      { path: "/a", isolation: "microvm", accel: "tcg", replicas: 3 },
    ]],
    [["plain"], {}, [{ path: "/project/plain" }]],
    [["./a=b"], {}, [{ path: "/project/a=b" }]],
    [["engine-http", "port=3200", 'cors.origins=["http://a/"]'], {}, [
      { name: "engine-http", config: { port: 3200, cors: { origins: ["http://a/"] } } },
    ]],
    [["engine-state", "./a", "engine-http", "port=1", "plain"], { accel: "auto" }, [
      { name: "engine-state" },
      { path: "/project/a", accel: "auto" },
      { name: "engine-http", config: { port: 1 } },
      { path: "/project/plain", accel: "auto" },
    ]],
    [["engine-state"], { force: true }, [{ name: "engine-state" }]],
  ] as [string[], AddFlags, JsonObject[]][]
) {
  Deno.test(`engine worker add ${words.join(" ")} ${JSON.stringify(flags)} is understood`, async () => {
    const wanted = await readWanted(words, flags, terminal);

    assert.deepEqual(wanted.map(({ request }) => request), requests);
    assert.deepEqual(
      wanted.map(({ word }) => word),
      words.filter((word) => !/^[a-z.]+=/.test(word)),
    );
  });
}

for (
  const [words, flags, message] of [
    [[""], {}, /^Which worker\? Such as/],
    [["./a", ""], {}, /^Which worker\? Such as/],
    [["port=1"], {}, /^Which worker is port=1 for\? Its name comes first$/],
    [
      ["./a", "port=1"],
      {},
      /^\.\/a is a directory; its configuration is in its engine\.worker\.yaml$/,
    ],
    [["engine-http", "=1"], {}, /Not a field: =1/],
    [["./a", "./b/../a"], {}, /^\.\/b\/\.\.\/a is there twice$/],
    [["engine-state", "engine-state"], {}, /^engine-state is there twice$/],
    [["./a"], { isolation: "jail" }, /^--isolation: expected microvm or process, received "jail"$/],
    [["./a"], { accel: "hvf" }, /^--accel: expected auto, kvm or tcg, received "hvf"$/],
    [["./a"], { accel: "" }, /^--accel: expected auto, kvm or tcg, received ""$/],
    [["./a"], { replicas: "0" }, /^--replicas: expected 1 to 64, received "0"$/],
    [["./a"], { replicas: "two" }, /^--replicas: expected 1 to 64/],
    [["./a"], { isolation: "process", accel: "kvm" }, /^--accel is for microVMs/],
    [["engine-http"], { isolation: "process" }, /^--isolation is for workers that are directories/],
    [
      ["engine-http", "engine-state"],
      { replicas: "2" },
      /^--replicas is for .*; engine-http, engine-state/,
    ],
  ] as [string[], AddFlags, RegExp][]
) {
  Deno.test(`engine worker add ${JSON.stringify(words)} ${JSON.stringify(flags)} is not understood`, async () => {
    await assert.rejects(() => readWanted(words, flags, terminal), (thrown) => {
      assert.ok(thrown instanceof UsageError, String(thrown));
      assert.match(thrown.message, message);
      return true;
    });
  });
}
