/**
 * Espruino's module `Wifi`, according to its reference and ESP32's source: a failed attempt emits
 * `disconnected` and then calls back with ESP-IDF's reason, a lost network emits `disconnected`.
 * Its only access point is the global `air`, an AccessPoint, or null while it is off.
 */
export interface AccessPoint {
  /** A byte string. */
  readonly ssid: string;
  /** "" for an open network. */
  readonly password: string;
}

export const WIFI_MODULE = `
var joined = false, told = [];
if (!exports.emit) {
  exports.on = function (event, fn) { told.push([event, fn]); };
  exports.emit = function (event, details) {
    told.forEach(function (one) { if (one[0] === event) one[1](details); });
  };
}
exports.tries = 0;
exports.connect = function (ssid, options, done) {
  exports.tries++;
  setTimeout(function () {
    var problem = !global.air || E.toUint8Array(global.air.ssid).join() !== E.toUint8Array(ssid).join() ? "NO_AP_FOUND"
      : (options.password || "") !== global.air.password ? "4WAY_HANDSHAKE_TIMEOUT" : null;
    joined = problem === null;
    if (!joined) exports.emit("disconnected", { ssid: ssid, reason: "201", msg: problem });
    done(problem);
    if (joined) exports.emit("connected", { ip: "192.168.1.23" });
  }, 50);
};
exports.off = function () {
  global.air = null;
  if (joined) exports.emit("disconnected", { reason: "200", msg: "BEACON_TIMEOUT" });
  joined = false;
};
`;
