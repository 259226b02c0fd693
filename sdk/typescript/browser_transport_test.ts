import { testTransport } from "../../tests/contracts/transport_contract.ts";
import { browserDial } from "./browser_transport.ts";

testTransport("browserDial", browserDial, { tokenInQuery: true, silentRefusals: true });
