// The shorter mails: certificates that expire, releases of accel_pack, unreviewed bots, image variants that are held back.

import type { BotClass } from "../../core/serving/verdict.ts";
import type { ReportedBots, ReportedDeployment } from "../../core/report-facts.ts";
import { classListText } from "../../wire/customer/bot-classes.ts";
import type { Block, MailDocument } from "./document.ts";
import { countText, dayText, numberText } from "./words.ts";

export type Composed = Omit<MailDocument, "unsubscribeUrl" | "footer">;

const listedMax = 30;
const botsListedMax = 15;

type Table = Extract<Block, { kind: "table" }>;

/** `noun` names what a row is about. */
function listed({
  columns,
  rows,
  noun,
  max = listedMax,
}: Pick<Table, "columns" | "rows"> & { readonly noun: string; readonly max?: number }): Block {
  const rest = rows.length - max;
  const more = { more: `and ${countText(rest, noun)} more` };
  return { kind: "table", columns, rows: rows.slice(0, max), ...(rest > 0 && more) };
}

export type ExpiringCertificate = {
  readonly names: readonly string[];
  readonly deployment: string;
  /** ISO 8601. */
  readonly notAfter: string;
  /** Whole days that are left; negative if it has expired. */
  readonly daysLeft: number;
};

export function certificatesMail(
  customer: string,
  certificates: readonly ExpiringCertificate[],
): Composed {
  const expired = certificates.filter(({ daysLeft }) => daysLeft < 0).length;
  const soon = certificates.length - expired;
  const what = [
    ...(expired > 0 ? [`${countText(expired, "certificate")} expired`] : []),
    ...(soon > 0 ? [`${countText(soon, "certificate")} about to expire`] : []),
  ].join(", ");
  const left = (days: number): string =>
    days < 0 ? "expired" : days === 0 ? "less than a day" : countText(days, "day");
  return {
    subject: `${customer}: ${what}`,
    preview: certificates[0]?.names.join(", ") ?? "",
    title: what,
    blocks: [
      {
        kind: "callout",
        tone: expired > 0 ? "bad" : "plain",
        text:
          expired > 0
            ? "Browsers warn visitors of expired certificates."
            : "After that day browsers warn visitors.",
      },
      listed({
        columns: [
          { label: "Names" },
          { label: "Deployment" },
          { label: "Expires" },
          { label: "Left", isNumber: true },
        ],
        rows: certificates
          .toSorted((one, other) => one.notAfter.localeCompare(other.notAfter))
          .map(({ names, deployment, notAfter, daysLeft }) => [
            names.join(", "),
            deployment,
            dayText(notAfter),
            left(daysLeft),
          ]),
        noun: "certificate",
      }),
      {
        kind: "text",
        text: "Upload a renewed one for the same names: POST /upload/certificates/{deployment_name}/. It replaces the old one at once. One that a devlove orders (tls.acme) is tried again by itself; GET /certificate-orders/ says why it was not renewed.",
      },
    ],
  };
}

export function oldVersionsMail(
  customer: string,
  newest: string,
  deployments: readonly ReportedDeployment[],
): Composed {
  const count = countText(deployments.length, "deployment");
  const run = deployments.length === 1 ? "runs" : "run";
  return {
    subject: `${customer}: ${count} ${run} an old accel_pack`,
    preview: `${newest} is the newest version.`,
    title: `${count} ${run} an old accel_pack`,
    blocks: [
      { kind: "text", text: `The newest version is ${newest}.` },
      listed({
        columns: [{ label: "Deployment" }, { label: "Tags" }, { label: "Runs" }],
        rows: deployments.map(({ name16, tags, version }) => [
          name16,
          tags.join(", "),
          version ?? "–",
        ]),
        noun: "deployment",
      }),
      { kind: "text", text: "GET /download/accel_pack/ says where the newest one is." },
    ],
  };
}

export function pushMail(
  customer: string,
  newest: string | null,
  changes: readonly { readonly name16: string; readonly from: string; readonly to: string }[],
): Composed {
  const count = countText(changes.length, "deployment");
  const run = changes.length === 1 ? "runs" : "run";
  const isNewest = newest !== null && changes.every(({ to }) => to === newest);
  return {
    subject: `${customer}: ${count} ${run} another accel_pack`,
    preview: changes.map(({ name16, to }) => `${name16}: ${to}`).join(", "),
    title: `${count} ${run} another accel_pack`,
    blocks: [
      listed({
        columns: [{ label: "Deployment" }, { label: "Before" }, { label: "Now" }],
        rows: changes.map(({ name16, from, to }) => [name16, from, to]),
        noun: "deployment",
      }),
      ...(newest === null
        ? []
        : [
            {
              kind: "text",
              text: isNewest ? "That is the newest version." : `The newest version is ${newest}.`,
            } as const,
          ]),
    ],
  };
}

/** Says of which classes of bots the policy of a domain says the contrary. */
function otherwiseText(classes: readonly BotClass[], canAccess: boolean): string {
  return `Here ${classListText(classes)} ${canAccess ? "are blocked" : "are let in"}.`;
}

/** `canAccess` says whether the policies of all these domains let unreviewed bots in, but for the classes in `otherwise`. */
export function botReport(
  customer: string,
  days: { readonly from: string; readonly until: string },
  canAccess: boolean,
  domains: readonly (ReportedBots & { readonly otherwise: readonly BotClass[] })[],
): Composed {
  const requests = domains.reduce(
    (sum, { bots }) => sum + bots.reduce((all, bot) => all + bot.requests, 0),
    0,
  );
  const span = days.from === days.until ? days.from : `${days.from} to ${days.until}`;
  const verb = canAccess ? "were let in" : "were blocked";
  const title = `Unreviewed bots ${verb}`;
  const rest = domains.length - listedMax;
  return {
    subject: `${customer}: unreviewed bots ${verb}, ${countText(requests, "request")}`,
    preview: `${span}, ${countText(domains.length, "domain")}`,
    title,
    blocks: [
      {
        kind: "text",
        text: canAccess
          ? `${span}. The policy of these domains lets in bots that are in none of your lists. Mark those that do harm as bad bots.`
          : `${span}. The policy of these domains blocks bots that are in none of your lists, search engines and uptime checks among them. Mark those that you want as VIP bots, or allow them by name.`,
      },
      ...domains.slice(0, listedMax).flatMap(({ domain, otherwise, bots }): readonly Block[] => [
        { kind: "heading", text: domain },
        ...(otherwise.length === 0
          ? []
          : [{ kind: "text", text: otherwiseText(otherwise, canAccess) } as const]),
        listed({
          columns: [
            { label: "Bot" },
            { label: "What it is" },
            { label: "Requests", isNumber: true },
          ],
          rows: bots.map((bot) => [bot.name, bot.description ?? "", numberText(bot.requests)]),
          noun: "bot",
          max: botsListedMax,
        }),
      ]),
      ...(rest > 0
        ? [{ kind: "text", text: `And ${countText(rest, "domain")} more.` } as const]
        : []),
      {
        kind: "text",
        text: "GET /unreviewed-bots/ lists them all; POST /mark-as-vip-bot/…, /mark-as-bad-bot/… and /bot-access-policy/ decide.",
      },
    ],
  };
}

/** What the day's number of a domain came to, over all its hosts. */
type HeldBack = {
  readonly domain: string;
  readonly day: string;
  readonly made: number;
  readonly blocked: number;
};

/** `today` is the day (UTC) on which it is sent: blocks of the day before were told late. */
export function imagesMail(
  customer: string,
  today: string,
  domains: readonly HeldBack[],
): Composed {
  const goOn = domains.some(({ day }) => day >= today);
  const what = goOn
    ? "image optimization is held back for today"
    : "image optimization was held back yesterday";
  const names = new Set(domains.map(({ domain }) => domain));
  const count = countText(names.size, "domain");
  const ran = `${count} used up the image variants that a host may try to make in a day (images.variants_per_day_max in the devlove).`;
  return {
    subject: `${customer}: ${what}`,
    preview: [...names].join(", "),
    title: `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
    blocks: [
      {
        kind: "text",
        text: goOn
          ? `${ran} Until 00:00 UTC visitors get the originals of pictures that have no variant yet. Variants that were made before are sent as ever, and nothing is broken.`
          : `${ran} Until 00:00 UTC visitors got the originals of pictures that had no variant. That is over, and a host was late to tell.`,
      },
      listed({
        columns: [
          { label: "Domain" },
          { label: "Day (UTC)" },
          { label: "Made so far", isNumber: true },
          { label: "Held back, at least", isNumber: true },
        ],
        rows: domains.map(({ domain, day, made, blocked }) => [
          domain,
          day,
          numberText(made),
          numberText(blocked),
        ]),
        noun: "domain",
      }),
      {
        kind: "text",
        text: "What was held back is made on the days that follow, as visitors ask for it. If this comes again, raise images.variants_per_day_max in the devlove, or list fewer formats and widths. GET /analytics/{domain}/images/ has the numbers of each day.",
      },
    ],
  };
}
