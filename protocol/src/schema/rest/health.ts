/** `/health`, `/health/live`, `/health/ready`: for load balancers and supervisors. */
import { type Static, Type } from "typebox";

export const Health = Type.Object({ status: Type.Literal("ok") });
export type Health = Static<typeof Health>;
