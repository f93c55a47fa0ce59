// `POST /agent-api/v1/release`: takes how an agent stands, and says which release it is to run.

import { parseJson } from "../../core/journal/json-text.ts";
import { readBody } from "../../base/http-listener.ts";
import { decodeReleaseTold, type ReleaseWanted } from "../../wire/rollout.ts";
import { describeErrors } from "../../wire/validate.ts";
import { agentAnswer, refusal, type AgentRoute } from "./answers.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

const bodyBytesMax = 65_536;
/** How soon agents say again how they stand: while a rollout that they are part of is under way, and otherwise. */
const askAgainMs = { underWay: 5_000, idle: 45_000 } as const;

export function createReleaseRoute(store: Pick<AgentStore, "tellRelease">): AgentRoute {
  return async ({ request, deploymentSiteId }) => {
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok) return refusal("too_large", `at most ${bodyBytesMax} bytes`);
    const decoded = decodeReleaseTold(parseJson(Buffer.from(read.body).toString("utf8")));
    if (!decoded.ok) return refusal("invalid", describeErrors(decoded.errors));
    const { order, isUnderWay } = await store.tellRelease(deploymentSiteId, decoded.value);
    const wanted: ReleaseWanted = {
      order: order ?? null,
      ask_again_ms: isUnderWay ? askAgainMs.underWay : askAgainMs.idle,
    };
    return agentAnswer(wanted);
  };
}
