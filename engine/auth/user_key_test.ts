import assert from "node:assert/strict";
import { keyFolder } from "./user_key.ts";

for (
  const [platform, env, folder] of [
    ["linux", { XDG_STATE_HOME: "/s", HOME: "/home/u" }, "/s/engine"],
    ["linux", { XDG_STATE_HOME: "relative", HOME: "/home/u" }, "/home/u/.local/state/engine"],
    ["linux", { HOME: "/home/u" }, "/home/u/.local/state/engine"],
    ["linux", {}, "/tmp/engine-1000/engine"],
    ["linux", { HOME: "relative", TMPDIR: "/t/" }, "/t/engine-1000/engine"],
    ["darwin", { HOME: "/Users/u" }, "/Users/u/.local/state/engine"],
    ["darwin", { TMPDIR: "/var/folders/x/T/" }, "/var/folders/x/T/engine-1000/engine"],
    [
      "windows",
      { LOCALAPPDATA: "C:\\Users\\u\\AppData\\Local", HOME: "/c/u" },
      "C:/Users/u/AppData/Local/engine",
    ],
    ["windows", { TEMP: "D:\\T" }, "D:/T/engine"],
    ["windows", {}, "C:/Windows/Temp/engine"],
  ] as [string, Record<string, string>, string][]
) {
  Deno.test(`on ${platform} with ${JSON.stringify(env)} keys lie in ${folder}`, () => {
    assert.equal(keyFolder({ platform, env: (name) => env[name], uid: 1000 }), folder);
  });
}
