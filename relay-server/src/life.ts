/** What a node is about to do with its links. */
export interface Life {
  draining: boolean;
  rebalancing: boolean;
}

/**
 * Whether peers may come here: not while a node gets rid of some, unless no other one is ready. The
 * other nodes do not count on such a node: two of them would wait for each other.
 */
export const isOpen = ({ draining, rebalancing }: Life, hasReadyNode: () => boolean): boolean =>
  !draining && !(rebalancing && hasReadyNode());
