import assert from "node:assert/strict";
import { type GuestIdentity, identityFiles, writeGuestEtc } from "./guest_etc.ts";
import { guestUser } from "./shell_text.ts";

const IDENTITY: GuestIdentity = { name: "math", user: guestUser(1000, 100), network: "full" };

async function setup() {
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

Deno.test("writeGuestEtc() copies what programs need", async () => {
  await using at = await setup();
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

Deno.test("writeGuestEtc() copies nothing that is not named, nor what not everybody may read", async () => {
  await using at = await setup();
  for (
    const name of ["shadow", "ssh/id", "ssl/private/key.pem", "machine-id", "pki/tls/private/key"]
  ) {
    await at.write(name, "secret");
  }
  await at.write("ssl/certs/secret.pem", "secret", 0o640);
  await at.write("pip.conf", "secret", 0o600);
  await at.write("passwd", "somebody:x:1:1::/:/bin/sh\n");

  await writeGuestEtc(at.guest, IDENTITY, at.host);

  const names = ["shadow", "ssh", "ssl/private", "machine-id", "pki/tls/private", "pip.conf"];
  for (const name of [...names, "ssl/certs/secret.pem"]) assert.ok(!await at.has(name), name);
  assert.doesNotMatch(await at.read("passwd"), /somebody/);
  assert.equal(await at.read("hostname"), "math\n");
});

Deno.test("writeGuestEtc() makes do with a host that has nothing", async () => {
  await using at = await setup();

  await writeGuestEtc(at.guest, IDENTITY, at.host);

  assert.equal(await at.read("hosts"), "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 math\n");
});

Deno.test("identityFiles() names the guest's user, and root once", () => {
  const worker = identityFiles(IDENTITY);
  assert.match(worker.passwd!, /^worker:x:1000:100::\/home\/worker:\/bin\/sh$/m);
  assert.match(worker.group!, /^worker:x:100:$/m);

  const root = identityFiles({ ...IDENTITY, user: guestUser(0, 0) });
  assert.equal(root.passwd!.match(/root/g)!.length, 3);
  assert.equal(root.group!.match(/^root:x:0:$/gm)!.length, 1);
});

Deno.test("identityFiles() looks names up only where there is somebody to ask", () => {
  assert.equal(identityFiles(IDENTITY)["resolv.conf"], "nameserver 10.0.2.3\n");
  assert.equal(identityFiles({ ...IDENTITY, network: "engine" })["resolv.conf"], "");
});
