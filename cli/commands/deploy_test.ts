import assert from "node:assert/strict";
import { parse } from "yaml";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

function setup(files: Readonly<Record<string, string>> = { "config.yaml": "" }): FakeTerminal {
  return new FakeTerminal({ files, directory: "/home/ann/My Shop!" });
}

Deno.test("deploy init --compose writes an image and a service that fit each other", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("deploy", "init", "--compose", "--directory", "/srv/shop"), 0);

  assert.deepEqual([...terminal.written.keys()], ["Dockerfile", ".dockerignore", "compose.yaml"]);
  const dockerfile = terminal.written.get("Dockerfile")!;
  assert.match(dockerfile, /^USER engine$/m);
  assert.match(dockerfile, /^HEALTHCHECK [^]*\/readyz/m);
  assert.match(dockerfile, new RegExp(`^FROM denoland/deno:debian-${Deno.version.deno}$`, "m"));
  assert.match(terminal.written.get(".dockerignore")!, /^\.env$/m);
  const { services, volumes } = parse(terminal.written.get("compose.yaml")!);
  assert.equal(services.engine.image, "my-shop");
  assert.deepEqual(services.engine.volumes, ["data:/project/.engine"]);
  assert.ok("data" in volumes);
  for (const text of terminal.written.values()) assert.doesNotMatch(text, /\{\{|undefined/);
});

Deno.test("deploy init --systemd writes a unit of the project's name", async () => {
  const terminal = setup();

  const code = await terminal.run("deploy", "init", "--systemd", "--directory", "/srv/shop");

  assert.equal(code, 0);
  const unit = terminal.written.get("my-shop.service")!;
  assert.match(unit, /^ExecStart=\/usr\/local\/bin\/engine --config \/srv\/shop\/config\.yaml$/m);
  assert.match(unit, /^WorkingDirectory=\/srv\/shop$/m);
});

Deno.test("deploy init overwrites with --force only", async () => {
  const files = { "config.yaml": "", "Dockerfile": "mine", ".env": "A=1" };
  const terminal = setup(files);

  assert.equal(await terminal.run("deploy", "init", "--docker"), 2); // The folder has a space.
  const placed = ["deploy", "init", "--docker", "--directory", "/srv/shop"];
  assert.equal(await terminal.run(...placed), 1);
  assert.match(
    terminal.errText,
    /Files that exist already: Dockerfile; overwrite them with --force/,
  );
  assert.equal(terminal.written.size, 0);

  assert.equal(await terminal.run(...placed, "--force"), 0);
  assert.ok(terminal.written.has("Dockerfile"));
  assert.match(terminal.errText, /The image leaves \.env out/);
});

for (
  const [args, code, message] of [
    [["--systemd", "--directory", "/srv/a b"], 2, /--directory: expected an absolute path/],
    [["--systemd", "--program", "engine"], 2, /--program: expected an absolute path/],
    [[], 2, /Which files\? Add --docker, --compose or --systemd/],
  ] as const
) {
  Deno.test(`deploy init ${args.join(" ")} is not understood`, async () => {
    const terminal = new FakeTerminal({ files: { "config.yaml": "" }, directory: "/srv/shop" });

    assert.equal(await terminal.run("deploy", "init", ...args), code);
    assert.match(terminal.errText, message);
  });
}

Deno.test("deploy init outside of a project says where to run it", async () => {
  const terminal = new FakeTerminal({ directory: "/srv/shop" });

  assert.equal(await terminal.run("deploy", "init", "--docker"), 1);
  assert.match(terminal.errText, /\/srv\/shop has no config\.yaml/);
});
