/** A light sensor that fails after a minute, and now and then. */
let readings = 0;
export default (device) => ({
  analogRead: () => {
    readings += 1;
    if (device.now() > 60_000) throw new Error("no sensor");
    return device.random() < 0.5 ? Number.NaN : readings;
  },
});
