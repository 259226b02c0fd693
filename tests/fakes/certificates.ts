/**
 * Certificates for tests, made by the `openssl` command: a CA, and what it signed for this machine.
 *
 * @module
 */

/** Whether `openssl` is on the path; says that tests are left out if it is not. */
export async function findOpenssl(test: string): Promise<boolean> {
  const found = await new Deno.Command("openssl", { args: ["version"], stdout: "null" }).output()
    .then(({ success }) => success, () => false);
  if (!found) console.log(`left out: ${test} needs openssl on the path`);
  return found;
}

/** Files in a folder of their own. */
export class Certificates implements AsyncDisposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Makes `ca.pem`, and `cert.pem` with `key.pem` for localhost, 127.0.0.1 and ::1. */
  static async make(): Promise<Certificates> {
    const made = new Certificates(await Deno.makeTempDir({ prefix: "certificates-" }));
    const extensions = "basicConstraints=critical,CA:TRUE";
    await made.#newKey("ca-key.pem");
    await made.#openssl(
      ...["req", "-x509", "-key", "ca-key.pem", "-out", "ca.pem", "-days", "30"],
      ...["-subj", "/CN=CA of a test", "-addext", extensions],
    );
    await made.sign("cert.pem", "key.pem", "DNS:localhost,IP:127.0.0.1,IP:::1");
    return made;
  }

  /** Absolute path of a file. */
  path(name: string): string {
    return `${this.directory}/${name}`;
  }

  /** Text of a file. */
  read(name: string): string {
    return Deno.readTextFileSync(this.path(name));
  }

  /** Makes a key and a certificate for names; `days` below 0: it has expired. */
  async sign(cert: string, key: string, names: string, days = 30): Promise<void> {
    await this.#newKey(key);
    await Deno.writeTextFile(this.path("extensions"), `subjectAltName=${names}\n`);
    await this.#openssl("req", "-new", "-key", key, "-out", "request.pem", "-subj", "/CN=test");
    await this.#openssl(
      ...["x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca-key.pem"],
      ...["-CAcreateserial", "-days", String(days), "-extfile", "extensions", "-out", cert],
    );
  }

  /** Makes the environment in which Deno, Node and Python trust the CA. */
  trusting(): Record<string, string> {
    const ca = this.path("ca.pem");
    return { DENO_CERT: ca, NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.directory, { recursive: true });
  }

  async #newKey(name: string): Promise<void> {
    const curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"];
    await this.#openssl("genpkey", "-algorithm", "EC", ...curve, "-out", name);
  }

  async #openssl(...args: string[]): Promise<void> {
    const command = new Deno.Command("openssl", { args, cwd: this.directory, stdin: "null" });
    const { success, stderr } = await command.output();
    if (!success) throw new Error(`openssl ${args[0]}: ${new TextDecoder().decode(stderr)}`);
  }
}
