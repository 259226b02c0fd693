import { testConnection } from "../../tests/connection_contract.ts";
import { SERVE_SKIPS } from "../../tests/serve_skips.ts";
import { listenServe } from "./serve_listener.ts";

testConnection("serve listener", { listen: listenServe }, { skips: SERVE_SKIPS });
