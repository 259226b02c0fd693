import assert from "node:assert/strict";
import { Certificates, findOpenssl } from "../../tests/fakes/certificates.ts";
import { readCertificate, validityOf } from "./certificate.ts";

const ignore = !await findOpenssl("engine/transport/certificate_test.ts");
const CERT = "a certificate in PEM (-----BEGIN CERTIFICATE-----)";
const KEY = "a private key in PEM without a password (-----BEGIN PRIVATE KEY-----)";

Deno.test({ ignore, name: "readCertificate() returns both texts when they fit" }, async () => {
  await using made = await Certificates.make();

  const read = readCertificate({ cert: made.path("cert.pem"), key: made.path("key.pem") });

  assert.deepEqual(read, { cert: made.read("cert.pem"), key: made.read("key.pem") });
});

Deno.test(
  { ignore, name: "readCertificate() names a file that is missing, or a folder" },
  async () => {
    await using made = await Certificates.make();
    const gone = made.path("gone.pem");

    const read = readCertificate({ cert: gone, key: made.directory });

    assert.ok(Array.isArray(read));
    assert.deepEqual(read[0], {
      file: "cert",
      expected: CERT,
      found: `${gone}, which does not exist`,
    });
    assert.equal(read[1].file, "key");
    assert.match(read[1].found, /, which cannot be read \(.*\)$/);
  },
);

Deno.test({ ignore, name: "readCertificate() says what is in a file instead" }, async () => {
  await using made = await Certificates.make();
  const [cert, key] = [made.path("cert.pem"), made.path("key.pem")];
  await Deno.writeTextFile(made.path("empty.pem"), "");
  await Deno.writeTextFile(
    made.path("cut.pem"),
    made.read("cert.pem").slice(0, 100),
  );

  assert.deepEqual(readCertificate({ cert: key, key: cert }), [
    { file: "cert", expected: CERT, found: `an unusable PRIVATE KEY in ${key}` },
    { file: "key", expected: KEY, found: `an unusable CERTIFICATE in ${cert}` },
  ]);
  assert.deepEqual(readCertificate({ cert: made.path("cut.pem"), key: made.path("empty.pem") }), [
    { file: "cert", expected: CERT, found: `an unusable CERTIFICATE in ${made.path("cut.pem")}` },
    { file: "key", expected: KEY, found: `no PEM in ${made.path("empty.pem")}` },
  ]);
});

Deno.test(
  { ignore, name: "readCertificate() refuses the key of another certificate" },
  async () => {
    await using made = await Certificates.make();
    const [cert, key] = [made.path("cert.pem"), made.path("ca-key.pem")];

    assert.deepEqual(readCertificate({ cert, key }), [{
      file: "key",
      expected: `the key of the certificate in ${cert}`,
      found: `another key in ${key}`,
    }]);
  },
);

Deno.test(
  { ignore, name: "validityOf() says from when until when a certificate holds" },
  async () => {
    await using made = await Certificates.make();
    const read = { cert: made.read("cert.pem"), key: "" };

    const { from, to } = validityOf(read);

    assert.equal(Math.round((to - from) / 86_400_000), 30);
    assert.ok(Math.abs(from - Date.now()) < 3_600_000);
  },
);
