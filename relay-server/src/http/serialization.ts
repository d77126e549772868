/**
 * Answers written by the schemas that the contract publishes. There are hundreds, one for each
 * status of each route, and most are never sent: each is compiled when it is first needed, which
 * saves more than half of what it takes to build the server.
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
