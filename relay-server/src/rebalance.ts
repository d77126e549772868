/**
 * `rebalance`: a node asks a share of its links to move to other nodes. New nodes get no links by
 * themselves, because peers stay where they are connected. Meanwhile the node reports that it is
 * not ready, so that the peers land elsewhere.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Parts } from "./assemble.ts";
import type { OpenBus } from "./bus/open.ts";
import type { Rebalance } from "./ops/node-socket.ts";

/** Until the other nodes and a load balancer know that this one is not ready. */
const MIN_DELAY_S = 2;
const LOOK_MS = 1000;

export const rebalancer = (parts: Parts, { cluster }: OpenBus): Rebalance => {
  const { life, hub, log, config } = parts;
  const check = () => {
    if (life.draining) throw new Failure("refused", "this node is stopping: all its links move");
    if (cluster.hasReadyNode()) return;
    const fix = "start one and wait until its /health/ready is 200";
    throw new Failure("refused", `no other node of the cluster is ready: ${fix}`);
  };
  return async (percent, show) => {
    if (life.rebalancing) {
      throw new Failure("refused", "this node is rebalancing already: try again when that is over");
    }
    check();
    life.rebalancing = true;
    try {
      for (let s = 0; s < Math.max(MIN_DELAY_S, config.drainDelay); s++) {
        show({ asked: 0, moved: 0 });
        await sleep(1000);
      }
      // Another node may have stopped, or begun to rebalance, at the same time.
      check();
      const { links, asked } = hub.rebalance(percent);
      log.info({ links, asked }, "rebalancing");
      let moved = 0;
      for (let left = hub.yetToMove; left !== null; left = hub.yetToMove) {
        moved = asked - left;
        show({ asked, moved });
        await sleep(LOOK_MS);
      }
      log.info({ links, asked, moved }, "rebalanced");
      return { links, asked, moved };
    } finally {
      life.rebalancing = false;
    }
  };
};
