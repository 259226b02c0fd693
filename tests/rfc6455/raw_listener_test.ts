import { listenRaw } from "../../engine/line/raw_listener.ts";
import { testConformance } from "./conformance.ts";

testConformance("raw listener", { listen: listenRaw });
