/**
 * What a microVM keeps apart, proved from inside: programs in real guests try to get out.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Containment, TerminalShape } from "../../engine/ports/launcher.ts";
import { vmHere, VmProject } from "../fakes/vm_project.ts";
import { until } from "../fakes/until.ts";

const isRoot = Deno.uid() === 0;

function vmTest(name: string, run: () => Promise<void>): void {
  Deno.test({ name, ignore: typeof vmHere === "string", fn: run });
}

/** A text that no guest may read. */
const SECRET = `SECRET-${crypto.randomUUID()}`;

/** A project with secrets all around a worker. */
async function withSecrets() {
  const project = await VmProject.create();
  const { root, dataDirectory } = project;
  const worker = await project.addWorker("w", { "own.txt": "mine" });
  const other = await project.addWorker("other", { "code.py": SECRET });
  const secrets = [
    `${root}/home/.ssh/id_ed25519`,
    `${root}/project/config.yaml`,
    `${dataDirectory}/state.sqlite`,
    `${dataDirectory}/logs/w.log`,
    `${dataDirectory}/deps/other/package.py`,
  ];
  for (const path of secrets) {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, SECRET);
  }
  secrets.push(`${other}/code.py`);
  const deps = `${dataDirectory}/deps/w`;
  await Deno.mkdir(deps);
  const containment = { reads: [`${dataDirectory}/sdk`], writes: [deps] };
  return { project, worker, deps, secrets, containment };
}

vmTest("a guest cannot read what is not its own, whatever way it takes", async () => {
  const { project, worker, secrets, containment } = await withSecrets();
  await using _ = project;
  const home = Deno.env.get("HOME") ?? "/root";
  for (const [i, path] of secrets.entries()) await Deno.symlink(path, `${worker}/link${i}`);
  await Deno.symlink("/", `${worker}/root`);
  const upwards = "../../".repeat(worker.split("/").length);
  const attempts = secrets.flatMap((path, i) => [
    path,
    `link${i}`,
    `root${path}`,
    `${upwards}${path.slice(1)}`,
    `/proc/1/root${path}`,
    `/proc/self/cwd/${upwards}${path.slice(1)}`,
    `/usr/../${path}`,
  ]);
  const script = [
    ...attempts.map((path) => `cat '${path}'`),
    "cat /etc/shadow /etc/gshadow /proc/1/root/etc/shadow",
    // Everything there is, but for the system's own programs.
    `grep -rsl '${
      SECRET.replace("-", "'-'")
    }' / --exclude-dir=usr --exclude-dir=proc --exclude-dir=sys`,
    `echo "--- project"; ls -A ${project.root}/project ${project.root} ${project.dataDirectory}`,
    `echo "--- home"; ls -A '${home}' /home/* /root`,
    'echo "--- own"; cat own.txt',
  ].join("\n");

  const { lines, ended } = await project.run("w", `${script} 2>/dev/null`, containment);

  assert.equal(ended.code, 0);
  const text = lines.join("\n");
  assert.equal(text.includes(SECRET), false, text);
  const [nothing, shown, own] = text.split(/--- project|--- home/);
  assert.equal(nothing!.split("\n").filter((line) => !line.includes("No such file")).join(""), "");
  const names = new Set(shown!.split(/\s+/).filter((name) => !/^$|:$/.test(name)));
  assert.deepEqual([...names].sort(), [".engine", "deps", "project", "sdk", "workers"]);
  assert.ok(own!.includes("--- own\nmine"));
  const hostHome = [...Deno.readDirSync(home)].map(({ name }) => name);
  for (const name of hostHome) assert.equal(own!.split("\n").includes(name), false, name);
});

vmTest("a guest cannot write what it may only read, not even as root", async () => {
  const { project, worker, deps, containment } = await withSecrets();
  await using _ = project;
  const runtime = `${project.root}/runtime`;
  await Deno.mkdir(`${runtime}/bin`, { recursive: true });
  await Deno.writeTextFile(`${runtime}/bin/tool`, "#!/bin/sh\necho tool\n", { mode: 0o755 });
  const sdk = `${project.dataDirectory}/sdk`;
  const target = `/usr/share/engine-test-${crypto.randomUUID()}`;
  const tries = (folder: string): string => `
    touch '${folder}/new'; mkdir '${folder}/dir'; ln -s x '${folder}/link'; mkfifo '${folder}/pipe'
    for file in '${folder}'/*/*; do
      echo bad >>"$file"; chmod 777 "$file"; mv "$file" "$file.moved"; rm -f "$file"
    done`;
  const script = `
    ${runtime}/bin/tool
    attempt() { ${tries(runtime)}
      ${tries(sdk)}
      touch ${target}; rm -f /usr/bin/env; }
    attempt
    for place in ${runtime} ${sdk} /usr; do
      mount -o remount,rw "$place"; mount -o remount,rw,access=any "$place"
    done
    attempt
    umount ${runtime}; umount ${sdk}
    for tag in host etc s0 s1 s2 s3 s4 s5; do
      mkdir -p /mnt/$tag; mount -t 9p -o trans=virtio,version=9p2000.L,rw $tag /mnt/$tag
      touch /mnt/$tag/engine-escape; mkdir /mnt/$tag/engine-escape-dir
    done
    echo written >own.txt; echo written >'${deps}/file'; rm -f engine-escape ${deps}/engine-escape
    echo finished`;
  const before = await snapshot([runtime, sdk]);

  const reads = [...containment.reads, runtime];
  const { lines } = await project.run("w", `{ ${script}\n} 2>/dev/null`, { ...containment, reads });

  assert.deepEqual([lines[0], lines.at(-1)], ["tool", "finished"]);
  assert.deepEqual(await snapshot([runtime, sdk]), before);
  for (const path of [target, "/usr/engine-escape", `${runtime}/engine-escape`]) {
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound, path);
  }
  assert.equal((await Deno.stat("/usr/bin/env")).isFile, true);
  assert.equal(await Deno.readTextFile(`${worker}/own.txt`), "written\n");
  assert.equal(await Deno.readTextFile(`${deps}/file`), "written\n");
});

/** Names, modes and contents of all that is in some folders. */
async function snapshot(folders: readonly string[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const folder of folders) {
    for await (const { name, isFile, isDirectory } of Deno.readDir(folder)) {
      const path = `${folder}/${name}`;
      const { mode } = await Deno.lstat(path);
      found[path] = `${mode} ${isFile ? await Deno.readTextFile(path) : ""}`;
      if (isDirectory) Object.assign(found, await snapshot([path]));
    }
  }
  return found;
}

/** A server that answers the first bytes with a word, and counts its connections. */
function serve(word: string, hostname = "127.0.0.1") {
  const listener = Deno.listen({ hostname, port: 0 });
  let connections = 0;
  const answer = async (connection: Deno.Conn): Promise<void> => {
    using _ = connection;
    const buffer = new Uint8Array(100);
    await connection.read(buffer);
    await connection.write(new TextEncoder().encode(`${word}\n`));
    while (await connection.read(buffer) !== null); // Until the other side has had it all.
  };
  const serving = (async () => {
    const answers: Promise<void>[] = [];
    for await (const connection of listener) {
      connections++;
      answers.push(answer(connection).catch(() => {}));
    }
    await Promise.all(answers);
  })();
  const close = async (): Promise<void> => {
    listener.close();
    await serving;
  };
  const { port } = listener.addr as Deno.NetAddr;
  return { port, count: () => connections, [Symbol.asyncDispose]: close };
}

/** Asks a server for its word, from a guest; empty after a few seconds. */
const ASK = `ask() {
    echo "$1 $2: $(echo hello | /busybox timeout 8 /busybox nc "$1" "$2")"
  }
  engine=\${ENGINE_URL#*//}; engine=\${engine%%/*}
`;

vmTest("a guest whose network is the engine reaches nothing else", async () => {
  await using engine = serve("engine");
  await using neighbour = serve("neighbour");
  await using everywhere = serve("everywhere", "0.0.0.0");
  await using project = await VmProject.create(engine.port);
  await project.addWorker("w");
  const outer = Deno.networkInterfaces()
    .find(({ family, address }) => family === "IPv4" && !address.startsWith("127."))?.address;
  const hosts = ["10.0.2.2", "10.0.2.4", "10.0.2.3", "127.0.0.1", ...outer ? [outer] : []];
  const asked = hosts.flatMap((host) =>
    [neighbour.port, everywhere.port].map((port) => `ask ${host} ${port} &`)
  );
  const script = `${ASK} ask \${engine%:*} \${engine#*:}
    ${asked.join("\n")}
    ask 10.0.2.3 53 & ask 1.1.1.1 443 &
    wait
    ip route replace default via 10.0.2.2; ip addr add 10.0.2.77/24 dev eth0
    ask 10.0.2.2 ${neighbour.port}
    ask \${engine%:*} \${engine#*:}`;

  const env = { ENGINE_URL: `ws://127.0.0.1:${engine.port}/` };
  const { lines } = await project.run("w", `{ ${script}\n} 2>/dev/null`, {}, { env });

  const answers = lines.map((line) => line.split(": ")[1] ?? "");
  assert.deepEqual([answers[0], answers.at(-1)], ["engine", "engine"]);
  assert.deepEqual(new Set(answers.slice(1, -1)), new Set([""]), lines.join("\n"));
  assert.deepEqual([neighbour.count(), everywhere.count(), engine.count()], [0, 0, 2]);
});

vmTest("a guest has the processors, the memory and the network that it was given", async () => {
  await using engine = serve("engine");
  await using project = await VmProject.create(engine.port);
  await project.addWorker("w");
  const containment: Partial<Containment> = {
    network: "full",
    resources: { cpus: 2, memory_mb: 320 },
  };
  const script = `${ASK} ask \${engine%:*} \${engine#*:}; nproc
    while read -r name value _; do [ "$name" = MemTotal: ] && echo $value; done </proc/meminfo`;

  const env = { ENGINE_URL: `ws://127.0.0.1:${engine.port}/` };
  const { lines } = await project.run("w", script, containment, { env });

  assert.equal(lines[0]!.split(": ")[1], "engine");
  assert.equal(lines[1], "2");
  const memory = Number(lines[2]) / 1024;
  assert.ok(memory > 200 && memory < 320, `${memory} MiB`);
});

vmTest("running out of memory ends that worker alone, with the reason", async () => {
  await using project = await VmProject.create();
  for (const name of ["greedy", "modest"]) await project.addWorker(name);
  const resources = { cpus: 1, memory_mb: 160 };

  const [modest, greedy] = await Promise.all([
    project.start("modest", "echo up; exec sleep 1000", { resources }),
    project.start("greedy", "echo up; exec tail /dev/zero", { resources }),
  ]);

  const { code, reason } = await greedy.running.ended;
  assert.notEqual(code, 0);
  assert.equal(reason, "out of memory (160 MiB)");
  await until(() => modest.lines.includes("up"));
  const { signal } = new AbortController();
  const beside = await modest.running.exec(["true"], () => {}, signal);
  assert.deepEqual(beside, { code: 0, signal: null });
  await modest.running.stop(5_000);
});

vmTest("an exit, a signal, a panic and a killed machine are distinguished", async () => {
  await using project = await VmProject.create();
  await project.addWorker("w");
  const run = async (command: string) =>
    (await project.run("w", command, {}, { keep: true })).ended;

  assert.deepEqual(await run("exit 7"), { code: 7, signal: null });
  assert.deepEqual(await run("kill -SEGV $$"), { code: null, signal: "SIGSEGV" });

  const { running } = await project.start("w", "sleep 1000");
  Deno.kill(running.pid, "SIGKILL");
  const killed = await running.ended;
  assert.deepEqual([killed.code, killed.signal], [null, "SIGKILL"]);
  assert.notEqual(killed.reason, undefined);

  if (!isRoot) return; // Only root in the guest can make its kernel panic.
  const panic = await run("echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 60");
  assert.match(panic.reason ?? "", /^kernel panic: /);
});

vmTest("a restart needs no boot, and the program before it has left nothing", async () => {
  await using project = await VmProject.create();
  await project.addWorker("w");
  const { running, lines } = await project.start("w", "touch here; sleep 1000 & echo $!; wait");
  await until(() => lines.length > 0);

  await running.stop(5_000, { keep: true });
  const again = await project.run("w", `ls here; ls -d /proc/${lines[0]} 2>/dev/null; echo end`);

  assert.deepEqual(again.lines, ["here", "end"]);
  assert.equal(project.phases.length, 1);
});

vmTest("a command beside a guest's program reads input and has a terminal", async () => {
  await using project = await VmProject.create();
  await project.addWorker("w");
  const { running } = await project.start("w", "echo up; exec sleep 1000");
  const stopping = new AbortController();
  const exec = (command: string[], typed: string[], tty?: TerminalShape) => {
    let text = "";
    let next = 0;
    const decoder = new TextDecoder();
    // The next line is typed when the answer to the one before was printed.
    const prompts = Array.from({ length: typed.length + 1 }, () => Promise.withResolvers<void>());
    if (!tty) prompts.forEach(({ resolve }) => resolve());
    const input = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        await prompts[next]!.promise;
        const line = typed[next++];
        if (line === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(line));
      },
    }, { highWaterMark: 0 });
    const ended = running.exec(
      command,
      ({ bytes }) => {
        text += decoder.decode(bytes, { stream: true });
        const answers = text.split(/[$#] $|[$#] (?=[^\n]*\n)/).length - 1;
        for (let i = 0; i < answers; i++) prompts[i]?.resolve();
      },
      stopping.signal,
      { input, ...tty && { tty } },
    );
    return ended.then((how) => ({ ...how, text }));
  };

  const plain = await exec(["sh", "-c", "wc -c; exit 3"], ["x".repeat(100_000)]);
  assert.deepEqual([plain.code, plain.text.trim()], [3, "100000"]);
  const shape = { columns: 91, rows: 17, term: "xterm" };
  const shell = await exec(["sh"], ["stty size\n", "test -t 0 && exit 6\n"], shape);
  assert.match(shell.text, /17 91\r\n/);
  assert.equal(shell.code, 6, shell.text);
  const waiting = exec(["sleep", "1000"], [], shape);
  stopping.abort();
  assert.deepEqual((await waiting).signal, "SIGTERM");
  await running.stop(1_000);
});
