import assert from "node:assert/strict";
import { bootScript, guestUser, programScript } from "./shell_text.ts";

const ODD = `it's "odd" $HOME \`id\` \\ ; | & * ~ \n\t ü -n #`;

async function shell(script: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", { args: ["-c", script] }).output();
  return new TextDecoder().decode(stdout);
}

Deno.test("programScript() is the program with its directory and nothing of the shell's", async () => {
  const directory = await Deno.makeTempDir({ prefix: "it's, a place " });
  const env = { ODD, "not.a-name": "x" };
  const command = ["/bin/sh", "-c", `pwd; printf '%s|' "$1" "$ODD" "$HOME"`, "sh", ODD];

  const script = programScript({ command, directory, env }, guestUser(0, 0));

  const own = script.replace("/busybox env", "/usr/bin/env");
  assert.equal(await shell(own), `${await Deno.realPath(directory)}\n${ODD}|${ODD}|/root|`);
  assert.ok(script.includes(" not.a-name=x "));
  await Deno.remove(directory);
});

Deno.test("programScript() gives a path and a home to who brings none", () => {
  const user = guestUser(1000, 1000);
  const script = (env: Record<string, string>) =>
    programScript({ command: ["x"], directory: "/", env }, user);

  assert.match(script({}), / PATH=\/usr\/local\/sbin:\S* HOME=\/home\/worker x/);
  assert.match(script({ HOME: "/w", PATH: "/p" }), /env -i PATH=\/p HOME=\/w x/);
});

Deno.test("bootScript() mounts a folder below another one after it", () => {
  const script = bootScript({
    etcTag: "etc",
    links: [{ name: "bin", target: "usr/bin" }],
    shares: [
      { tag: "s0", path: "/work/it's/cache", writable: true },
      { tag: "s1", path: "/usr", writable: false },
      { tag: "s2", path: "/work/it's", writable: false },
    ],
    user: guestUser(1000, 100),
  });

  assert.equal(
    script,
    `read_only etc /etc
link bin usr/bin
read_only s1 /usr
read_only s2 '/work/it'\\''s'
writable s0 '/work/it'\\''s/cache'
user 1000 100 worker
`,
  );
});

Deno.test("guestUser() is the engine's user, and root only if the engine is", () => {
  assert.deepEqual(guestUser(0, 5), { uid: 0, gid: 5, name: "root", home: "/root" });
  assert.deepEqual(guestUser(7, 5), { uid: 7, gid: 5, name: "worker", home: "/home/worker" });
});
