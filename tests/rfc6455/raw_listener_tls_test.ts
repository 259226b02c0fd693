import { listenRawTls } from "../../engine/transport/raw_listener.ts";
import { Certificates, findOpenssl } from "../fakes/certificates.ts";
import { testConformance } from "./conformance.ts";

if (await findOpenssl("tests/rfc6455/raw_listener_tls_test.ts")) {
  await using made = await Certificates.make();
  const listen = listenRawTls({ cert: made.read("cert.pem"), key: made.read("key.pem") });
  testConformance("raw listener in TLS", { listen, ca: made.read("ca.pem") });
}
