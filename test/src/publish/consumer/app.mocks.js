// The app with a relay of its own in the page: no server is asked for anything.
import { MemoryRelay, relayHandlers } from "@blindrelay/simulator/msw";
import { setupWorker } from "msw/browser";
import program from "./program.js";

const relay = new MemoryRelay();
const lamp = await relay.addDevice(program, { id: "lamp-1" });
await setupWorker(...relayHandlers(relay, { password: "open sesame" })).start({ quiet: true });
document.querySelector("[name=secret]").value = lamp.secret;
await import("./app.js");
document.querySelector("button").dataset.ready = "";
