import { testConnection } from "../../tests/connection_contract.ts";
import { listenRaw } from "./raw_listener.ts";

testConnection("raw listener", listenRaw, { skips: {} });
