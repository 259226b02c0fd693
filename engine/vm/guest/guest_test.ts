import assert from "node:assert/strict";
import { vmHere } from "../../../tests/fakes/vm_project.ts";
import type { Ended, OutputLine } from "../../ports/launcher.ts";
import { Guest, type GuestOptions, GuestPorts, type GuestProgram } from "./guest.ts";

// A boot takes seconds in software emulation, so the steps of a test share one guest.

/** The guest's own netcat, independent of the host's `/usr`. */
const NC = "/busybox nc";

/** A folder, and options of a guest that sees a worker directory in it. */
async function setup(more: Partial<GuestOptions> = {}) {
  assert.ok(typeof vmHere !== "string");
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "guest test, " }));
  const directory = `${root}/it's a "worker", with $HOME`;
  for (const path of [directory, `${root}/cache`, `${root}/other`]) await Deno.mkdir(path);
  const options: GuestOptions = {
    ...vmHere,
    name: "test",
    accelerator: "tcg",
    resources: { cpus: 1, memory_mb: 256 },
    network: "full",
    engine: { hostname: "127.0.0.1", port: 49134 },
    shares: [
      { path: "/usr", writable: false },
      { path: directory, writable: true },
      { path: `${root}/cache`, writable: false },
    ],
    runDirectory: `${root}/run`,
    ...more,
  };
  return {
    root,
    directory,
    options,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

/** A guest, with short functions for what tests do with it. */
async function boot(options: GuestOptions, directory: string) {
  const guest = await Guest.boot(options);
  const start = async (
    command: string,
    output: (line: OutputLine) => void = () => {},
    env: Record<string, string> = {},
  ): Promise<GuestProgram> => await guest.run({ command, directory, env }, output);
  /** Runs a command; returns its output and how it ended. */
  const run = async (command: string, env: Record<string, string> = {}) => {
    const lines: OutputLine[] = [];
    const program = await start(command, (line) => void lines.push(line), env);
    const ended = await program.ended;
    const text = (stream: string) =>
      lines.filter((line) => line.stream === stream).map((line) => line.text).join("\n");
    return { ended, stdout: text("stdout"), stderr: text("stderr") };
  };
  const exec = async (command: string[], signal = new AbortController().signal) => {
    const decoder = new TextDecoder();
    let text = "";
    const ended = await guest.exec({ command, directory, env: {} }, ({ bytes }) => {
      text += decoder.decode(bytes, { stream: true });
    }, signal);
    return { ended, text };
  };
  return { guest, start, run, exec, [Symbol.asyncDispose]: () => end(guest) };
}

async function end(guest: Guest): Promise<void> {
  await guest.powerOff(0);
}

/** Resolves when a program prints a line with this text. */
function waiter() {
  const { promise, resolve } = Promise.withResolvers<OutputLine>();
  return {
    came: promise,
    on: (text: string) => (line: OutputLine) => void (line.text === text && resolve(line)),
  };
}

async function isGone(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => false, () => true);
}

const CLEAN: Ended = { code: 0, signal: null };
const ignore = typeof vmHere === "string";

Deno.test({
  name: "a guest runs programs as the host would, with the host's folders at the same paths",
  ignore,
  async fn(t) {
    await using at = await setup();
    await using booted = await boot(at.options, at.directory);
    const { exec, guest, run, start } = booted;

    await t.step("a program has its directory and environment, and nothing else", async () => {
      const odd = `a 'quoted' "text" $HOME \`id\` \\ ü\n\tnext, line`;
      const { ended, stdout, stderr } = await run(
        `pwd; printf '%s|' "$ODD"; env | sed 's/=.*//' | sort | tr '\n' ' '; echo to stderr >&2`,
        { ODD: odd },
      );

      assert.deepEqual(ended, CLEAN);
      const names = stdout.slice(stdout.lastIndexOf("|") + 1).trim().split(" ");
      // The second line of ODD looks like a variable; some shells add two variables.
      const ours = names.filter((name) => !["SHLVL", "_", "next,", "line"].includes(name.trim()));
      assert.deepEqual(ours, ["HOME", "ODD", "PATH", "PWD"]);
      assert.ok(stdout.startsWith(`${at.directory}\n${odd}|`), stdout);
      assert.equal(stderr, "to stderr");
    });

    await t.step("exit codes and signals are distinguished, also for code 137", async () => {
      assert.deepEqual((await run("exit 7")).ended, { code: 7, signal: null });
      assert.deepEqual((await run("exit 137")).ended, { code: 137, signal: null });
      assert.deepEqual((await run("kill -SEGV $$")).ended, { code: null, signal: "SIGSEGV" });
      assert.deepEqual((await run("no-such-program")).ended, { code: 127, signal: null });
      assert.deepEqual((await run(`cd "${at.root}/other"`)).ended, { code: 2, signal: null });
    });

    await t.step("all output has arrived when the program has ended", async () => {
      const counts = { stdout: 0, stderr: 0 };
      const sums = { stdout: 0, stderr: 0 };
      const program = await start(
        "seq 1 200000 & seq 1 100000 >&2; wait; printf end; printf end >&2",
        ({ stream, text }) => {
          counts[stream]++;
          if (text !== "end") sums[stream] += Number(text);
        },
      );

      assert.deepEqual(await program.ended, CLEAN);
      assert.deepEqual(counts, { stdout: 200_001, stderr: 100_001 });
      assert.deepEqual(sums, { stdout: 20_000_100_000, stderr: 5_000_050_000 });
    });

    await t.step("a program can open /dev/stdout and /dev/stderr", async () => {
      const { stdout, stderr } = await run("echo a >/dev/stdout; echo b >/dev/stderr");

      assert.deepEqual([stdout, stderr], ["a", "b"]);
    });

    await t.step("child processes end with their program", async () => {
      const { stdout } = await run(
        "setsid sleep 1000 >/dev/null 2>&1 & (sleep 1000 &) ; echo left",
      );
      assert.equal(stdout, "left");

      const after = await run("grep -l sleep /proc/[0-9]*/comm 2>/dev/null; echo looked");

      assert.equal(after.stdout, "looked");
    });

    await t.step("TERM lets a program clean up; KILL ends it and its children", async () => {
      const started = waiter();
      const polite = await start(
        "trap 'echo bye; exit 3' TERM; echo up; sleep 1000 & wait",
        started.on("up"),
      );
      await started.came;
      polite.signal("TERM");
      assert.deepEqual(await polite.ended, { code: 3, signal: null });

      const deafStarted = waiter();
      const deaf = await start(
        "trap '' TERM; echo up; sleep 1000; sleep 1000",
        deafStarted.on("up"),
      );
      await deafStarted.came;
      deaf.signal("TERM");
      deaf.signal("KILL");
      assert.deepEqual(await deaf.ended, { code: null, signal: "SIGKILL" });
    });

    await t.step("host and guest see the same files, links and changes", async () => {
      await Deno.writeTextFile(`${at.root}/cache/data`, "from the cache");
      await Deno.symlink("../cache/data", `${at.directory}/out of it`);
      await Deno.symlink("own", `${at.directory}/inside`);
      await Deno.writeTextFile(`${at.directory}/own`, "own");

      const { stdout } = await run(
        `cat inside; echo; cat "out of it"; echo; echo new >made; ln -s made linked; readlink inside`,
      );

      assert.equal(stdout, "own\nfrom the cache\nown");
      assert.equal(await Deno.readTextFile(`${at.directory}/linked`), "new\n");
      assert.equal((await Deno.stat(`${at.directory}/made`)).uid, Deno.uid());
    });

    await t.step(
      "read-only folders cannot be written, and the guest sees no other folders",
      async () => {
        await Deno.writeTextFile(`${at.root}/other/secret`, "secret");
        await Deno.symlink(`${at.root}/other`, `${at.directory}/way out`);
        await Deno.symlink("/etc/hostname", `${at.directory}/name`);
        const { stdout } = await run(`
        # Root in the guest can remount, but the host still refuses writes.
        for folder in /usr /etc "${at.root}/cache"; do mount -o remount,rw "$folder"; done 2>/dev/null
        for target in /usr/written "${at.root}/cache/data" "${at.root}/cache/new" /etc/written; do
          (echo x >"$target") 2>/dev/null && echo "wrote $target"
        done
        rm -f "${at.root}/cache/data" 2>/dev/null && echo removed
        cat "${at.root}/other/secret" "way out/secret" 2>/dev/null && echo read
        cat /etc/shadow /root/.profile "${at.options.runDirectory}/host/boot.sh" 2>/dev/null
        cat name
        ls -A "${at.root}"; ls -A /home | wc -l; ls -d /etc/ssl/private 2>/dev/null
        mount | grep -c 'type 9p'`);

        // 9p mounts: the worker directory, the cache, the scripts, /etc and /usr.
        assert.equal(
          stdout,
          `test\ncache\nit's a "worker", with $HOME\n${Deno.uid() === 0 ? 0 : 1}\n5`,
        );
        assert.equal(await Deno.readTextFile(`${at.root}/cache/data`), "from the cache");
      },
    );

    await t.step(
      "programs of the host find the devices, users and folders that they need",
      async () => {
        const { stdout } = await run(`id -un; getent hosts localhost | wc -l; date +%s; hostname
        test -c /dev/null && test -d /dev/shm && test -w /tmp && test -w "$HOME" && echo complete`);

        const [user, hosts, seconds, ...rest] = stdout.split("\n");
        assert.equal(user, Deno.uid() === 0 ? "root" : "worker");
        assert.deepEqual([hosts, ...rest], ["1", "test", "complete"]);
        const offMs = Math.abs(Number(seconds) * 1_000 - Date.now());
        assert.ok(offMs < 5_000, `the guest's clock is off by ${offMs} ms`);
      },
    );

    await t.step(
      "exec() runs programs in addition to the main one and queues those without a channel",
      async () => {
        const up = waiter();
        const main = await start("echo up; sleep 1000", up.on("up"));
        await up.came;

        const all = await Promise.all(
          Array.from(
            { length: 6 },
            (_, i) => exec(["sh", "-c", `echo "$1"; exit ${i}`, "sh", `${i} '`]),
          ),
        );

        assert.deepEqual(
          all.map(({ text }) => text),
          ["0 '\n", "1 '\n", "2 '\n", "3 '\n", "4 '\n", "5 '\n"],
        );
        assert.deepEqual(
          all.map(({ ended }) => ended.code),
          [0, 1, 2, 3, 4, 5],
        );
        main.signal("KILL");
        await main.ended;
      },
    );

    await t.step(
      "exec() passes on input to its end, byte for byte, also after a deaf program",
      async () => {
        const up = waiter();
        const main = await start("echo up; sleep 1000", up.on("up"));
        await up.came;
        const { signal } = new AbortController();
        const decoder = new TextDecoder();
        const feed = async (command: string, bytes: Uint8Array<ArrayBuffer>) => {
          let text = "";
          const program = { command: ["sh", "-c", command], directory: "/", env: {} };
          const ended = await guest.exec(
            program,
            (chunk) => void (text += decoder.decode(chunk.bytes)),
            signal,
            ReadableStream.from([bytes.slice(0, 10), bytes.slice(10)]),
          );
          return [ended.code, text.trim()];
        };
        const bytes = new Uint8Array(300_000).map((_, i) => i * 7);

        for (let round = 0; round < 5; round++) { // One more than there are channels.
          assert.deepEqual(await feed("head -c 5 >/dev/null; exit 3", bytes), [3, ""]);
        }
        assert.deepEqual(await feed("wc -c", bytes), [0, "300000"]);
        const sum = [...bytes].reduce((all, byte) => all + byte, 0);
        const add = "od -An -v -tu1 | awk '{ for (i = 1; i <= NF; i++) s += $i } END { print s }'";
        assert.deepEqual(await feed(add, bytes), [0, `${sum}`]);
        assert.deepEqual(await feed("cat", new TextEncoder().encode("end\ndata 3\n")), [
          0,
          "end\ndata 3",
        ]);
        assert.deepEqual((await exec(["cat"])).text, "");
        main.signal("KILL");
        await main.ended;
      },
    );

    await t.step("a program of exec() ends by its signal, and with the main program", async () => {
      const up = waiter();
      const main = await start("echo up; sleep 1000", up.on("up"));
      await up.came;
      const aborted = new AbortController();
      const command = ["sh", "-c", "trap '' TERM; echo up; sleep 1000; sleep 1000"];

      // The program has set its trap when it prints.
      const abort = () => aborted.abort();
      const ended = guest.exec({ command, directory: "/", env: {} }, abort, aborted.signal);
      assert.deepEqual(await ended, { code: null, signal: "SIGKILL" });
      assert.equal((await exec(["true"], aborted.signal)).ended.signal, "SIGTERM");
      const left = exec(["sleep", "1000"]);
      main.signal("KILL");
      await main.ended;

      assert.equal((await left).ended.signal, "SIGKILL");
    });

    await t.step(
      "a program that uses too much memory is killed with its children, and nothing else is",
      async () => {
        // The kernel cannot reclaim the memory of a shell variable.
        const { ended, stdout } = await run(
          `sleep 1000 & x=x; (while :; do x="$x$x"; done); echo survived`,
        );

        assert.equal(ended.reason, "out of memory (256 MiB)");
        assert.equal(ended.signal, "SIGKILL");
        assert.equal(stdout, "");
        assert.equal((await run("echo well")).stdout, "well");
      },
    );

    await t.step("powerOff() ends the guest and removes its files", async () => {
      assert.deepEqual(await guest.powerOff(30_000), CLEAN);
      assert.ok(await isGone(at.options.runDirectory));
      await assert.rejects(run("true"), { code: "launch_failed" });
      await assert.rejects(exec(["true"]), { code: "launch_failed" });
    });
  },
});

/** A server on loopback that answers each line with its length and closes on `bye`. */
function lineServer() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let connections = 0;
  const answer = async (connection: Deno.TcpConn): Promise<void> => {
    using open = connection;
    const buffer = new Uint8Array(65_536);
    const decoder = new TextDecoder();
    const write = async (text: string): Promise<void> => {
      for (let rest = new TextEncoder().encode(text); rest.length > 0;) {
        rest = rest.subarray(await open.write(rest));
      }
    };
    for (let text = "";;) {
      const count = await open.read(buffer);
      if (count === null) return;
      text += decoder.decode(buffer.subarray(0, count));
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        if (line === "bye") return;
        const size = line.startsWith("send ") ? Number(line.slice(5)) : undefined;
        await write(`${size === undefined ? line.length : "x".repeat(size)}\n`);
      }
    }
  };
  const serving = (async () => {
    for await (const connection of listener) {
      connections++;
      void answer(connection).catch(() => {}); // Clients may disconnect.
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      listener.close();
      await serving;
    },
  };
}

Deno.test({
  name: "a guest with network engine reaches the engine and nothing else",
  ignore,
  async fn(t) {
    await using engine = lineServer();
    await using other = lineServer();
    await using at = await setup({
      network: "engine",
      engine: { hostname: "127.0.0.1", port: engine.port },
    });
    await using booted = await boot(at.options, at.directory);
    const { guest, run } = booted;
    const [address] = guest.engineUrlHost.split(":");
    const dial = `${NC} ${address} ${engine.port}`;

    await t.step("many connections, concurrent and in sequence", async () => {
      const { stdout } = await run(`
        for n in 1 2 3 4 5 6 7 8; do (printf 'hello\\nbye\\n' | ${dial}) & done; wait
        for n in 1 2 3; do printf 'hello\\nbye\\n' | ${dial}; done`);

      assert.equal(stdout.replaceAll("\n", ""), "5".repeat(11));
      assert.equal(engine.connections(), 11);
    });

    await t.step("large messages in both directions", async () => {
      const { stdout } = await run(`
        (head -c 4000000 /dev/zero | tr '\\0' y; echo; echo bye) | ${dial}
        (echo 'send 4000000'; echo bye) | ${dial} | wc -c`);

      assert.equal(stdout, "4000000\n4000001");
    });

    await t.step("no other port of the host, no internet and no DNS", async () => {
      const { stdout } = await run(`
        for host in 10.0.2.2 10.0.2.4 127.0.0.1 ${address}; do
          echo hello | ${NC} -w 2 $host ${other.port} 2>/dev/null && echo "reached $host"
        done
        echo hello | ${NC} -w 2 10.0.2.2 ${engine.port} 2>/dev/null && echo reached 10.0.2.2
        ${NC} -w 2 1.1.1.1 53 </dev/null 2>/dev/null && echo reached the world
        timeout 5 getent hosts example.com && echo a name
        echo tried`);

      assert.equal(stdout, "tried");
      assert.equal(other.connections(), 0);
    });
  },
});

Deno.test({
  name: "a guest with network full reaches an engine that listens on all addresses",
  ignore,
  async fn() {
    await using engine = lineServer();
    await using at = await setup({ engine: { hostname: "0.0.0.0", port: engine.port } });
    await using booted = await boot(at.options, at.directory);

    const [host, port] = booted.guest.engineUrlHost.split(":");
    const { stdout } = await booted.run(`printf 'hello\\nbye\\n' | ${NC} ${host} ${port}`);

    assert.equal(stdout, "5");
  },
});

const folderOf = (ports: GuestPorts): string =>
  ports.ports[0]!.socket.slice(0, ports.ports[0]!.socket.lastIndexOf("/"));

Deno.test("GuestPorts has a connection for each name, in whatever order clients connect", async () => {
  await using ports = await GuestPorts.open(["out0", "err0", "control"]);
  const accepting = ports.accept();
  const clients = await Promise.all(
    ports.ports.toReversed().map(async ({ name, socket: path }) => {
      const client = await Deno.connect({ transport: "unix", path });
      await client.write(new TextEncoder().encode(name));
      return client;
    }),
  );

  const connections = await accepting;

  assert.deepEqual([...connections.keys()].toSorted(), ["control", "err0", "out0"]);
  for (const [name, connection] of connections) {
    const buffer = new Uint8Array(16);
    const count = await connection.read(buffer);
    assert.equal(new TextDecoder().decode(buffer.subarray(0, count!)), name);
  }
  for (const end of [...clients, ...connections.values()]) end.close();
});

Deno.test("GuestPorts creates sockets with short paths in a folder that only this user may enter", async () => {
  await using ports = await GuestPorts.open(["control"]);

  assert.ok(ports.ports[0]!.socket.length < 60, ports.ports[0]!.socket);
  assert.equal((await Deno.stat(folderOf(ports))).mode! & 0o777, 0o700);
});

Deno.test("GuestPorts stops waiting when disposed and leaves nothing", async () => {
  const ports = await GuestPorts.open(["one", "two"]);
  const accepting = assert.rejects(ports.accept());
  using _client = await Deno.connect({ transport: "unix", path: ports.ports[0]!.socket });

  await ports[Symbol.asyncDispose]();

  await accepting;
  await assert.rejects(Deno.stat(folderOf(ports)));
});
