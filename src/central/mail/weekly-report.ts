// The weekly report: what visitors requested of each domain, what the cache answered, what was blocked, and
// how the deployments are.

import type { ReportedDeployment, ReportedTraffic } from "../../core/report-facts.ts";
import type { Block, MailDocument } from "./document.ts";
import { bytesText, changeText, countText, numberText, shareText, timeText } from "./words.ts";

export type WeeklyFacts = {
  readonly customer: string;
  readonly from: string;
  readonly until: string;
  readonly traffic: readonly ReportedTraffic[];
  readonly before: readonly ReportedTraffic[];
  readonly clears: number;
  /** The requests of unreviewed bots. */
  readonly botRequests: number;
  readonly deployments: readonly ReportedDeployment[];
};

const domainsListedMax = 25;
const deploymentsListedMax = 25;

export function weeklyReport(facts: WeeklyFacts): Omit<MailDocument, "unsubscribeUrl" | "footer"> {
  const { customer, from, until, traffic } = facts;
  const sum = (rows: readonly ReportedTraffic[], of: (row: ReportedTraffic) => number): number =>
    rows.reduce((total, row) => total + of(row), 0);
  const requests = sum(traffic, (row) => row.requests);
  const change = changeText(
    requests,
    sum(facts.before, (row) => row.requests),
  );
  const hits = sum(traffic, (row) => row.hits);
  const errors = sum(traffic, (row) => row.originErrors);
  return {
    subject: `Weekly report of ${customer}: ${countText(requests, "request")}`,
    preview: `${from} to ${until}: ${shareText(hits, requests)} from the cache.`,
    title: `Weekly report of ${customer}`,
    blocks: [
      { kind: "text", text: `From ${from} to ${until}, whole days in UTC.` },
      {
        kind: "figures",
        figures: [
          {
            label: "Requests",
            value: numberText(requests),
            ...(change !== undefined && { note: change }),
          },
          { label: "From the cache", value: shareText(hits, requests) },
          { label: "Sent", value: bytesText(sum(traffic, (row) => row.bytes)) },
        ],
      },
      {
        kind: "figures",
        figures: [
          { label: "Blocked", value: numberText(sum(traffic, (row) => row.blocked)) },
          {
            label: "Backend errors",
            value: numberText(errors),
            note: `of ${countText(
              sum(traffic, (row) => row.originRequests),
              "request",
            )} to backends`,
          },
          { label: "Cache clears", value: numberText(facts.clears) },
        ],
      },
      ...domainBlocks(traffic),
      ...botBlocks(facts.botRequests),
      ...deploymentBlocks(facts.deployments),
    ],
  };
}

function domainBlocks(traffic: readonly ReportedTraffic[]): readonly Block[] {
  if (traffic.length === 0)
    return [{ kind: "text", text: "There are no domains yet: add one with POST /domain/." }];
  const rest = traffic.length - domainsListedMax;
  return [
    { kind: "heading", text: "Domains" },
    {
      kind: "table",
      columns: [
        { label: "Domain" },
        { label: "Requests", isNumber: true },
        { label: "From cache", isNumber: true },
        { label: "Blocked", isNumber: true, isExtra: true },
        { label: "Errors", isNumber: true, isExtra: true },
        { label: "Sent", isNumber: true, isExtra: true },
      ],
      rows: traffic
        .slice(0, domainsListedMax)
        .map(({ domain, requests, hits, blocked, originErrors, bytes }) => [
          domain,
          numberText(requests),
          shareText(hits, requests),
          numberText(blocked),
          numberText(originErrors),
          bytesText(bytes),
        ]),
      ...(rest > 0 && { more: `and ${countText(rest, "domain")} with fewer requests` }),
    },
  ];
}

function botBlocks(requests: number): readonly Block[] {
  if (requests === 0) return [];
  return [
    {
      kind: "text",
      text: `Unreviewed bots sent ${countText(requests, "request")}. Review them: GET /unreviewed-bots/ lists them by domain.`,
    },
  ];
}

function deploymentBlocks(deployments: readonly ReportedDeployment[]): readonly Block[] {
  if (deployments.length === 0) return [];
  const rest = deployments.length - deploymentsListedMax;
  return [
    { kind: "heading", text: "Deployments" },
    {
      kind: "table",
      columns: [
        { label: "Deployment" },
        { label: "Tags", isExtra: true },
        { label: "accel_pack" },
        { label: "Last seen" },
      ],
      rows: deployments
        .slice(0, deploymentsListedMax)
        .map(({ name16, tags, version, lastSeen, isBehind }) => [
          name16,
          tags.join(", "),
          version === null ? "–" : isBehind ? `${version} (not the newest)` : version,
          lastSeen === null ? "never" : timeText(lastSeen),
        ]),
      ...(rest > 0 && { more: `and ${countText(rest, "deployment")} more` }),
    },
  ];
}
