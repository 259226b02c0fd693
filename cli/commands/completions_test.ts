import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { completionScript, LIVE, type Live, type Place, SHELLS } from "./completions.ts";

for (const shell of ["bash", "zsh", "fish"]) {
  Deno.test(`the ${shell} script knows every command`, async () => {
    const terminal = new FakeTerminal();

    assert.equal(await terminal.run("completions", shell), 0);

    for (
      const word of [
        "trigger",
        "create",
        "completions",
        "restart",
        "exec",
        "isolation",
        "accel",
        "timeout-ms",
      ]
    ) {
      assert.ok(terminal.outText.includes(word), word);
    }
    assert.match(terminal.outText, /\/worker\/add/);
  });
}

for (
  const [option, values] of [
    ["/create --template", "quickstart"],
    ["/project/init --template", "bare"],
    ["/worker/add --isolation", "microvm process"],
    ["/worker/add --accel", "auto kvm tcg"],
    ["/worker/add", "--isolation --accel --replicas --force --timeout"],
    ["/worker/exec", "--replica --url --token"],
    ["/worker/start", "--timeout"],
    ["/worker", "restart logs exec"],
    [" --log-level", "debug info warn error"],
    ["/completions", "bash zsh fish"],
  ] as const
) {
  Deno.test(`the bash script offers ${values} behind engine${option}`, async () => {
    const terminal = new FakeTerminal();

    await terminal.run("completions", "bash");

    const line = terminal.outText.split("\n").find((line) => line.includes(`    '${option}')`));
    assert.ok(line?.includes(values), line);
  });
}

Deno.test("an unknown shell is not understood", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("completions", "cmd"), 2);
  assert.match(terminal.errText, /completions for bash, zsh, fish; not for cmd/);
});

const places: Place[] = [
  {
    path: [],
    candidates: [
      { word: "worker", summary: "Workers" },
      { word: "trigger", summary: "Call" },
      { word: "--config", summary: "It's it" },
    ],
  },
  {
    path: ["worker"],
    candidates: [{ word: "add", summary: "Add" }, { word: "list", summary: "" }],
  },
  { path: ["worker", "status"], candidates: [] },
  { path: ["trigger"], candidates: [{ word: "--json", summary: "Compact" }] },
  {
    path: ["worker", "add"],
    candidates: [
      { word: "--force", summary: "Anew" },
      { word: "--isolation", summary: "How", values: ["microvm", "process"] },
    ],
  },
];

/** What bash offers at the end of a line, if the engine has these functions and workers. */
async function bashOffers(line: string, live: Partial<Record<Live, string>> = {}) {
  const script = `${completionScript("bash", places)}
engine() {
  case "$*" in
    "completions --complete functions") printf '%s' ${shellQuoted(live.functions ?? "")} ;;
    "completions --complete workers") printf '%s' ${shellQuoted(live.workers ?? "")} ;;
    *) echo "unexpected: $*" >&2 ;;
  esac
}
COMP_LINE=${shellQuoted(line)}
COMP_POINT=${line.length}
_engine
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, success } = await new Deno.Command("bash", {
    args: ["--norc", "-c", script],
    stderr: "inherit",
  }).output();
  assert.ok(success);
  return new TextDecoder().decode(stdout).trim().split("\n").filter(Boolean);
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

Deno.test("the bash script offers words that fit the place and the typed letters", async () => {
  assert.deepEqual(await bashOffers("engine "), ["worker", "trigger", "--config"]);
  assert.deepEqual(await bashOffers("engine wo"), ["worker"]);
  assert.deepEqual(await bashOffers("engine worker "), ["add", "list"]);
  assert.deepEqual(await bashOffers("engine worker add --"), ["--force", "--isolation"]);
});

Deno.test("the bash script offers the values of an option behind it, and only there", async () => {
  const add = "engine worker add";

  assert.deepEqual(await bashOffers(`${add} --isolation `), ["microvm", "process"]);
  assert.deepEqual(await bashOffers(`${add} --isolation pr`), ["process"]);
  assert.deepEqual(await bashOffers(`${add} --isolation=`), ["microvm", "process"]);
  assert.deepEqual(await bashOffers(`${add} --isolation=mi`), ["microvm"]);
  assert.deepEqual(await bashOffers(`${add} --force pr`), []);
  assert.deepEqual(await bashOffers("engine --isolation pr"), []);
});

Deno.test("the bash script offers ids of the engine, after what bash takes for a word", async () => {
  const live = { functions: "math::add\nmath::sub\nmail::send\n", workers: "shop\nmail\n" };

  assert.deepEqual(await bashOffers("engine trigger ma", live), [
    "math::add",
    "math::sub",
    "mail::send",
  ]);
  assert.deepEqual(await bashOffers("engine trigger math:", live), [":add", ":sub"]);
  assert.deepEqual(await bashOffers("engine trigger math::s", live), ["sub"]);
  assert.deepEqual(await bashOffers("engine trigger --function-id=mail::", live), ["send"]);
  assert.deepEqual(await bashOffers("engine trigger --function-id mai", live), ["mail::send"]);
  assert.deepEqual(await bashOffers("engine trigger math::add m", live), []);
  assert.deepEqual(await bashOffers("engine trigger --", live), ["--json"]);
  assert.deepEqual(await bashOffers("engine worker status ", live), ["shop", "mail"]);
  assert.deepEqual(await bashOffers("engine worker add ", live), ["--force", "--isolation"]);
  assert.deepEqual(await bashOffers("engine trigger ma"), []);
});

for (const kind of LIVE) {
  Deno.test(`engine completions --complete ${kind} prints what there is, one a line`, async () => {
    const evil = ["$(touch x)", "a b", "`id`", "x".repeat(300)];
    const names = ["shop::buy", "mail", ...evil];
    const terminal = new FakeTerminal({
      functions: {
        "engine::functions::list": () => ({
          functions: names.map((function_id) => ({ function_id })),
        }),
        "engine::supervisor::list": () => ({ workers: names.map((name) => ({ name })) }),
      },
    });

    assert.equal(await terminal.run("completions", "--complete", kind), 0);

    assert.deepEqual(terminal.outLines, ["shop::buy", "mail"]);
    assert.equal(terminal.errText, "");
    assert.equal(terminal.addresses[0]?.isShort, true);
  });
}

Deno.test("the zsh and fish scripts name the values of an option", () => {
  assert.ok(
    completionScript("zsh", places).includes(
      "'/worker/add --isolation') candidates=('microvm' 'process') live=\"\" ;;",
    ),
  );
  assert.ok(
    completionScript("fish", places).includes(
      "complete -c engine -n '__engine_at /worker/add' -l isolation -x -a 'microvm process' ",
    ),
  );
});

Deno.test("the bash script offers nothing for a path, so that bash offers files", async () => {
  assert.deepEqual(await bashOffers("engine worker add ./wor"), []);
});

for (const shell of SHELLS) {
  Deno.test(`the ${shell} script names every command and closes its quotes`, () => {
    const script = completionScript(shell, places);

    for (const word of ["worker", "config", "add", "list", "force"]) {
      assert.ok(script.includes(word), word);
    }
    assert.ok(!script.includes("It's"));
    assert.equal(script.split("'").length % 2, 1);
  });
}
