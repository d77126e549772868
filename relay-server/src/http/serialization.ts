/**
 * Serializes responses with the schemas of the contract. There are hundreds, one for each status of
 * each route, and most are never used, so each is compiled on first use. This saves more than half
 * of the time needed to build the server.
 */
import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";

const selectSerializer = SerializerSelector();

export const buildSerializer: typeof selectSerializer = (schemas, options) => {
  const compile = selectSerializer(schemas, options);
  return (route) => {
    let serialize: ReturnType<typeof compile> | undefined;
    return (answer) => {
      serialize ??= compile(route);
      return serialize(answer);
    };
  };
};
