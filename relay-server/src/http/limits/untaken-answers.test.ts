/** Answers that are not taken are counted until they are, or their connection ends. */
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Untaken } from "./untaken-answers.ts";

const socketOf = () => Object.assign(new EventEmitter(), { destroyed: false }) as Socket;
const close = (socket: Socket): void => {
  Object.assign(socket, { destroyed: true }).emit("close");
};
const responseOf = () => new EventEmitter() as ServerResponse;

test("a holder is over its limit until enough is taken, and no other is", () => {
  const untaken = new Untaken(100);
  const socket = socketOf();
  const responses = [60, 41].map((bytes) => {
    const response = responseOf();
    untaken.add("user/ann", bytes, socket, response);
    return response;
  });
  expect([untaken.isOver("user/ann"), untaken.isOver("user/bob")]).toEqual([true, false]);
  responses[1]?.emit("finish");
  expect(untaken.isOver("user/ann")).toBe(false);
});

test("nothing is left once all are taken or cut, in whatever order", () => {
  const steps = fc.array(fc.tuple(fc.nat(4), fc.nat(9), fc.nat(2)), { maxLength: 40 });
  fc.assert(
    fc.property(steps, (drawn) => {
      const untaken = new Untaken(0);
      const sockets = Array.from({ length: 5 }, socketOf);
      const responses: ServerResponse[] = [];
      for (const [socket, response, does] of drawn) {
        if (does === 0) close(sockets[socket] as Socket);
        else if (does === 1) responses[response]?.emit("finish");
        else {
          responses.push(responseOf());
          untaken.add(
            `user/${response % 2}`,
            1,
            sockets[socket] as Socket,
            responses.at(-1) as ServerResponse,
          );
        }
      }
      for (const response of responses.slice(0, 3)) response.emit("finish");
      for (const socket of sockets) close(socket);
      for (const response of responses) response.emit("finish");
      expect(["user/0", "user/1"].filter((holder) => untaken.isOver(holder))).toEqual([]);
    }),
  );
});
