import assert from "node:assert/strict";
import {
  bootScript,
  GuestFiles,
  type GuestIdentity,
  guestUser,
  identityFiles,
  programScript,
  writeGuestEtc,
} from "./files.ts";

async function setup() {
  const root = await Deno.makeTempDir();
  const runDirectory = `${root}/a run`;
  const shares = [{ path: "/usr", writable: false }, { path: "/w", writable: true }];
  const files = new GuestFiles({ name: "math", network: "full", shares, runDirectory });
  await files.write();
  return {
    root,
    runDirectory,
    files,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("GuestFiles shares its two folders and the requested ones under distinct tags", async () => {
  await using at = await setup();

  assert.deepEqual(at.files.folders, [
    { tag: "host", path: `${at.runDirectory}/host`, writable: false },
    { tag: "etc", path: `${at.runDirectory}/etc`, writable: false },
    { tag: "s0", path: "/usr", writable: false },
    { tag: "s1", path: "/w", writable: true },
  ]);
  const boot = await Deno.readTextFile(`${at.runDirectory}/host/boot.sh`);
  assert.match(boot, /^read_only etc \/etc$/m);
  assert.match(boot, /^writable s1 \/w$/m);
  assert.equal(await Deno.readTextFile(`${at.runDirectory}/etc/hostname`), "math\n");
});

Deno.test("GuestFiles writes into a folder that only the engine's user may enter", async () => {
  await using at = await setup();

  assert.equal((await Deno.stat(at.runDirectory)).mode! & 0o777, 0o700);
});

Deno.test("GuestFiles numbers scripts and removes them", async () => {
  await using at = await setup();
  const script = { command: ["run"], directory: "/w", env: { TOKEN: "secret" } };

  const numbers = [await at.files.writeScript(script), await at.files.writeScript(script)];
  await at.files.removeScript(1);

  assert.deepEqual(numbers, [1, 2]);
  await assert.rejects(Deno.stat(`${at.runDirectory}/host/1.sh`));
  assert.match(await Deno.readTextFile(`${at.runDirectory}/host/2.sh`), / TOKEN=secret /);
});

Deno.test("GuestFiles.remove() leaves nothing and may be called twice", async () => {
  await using at = await setup();

  await at.files.remove();
  await at.files.remove();
  await at.files.removeScript(1);

  assert.deepEqual(await Array.fromAsync(Deno.readDir(at.root)), []);
});

const ODD = `it's "odd" $HOME \`id\` \\ ; | & * ~ \n\t ü -n #`;

async function shell(script: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", { args: ["-c", script] }).output();
  return new TextDecoder().decode(stdout);
}

Deno.test("programScript() runs the program in its directory, with every character quoted", async () => {
  const directory = await Deno.makeTempDir({ prefix: "it's, a place " });
  const env = { ODD, "not.a-name": "x" };
  const command = ["/bin/sh", "-c", `pwd; printf '%s|' "$1" "$ODD" "$HOME"`, "sh", ODD];

  const script = programScript({ command, directory, env }, guestUser(0, 0));

  const own = script.replace("/busybox env", "/usr/bin/env");
  assert.equal(await shell(own), `${await Deno.realPath(directory)}\n${ODD}|${ODD}|/root|`);
  assert.ok(script.includes(" not.a-name=x "));
  await Deno.remove(directory);
});

Deno.test("programScript() adds PATH and HOME if they are missing", () => {
  const user = guestUser(1000, 1000);
  const script = (env: Record<string, string>) =>
    programScript({ command: ["x"], directory: "/", env }, user);

  assert.match(script({}), / PATH=\/usr\/local\/sbin:\S* HOME=\/home\/worker x/);
  assert.match(script({ HOME: "/w", PATH: "/p" }), /env -i PATH=\/p HOME=\/w x/);
});

Deno.test("bootScript() mounts outer folders first", () => {
  const script = bootScript({
    etcTag: "etc",
    links: [{ name: "bin", target: "usr/bin" }],
    shares: [
      { tag: "s0", path: "/srv/it's/cache", writable: true },
      { tag: "s1", path: "/usr", writable: false },
      { tag: "s2", path: "/srv/it's", writable: false },
    ],
    user: guestUser(1000, 100),
  });

  assert.equal(
    script,
    `read_only etc /etc
link bin usr/bin
read_only s1 /usr
read_only s2 '/srv/it'\\''s'
writable s0 '/srv/it'\\''s/cache'
user 1000 100 worker
`,
  );
});

Deno.test("guestUser() has the ids of the engine's user, and is root only if the engine is", () => {
  assert.deepEqual(guestUser(0, 5), { uid: 0, gid: 5, name: "root", home: "/root" });
  assert.deepEqual(guestUser(7, 5), { uid: 7, gid: 5, name: "worker", home: "/home/worker" });
});

const IDENTITY: GuestIdentity = { name: "math", user: guestUser(1000, 100), network: "full" };

async function setupEtc() {
  const root = await Deno.makeTempDir();
  const host = `${root}/host`;
  const guest = `${root}/guest`;
  await Deno.mkdir(guest);
  const write = async (name: string, text: string, mode = 0o644): Promise<void> => {
    const path = `${host}/${name}`;
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, text);
    await Deno.chmod(path, mode);
  };
  await write("hostname", "the-host");
  const has = (name: string) => Deno.lstat(`${guest}/${name}`).then(() => true, () => false);
  const read = (name: string) => Deno.readTextFile(`${guest}/${name}`);
  return {
    host,
    guest,
    write,
    has,
    read,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("writeGuestEtc() copies the listed files and links", async () => {
  await using at = await setupEtc();
  await at.write("ld.so.cache", "libraries");
  await at.write("ssl/certs/one.pem", "certificate");
  await at.write("python3.11/site.py", "settings");
  await Deno.symlink("/usr/share/certificates/two.pem", `${at.host}/ssl/certs/two.pem`);
  await Deno.symlink("/usr/share/zoneinfo/Europe/Berlin", `${at.host}/localtime`);

  await writeGuestEtc(at.guest, IDENTITY, at.host);

  assert.equal(await at.read("ld.so.cache"), "libraries");
  assert.equal(await at.read("ssl/certs/one.pem"), "certificate");
  assert.equal(await at.read("python3.11/site.py"), "settings");
  assert.equal(await Deno.readLink(`${at.guest}/localtime`), "/usr/share/zoneinfo/Europe/Berlin");
  assert.equal(
    await Deno.readLink(`${at.guest}/ssl/certs/two.pem`),
    "/usr/share/certificates/two.pem",
  );
});

Deno.test("writeGuestEtc() copies neither unlisted files nor files that are not world-readable", async () => {
  await using at = await setupEtc();
  for (
    const name of ["shadow", "ssh/id", "ssl/private/key.pem", "machine-id", "pki/tls/private/key"]
  ) {
    await at.write(name, "secret");
  }
  await at.write("ssl/certs/secret.pem", "secret", 0o640);
  await at.write("pip.conf", "secret", 0o600);
  await at.write("passwd", "alice:x:1:1::/:/bin/sh\n");

  await writeGuestEtc(at.guest, IDENTITY, at.host);

  const names = ["shadow", "ssh", "ssl/private", "machine-id", "pki/tls/private", "pip.conf"];
  for (const name of [...names, "ssl/certs/secret.pem"]) assert.ok(!await at.has(name), name);
  assert.doesNotMatch(await at.read("passwd"), /alice/);
  assert.equal(await at.read("hostname"), "math\n");
});

Deno.test("writeGuestEtc() writes the generated files when the host has none of the listed ones", async () => {
  await using at = await setupEtc();

  await writeGuestEtc(at.guest, IDENTITY, at.host);

  assert.equal(await at.read("hosts"), "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 math\n");
});

Deno.test("identityFiles() lists the guest's user, and root once", () => {
  const worker = identityFiles(IDENTITY);
  assert.match(worker.passwd!, /^worker:x:1000:100::\/home\/worker:\/bin\/sh$/m);
  assert.match(worker.group!, /^worker:x:100:$/m);

  const root = identityFiles({ ...IDENTITY, user: guestUser(0, 0) });
  assert.equal(root.passwd!.match(/root/g)!.length, 3);
  assert.equal(root.group!.match(/^root:x:0:$/gm)!.length, 1);
});

Deno.test("identityFiles() lists a DNS server only if the network has one", () => {
  assert.equal(identityFiles(IDENTITY)["resolv.conf"], "nameserver 10.0.2.3\n");
  assert.equal(identityFiles({ ...IDENTITY, network: "engine" })["resolv.conf"], "");
});
