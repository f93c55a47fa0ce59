// Takes receipts and reports over plain requests, if a channel cannot be had.

import { parseJson } from "../../core/journal/json-text.ts";
import { readBody } from "../../base/http-listener.ts";
import { decodeReport } from "../../wire/channel.ts";
import { decodeReceiptBatch, type Receipt } from "../../wire/receipt.ts";
import { describeErrors } from "../../wire/validate.ts";
import { agentAnswer, refusal, type AgentRoute } from "./answers.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

const bodyBytesMax = 4 * 2 ** 20; // Room for 1,000 receipts of 4 KiB.

export function createReceiptsRoute(
  store: AgentStore,
  stored: (receipts: readonly Receipt[], deploymentSiteId: number) => void,
): AgentRoute {
  return async ({ request, deploymentSiteId }) => {
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok) return refusal("too_large", `at most ${bodyBytesMax} bytes of receipts at once`);
    const decoded = decodeReceiptBatch(parseJson(Buffer.from(read.body).toString("utf8")));
    if (!decoded.ok) return refusal("invalid", describeErrors(decoded.errors));
    const { instance_id: instanceId, receipts, position } = decoded.value;
    await store.saveReceipts(deploymentSiteId, instanceId, receipts, position);
    stored(receipts, deploymentSiteId);
    return agentAnswer({ acks: receipts.map(({ seq, phase }) => ({ seq, phase })) });
  };
}

export function createReportsRoute(store: AgentStore): AgentRoute {
  return async ({ request, deploymentSiteId }) => {
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok) return refusal("too_large", `a report has at most ${bodyBytesMax} bytes`);
    const decoded = decodeReport(parseJson(Buffer.from(read.body).toString("utf8")));
    if (!decoded.ok) return refusal("invalid", describeErrors(decoded.errors));
    await store.saveReport(deploymentSiteId, decoded.value);
    return { status: 204 };
  };
}
