/** How the agent reaches a relay at ws:// or http://. */
export default { ws: device.network.ws };
