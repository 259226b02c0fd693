import assert from "node:assert/strict";
import { cpioArchive } from "./cpio.ts";

/** Reads an archive as the kernel does. */
function read(archive: Uint8Array) {
  const text = (from: number, to: number) =>
    new TextDecoder("latin1").decode(archive.subarray(from, to));
  const found: { path: string; mode: string; bytes: string; owner: number; device: string }[] = [];
  for (let at = 0; at < archive.length;) {
    assert.equal(text(at, at + 6), "070701");
    const field = (i: number) => parseInt(text(at + 6 + i * 8, at + 14 + i * 8), 16);
    const name = text(at + 110, at + 110 + field(11) - 1);
    const start = Math.ceil((at + 110 + field(11)) / 4) * 4;
    const bytes = text(start, start + field(6));
    const device = `${field(9)}:${field(10)}`;
    found.push({ path: name, mode: field(1).toString(8), bytes, owner: field(2), device });
    at = Math.ceil((start + field(6)) / 4) * 4;
  }
  return found;
}

Deno.test("an archive has folders, files, programs and devices, and ends with its trailer", () => {
  const bytes = new TextEncoder().encode("hello");

  const archive = cpioArchive([
    { path: "bin" },
    { path: "bin/sh", bytes, executable: true },
    { path: "note", bytes: new Uint8Array() },
    { path: "console", device: [5, 1] },
  ]);

  assert.deepEqual(read(archive), [
    { path: "bin", mode: "40755", bytes: "", owner: 0, device: "0:0" },
    { path: "bin/sh", mode: "100755", bytes: "hello", owner: 0, device: "0:0" },
    { path: "note", mode: "100644", bytes: "", owner: 0, device: "0:0" },
    { path: "console", mode: "20600", bytes: "", owner: 0, device: "5:1" },
    { path: "TRAILER!!!", mode: "0", bytes: "", owner: 0, device: "0:0" },
  ]);
});

Deno.test("names and contents of any length keep what follows on a multiple of four", () => {
  for (let length = 0; length < 9; length++) {
    const entries = [
      { path: "x".repeat(length + 1), bytes: new Uint8Array(length).fill(65) },
      { path: "next", bytes: new Uint8Array(1) },
    ];

    const found = read(cpioArchive(entries));

    assert.deepEqual(found.map(({ path }) => path), [entries[0]!.path, "next", "TRAILER!!!"]);
    assert.equal(found[0]!.bytes, "A".repeat(length));
  }
});

Deno.test("equal entries give equal bytes", () => {
  const entries = [{ path: "a", bytes: new Uint8Array([1, 2, 3]) }, { path: "b" }];

  assert.deepEqual(cpioArchive(entries), cpioArchive(structuredClone(entries)));
});
