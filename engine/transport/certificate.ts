/**
 * The certificate of the worker port and its key: read from PEM files and checked before the port
 * opens. Whether clients trust the certificate is not checked here.
 *
 * @module
 */
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";

/** Both in PEM; the certificate first in `cert`, its chain behind it. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Paths of the two files. */
export interface CertificateFiles {
  /** Absolute path of the PEM file with the certificate and its chain up to the CA. */
  readonly cert: string;
  /** Absolute path of the PEM file with its private key. */
  readonly key: string;
}

/** A problem with one of the files. */
export interface CertificateProblem {
  readonly file: keyof CertificateFiles;
  /** Such as `a private key in PEM`. */
  readonly expected: string;
  /** What the file has instead. */
  readonly found: string;
}

const CERT = "a certificate in PEM (-----BEGIN CERTIFICATE-----)";
const KEY = "a private key in PEM without a password (-----BEGIN PRIVATE KEY-----)";

/** Reads both files; if they cannot be used, returns every problem. */
export function readCertificate(
  files: CertificateFiles,
): Certificate | readonly CertificateProblem[] {
  const problems: CertificateProblem[] = [];
  const cert = readFile(files, "cert", CERT, problems);
  const key = readFile(files, "key", KEY, problems);
  const publicCert = cert !== undefined &&
    tried(() => new X509Certificate(cert).publicKey);
  const publicKey = key !== undefined &&
    tried(() => createPublicKey(createPrivateKey(key)));
  if (cert !== undefined && !publicCert) problems.push(notPem(files, "cert", CERT, cert));
  if (key !== undefined && !publicKey) problems.push(notPem(files, "key", KEY, key));
  if (publicCert && publicKey && !sameBytes(spkiOf(publicCert), spkiOf(publicKey))) {
    const expected = `the key of the certificate in ${files.cert}`;
    problems.push({ file: "key", expected, found: `another key in ${files.key}` });
  }
  return problems.length > 0 ? problems : { cert: cert!, key: key! };
}

/** Validity of a certificate, in milliseconds since 1970. */
export function validityOf({ cert }: Certificate): { readonly from: number; readonly to: number } {
  const { validFrom, validTo } = new X509Certificate(cert);
  return { from: Date.parse(validFrom), to: Date.parse(validTo) };
}

function readFile(
  files: CertificateFiles,
  file: keyof CertificateFiles,
  expected: string,
  problems: CertificateProblem[],
): string | undefined {
  try {
    return Deno.readTextFileSync(files[file]);
  } catch (thrown) {
    const reason = thrown instanceof Deno.errors.NotFound
      ? "which does not exist"
      : `which cannot be read (${thrown instanceof Error ? thrown.message : String(thrown)})`;
    problems.push({ file, expected, found: `${files[file]}, ${reason}` });
    return undefined;
  }
}

function notPem(
  files: CertificateFiles,
  file: keyof CertificateFiles,
  expected: string,
  text: string,
): CertificateProblem {
  const [, label] = /-----BEGIN ([A-Z0-9 ]{1,40})-----/.exec(text) ?? [];
  const what = label === undefined ? "no PEM" : `an unusable ${label}`;
  return { file, expected, found: `${what} in ${files[file]}` };
}

type PublicKey = ReturnType<typeof createPublicKey>;

function spkiOf(key: PublicKey): Uint8Array {
  return key.export({ type: "spki", format: "der" });
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

/**
 * The result of a function; `undefined` when it throws, because the file is not what it has to be.
 */
function tried<Value>(make: () => Value): Value | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
