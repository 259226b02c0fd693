import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { testConformance } from "./conformance.ts";

testConformance("raw listener", { listen: listenRaw });
