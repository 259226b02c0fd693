import assert from "node:assert/strict";
import { addressProblem, kindOfAddress } from "./addresses.ts";

Deno.test("kindOfAddress() knows the public internet", () => {
  for (const text of ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"]) {
    assert.equal(kindOfAddress(text), "public", text);
  }
});

Deno.test("kindOfAddress() knows private networks and this machine", () => {
  const addresses = [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "127.0.0.1",
    "127.255.255.254",
    "100.64.0.1",
    "::1",
    "fc00::1",
    "fdff:ffff::1",
  ];
  for (const text of addresses) assert.equal(kindOfAddress(text), "private", text);
});

Deno.test("kindOfAddress() refuses what no request may ever go to", () => {
  const addresses = [
    "169.254.169.254",
    "169.254.0.1",
    "0.0.0.0",
    "0.1.2.3",
    "192.0.0.192",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "192.88.99.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "2002:7f00:1::",
    "2001:0:1::1",
    "::ffff:0:7f00:1",
    "::127.0.0.1",
    "::8.8.8.8",
    "64:ff9b:1::808:808",
    "4000::1",
  ];
  for (const text of addresses) assert.equal(kindOfAddress(text), "refused", text);
});

Deno.test("kindOfAddress() judges an address that stands for an IPv4 one by that", () => {
  const kinds = {
    "::ffff:127.0.0.1": "private",
    "::ffff:7f00:1": "private",
    "::ffff:169.254.169.254": "refused",
    "::ffff:8.8.8.8": "public",
    "0:0:0:0:0:ffff:0a00:0001": "private",
    "64:ff9b::7f00:1": "private",
    "64:ff9b::a9fe:a9fe": "refused",
    "64:ff9b::808:808": "public",
  };
  for (const [text, kind] of Object.entries(kinds)) assert.equal(kindOfAddress(text), kind, text);
});

Deno.test("kindOfAddress() refuses what is no plain address", () => {
  const texts = [
    "",
    "localhost",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.1",
    "2130706433",
    "1.2.3.4.5",
    "999.1.1.1",
    "fe80::1%eth0",
    "::1%lo",
    "::ffff:1.2.3",
    "1:2",
    " 8.8.8.8",
    "8.8.8.8\n",
  ];
  for (const text of texts) assert.equal(kindOfAddress(text), "refused", text);
});

Deno.test("addressProblem() allows private addresses only where they are allowed", () => {
  assert.equal(addressProblem("8.8.8.8", false), undefined);
  assert.equal(addressProblem("10.0.0.1", true), undefined);
  assert.match(addressProblem("10.0.0.1", false)!, /allow_private/);
  assert.match(addressProblem("::ffff:10.0.0.1", false)!, /allow_private/);
  for (const text of ["169.254.169.254", "0.0.0.0", "fd00:ec2::254"]) {
    assert.match(addressProblem(text, true)!, /never requested/, text);
  }
});
