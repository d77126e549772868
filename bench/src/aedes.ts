/** An aedes broker on a free port; its argument is the module's path. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { pathToFileURL } from "node:url";

const loaded = await import(pathToFileURL(process.argv[2] as string).href);
// A function up to version 0.51, later a class with an asynchronous factory.
const Broker = loaded.Aedes ?? loaded.default?.Aedes;
const broker = Broker?.createBroker ? await Broker.createBroker() : loaded.default();
const server = createServer((socket: Socket) => {
  socket.setNoDelay(true);
  broker.handle(socket);
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
