/**
 * Forms from bytes: what browsers, curl and attackers send.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  baseName,
  FIELD_NAME_CHARS_MAX,
  FORM_FIELDS_MAX,
  FORM_FILES_MAX,
  PART_HEAD_BYTES_MAX,
  readMultipart,
  readUrlencoded,
} from "./form.ts";

const TYPE = "multipart/form-data; boundary=b";
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const base64 = (text: string): string => bytes(text).toBase64();

/** A form of parts, each a head and a content. */
function multipart(...parts: [head: string, content: string][]): string {
  const written = parts.map(([head, content]) => `--b\r\n${head}\r\n\r\n${content}\r\n`);
  return `${written.join("")}--b--\r\n`;
}

function disposition(rest: string): string {
  return `content-disposition: form-data; ${rest}`;
}

const read = (text: string, type = TYPE) => readMultipart(bytes(text), type);

Deno.test("readUrlencoded() decodes fields, and makes an array of one that repeats", () => {
  assert.deepEqual(readUrlencoded(bytes("a=1&b=x+y%21&a=2&c&a=3&=d&u=%C3%BC&?q=1")), {
    a: ["1", "2", "3"],
    b: "x y!",
    c: "",
    "": "d",
    u: "ü",
    "?q": "1",
  });
  assert.deepEqual(readUrlencoded(bytes("")), {});
  assert.deepEqual(readUrlencoded(bytes("?a=1")), { "?a": "1" });
});

Deno.test("a field named __proto__ is a field, and changes no prototype", () => {
  const urlencoded = readUrlencoded(bytes("__proto__=x&__proto__=y&constructor=z"));
  const file = disposition('name="__proto__"; filename="polluted"');
  const form = read(multipart([file, "1"], [disposition("name=toString"), "2"]));

  assert.deepEqual(Object.keys(urlencoded), ["__proto__", "constructor"]);
  assert.deepEqual(Object.keys(form), ["__proto__", "toString"]);
  for (const value of [urlencoded, form]) {
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  }
  assert.equal(({} as { filename?: string }).filename, undefined);
  assert.equal(JSON.stringify(urlencoded), '{"__proto__":["x","y"],"constructor":"z"}');
});

Deno.test("readUrlencoded() takes FORM_FIELDS_MAX fields and no more", () => {
  const fields = (count: number): Uint8Array => bytes(Array(count).fill("a=1").join("&"));

  assert.equal((readUrlencoded(fields(FORM_FIELDS_MAX)).a as string[]).length, FORM_FIELDS_MAX);
  for (const count of [FORM_FIELDS_MAX + 1, 10_000]) {
    assert.throws(() => readUrlencoded(fields(count)), {
      code: "invalid_body",
      message: /a form may have at most 1000 fields/,
    });
  }
});

Deno.test("readUrlencoded() refuses bytes that are not UTF-8, and names that are too long", () => {
  assert.throws(() => readUrlencoded(new Uint8Array([97, 61, 0xe4])), { code: "invalid_body" });
  assert.throws(() => readUrlencoded(bytes("n".repeat(FIELD_NAME_CHARS_MAX + 1))), {
    message: /name of a field/,
  });
});

Deno.test("readMultipart() reads the form of a browser", async () => {
  const form = new FormData();
  form.append("text", "grüße");
  form.append("tag", "a");
  form.append("tag", "b");
  form.append(
    "file",
    new File([new Uint8Array([0, 255, 13, 10, 45, 45])], 'ä "q".png', {
      type: "image/png",
    }),
  );
  form.append("none", new File([], ""));
  const request = new Request("http://a", { method: "POST", body: form });

  const body = new Uint8Array(await request.arrayBuffer());
  const value = readMultipart(body, request.headers.get("content-type")!);

  assert.deepEqual(value, {
    text: "grüße",
    tag: ["a", "b"],
    file: { filename: 'ä "q".png', content_type: "image/png", data_base64: "AP8NCi0t" },
    none: { filename: "", content_type: "application/octet-stream", data_base64: "" },
  });
});

Deno.test("readMultipart() reads what other clients send", () => {
  for (
    const [head, name, filename] of [
      [disposition("name=a"), "a", undefined],
      [`Content-Type: text/plain\r\nCONTENT-DISPOSITION: form-data;name="a"`, "a", undefined],
      [disposition('name="a\\"b"; filename="c\\\\d\\".txt"'), 'a"b', 'd".txt'],
      [disposition('name="a%22b%0D%0A"'), 'a"b\r\n', undefined],
      [disposition("name=a; filename*=UTF-8''%C3%A4.txt"), "a", "ä.txt"],
      [`${disposition('name="a"')}\r\ncontent-transfer-encoding: binary`, "a", undefined],
    ] as const
  ) {
    const content_type = "application/octet-stream";
    const value = filename === undefined
      ? "x"
      : { filename, content_type, data_base64: base64("x") };
    assert.deepEqual(read(multipart([head, "x"])), { [name]: value }, head);
  }
});

Deno.test("readMultipart() keeps contents that look like boundaries, and empty ones", () => {
  for (
    const content of ["", "\r\n", "x--b", "\r\n--", "\r\n-b--", "\r\r\n", "b--\r\n--a", "\r\n\r\n"]
  ) {
    const text = multipart([disposition("name=a"), content], [disposition("name=b"), "2"]);
    assert.deepEqual(read(text), { a: content, b: "2" }, JSON.stringify(content));
  }
  const head = disposition("name=a");
  assert.deepEqual(read(`\r\n--b \t\r\n${head}\r\n\r\n\r\n--b-- \r\n`), { a: "" });
  assert.deepEqual(read(`--b\r\n${head}\r\n\r\n--b--`), { a: "" });
  assert.deepEqual(read("--b--"), {});
  const quoted = `--x y:z\r\n${head}\r\n\r\n1\r\n--x y:z--`;
  assert.deepEqual(read(quoted, 'multipart/form-data; charset=utf-8; boundary="x y:z"'), {
    a: "1",
  });
});

for (
  const [what, text, message, type] of [
    [
      "another boundary",
      multipart([disposition("name=a"), "1"]),
      /begin with its boundary, --c/,
      "multipart/form-data; boundary=c",
    ],
    ["no boundary", "--b--", /no boundary/, "multipart/form-data"],
    ["an empty boundary", "----", /no boundary/, "multipart/form-data; boundary="],
    ["a long boundary", "", /no boundary/, `multipart/form-data; boundary=${"b".repeat(71)}`],
    ["a boundary with odd characters", "", /no boundary/, 'multipart/form-data; boundary="b\\"'],
    ["no body", "", /begin with its boundary/],
    ["text in front", `hello\r\n${multipart([disposition("name=a"), "1"])}`, /begin with/],
    ["text behind", `${multipart([disposition("name=a"), "1"])}more`, /follows its closing/],
    ["no end", `--b\r\n${disposition("name=a")}\r\n\r\n1`, /ends without its closing boundary/],
    ["no end of the last part", `--b\r\n${disposition("name=a")}\r\n\r\n1\r\n--b`, /line of a b/],
    ["a boundary that goes on", `--b\r\n${disposition("name=a")}\r\n\r\n1\r\n--bc\r\n`, /line of/],
    ["no head", "--b\r\n1\r\n--b--", /head of a part is incomplete/],
    ["no disposition", multipart(["content-type: text/plain", "1"]), /no content-disposition/],
    ["another disposition", multipart(["content-disposition: attachment; name=a", "1"]), /no cont/],
    ["no name", multipart([disposition("filename=a"), "1"]), /no name/],
    ["two names", multipart([disposition("name=a; name=b"), "1"]), /not well formed/],
    ["a broken name", multipart([disposition('name="a'), "1"]), /not well formed/],
    [
      "two dispositions",
      multipart([`${disposition("name=a")}\r\n${disposition("name=b")}`, "1"]),
      /is given twice/,
    ],
    ["a header without a name", multipart([`: x\r\n${disposition("name=a")}`, "1"]), /no name/],
    [
      "a coding",
      multipart([`${disposition("name=a")}\r\ncontent-transfer-encoding: base64`, "MQ=="]),
      /send it as it is/,
    ],
    [
      "a name that is not UTF-8",
      multipart([disposition("name=a; filename*=latin1''%e4"), ""]),
      /not UTF-8/,
    ],
    [
      "a long name",
      multipart([disposition(`name=${"n".repeat(FIELD_NAME_CHARS_MAX + 1)}`), ""]),
      /more than 1024 characters/,
    ],
    [
      "a long head",
      multipart([`${disposition("name=a")}\r\nx: ${"y".repeat(PART_HEAD_BYTES_MAX)}`, ""]),
      /more than 4096 bytes/,
    ],
    [
      "many headers",
      multipart([
        `${disposition("name=a")}${Array.from({ length: 16 }, (_, i) => `\r\nx${i}: 1`).join("")}`,
        "",
      ]),
      /may have at most 16 headers/,
    ],
  ] as [string, string, RegExp, string?][]
) {
  Deno.test(`readMultipart() refuses a form with ${what}`, () => {
    assert.throws(() => read(text, type), { code: "invalid_body", message });
  });
}

Deno.test("readMultipart() refuses a text that is not UTF-8, and takes it as a file", () => {
  const form = (head: string): Uint8Array => {
    const [before, after] = multipart([head, "\u0001"]).split("\u0001") as [string, string];
    return new Uint8Array([...bytes(before), 0xe4, ...bytes(after)]);
  };

  assert.throws(() => readMultipart(form(disposition("name=a")), TYPE), /field "a" is not UTF-8/);
  const { a } = readMultipart(form(disposition("name=a; filename=f")), TYPE);
  assert.equal((a as { data_base64: string }).data_base64, "5A==");
});

Deno.test("readMultipart() takes so many fields and files and no more", () => {
  const form = (count: number, rest: string) => {
    return multipart(...Array(count).fill([disposition(rest), ""]) as [string, string][]);
  };

  assert.equal((read(form(FORM_FIELDS_MAX, "name=a")).a as string[]).length, FORM_FIELDS_MAX);
  assert.throws(() => read(form(10_000, "name=a")), /a form may have at most 1000 fields/);
  const file = "name=a; filename=f";
  assert.equal((read(form(FORM_FILES_MAX, file)).a as string[]).length, FORM_FILES_MAX);
  assert.throws(() => read(form(FORM_FILES_MAX + 1, file)), /a form may have at most 100 files/);
});

for (
  const [path, name] of [
    ["../../etc/passwd", "passwd"],
    ["/etc/passwd", "passwd"],
    ["C:\\fakepath\\a.txt", "a.txt"],
    ["..\\..\\a", "a"],
    ["..", ""],
    ["a/..", ""],
    [".", ""],
    ["a/", ""],
    ["a\0b\r\n.txt", "ab.txt"],
    [".bashrc", ".bashrc"],
    ["ä b.txt", "ä b.txt"],
  ] as const
) {
  Deno.test(`the name of a file ${JSON.stringify(path)} is ${JSON.stringify(name)}`, () => {
    assert.equal(baseName(path), name);
    const escaped = path.replace(/\\/g, "\\\\").replace("\r\n", "%0D%0A");
    const form = read(multipart([disposition(`name=a; filename="${escaped}"`), ""]));
    assert.equal((form.a as { filename: string }).filename, name);
  });
}

Deno.test("readMultipart() reads each byte a bounded number of times", () => {
  const boundary = "a".repeat(70);
  const type = `multipart/form-data; boundary=${boundary}`;
  let compared = 0;
  const counting = (content: string): Uint8Array => {
    const text = `--${boundary}\r\n${disposition("name=x")}\r\n\r\n${content}\r\n--${boundary}--`;
    return new Proxy(bytes(text), {
      get(target, key) {
        if (typeof key === "string" && /^\d/.test(key)) compared++;
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };

  for (const content of ["a", `\r\n--${boundary.slice(1)}`, "\r", "\r\n--"]) {
    const body = counting(content.repeat(20_000 / content.length));
    compared = 0;
    readMultipart(body, type);
    assert.ok(compared < 5 * body.length, `${compared} reads of ${body.length} bytes`);
  }
});

Deno.test("readMultipart() ends with a form or `invalid_body`, whatever it reads", () => {
  const whole = multipart(
    [disposition('name="a"'), "1"],
    [`${disposition('name="f"; filename="x/y"')}\r\ncontent-type: text/plain`, "two\r\nlines"],
  );
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 5_000; round++) {
    const body = bytes(whole);
    for (let i = random(4); i >= 0; i--) body[random(body.length)] = random(256);
    try {
      readMultipart(body.subarray(0, body.length - random(2) * random(body.length)), TYPE);
    } catch (error) {
      assert.equal((error as { code?: string }).code, "invalid_body", String(error));
    }
  }
});
