// `accel-central audit`: who changed what, and when.

import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { AccelError } from "../core/faults.ts";
import { callProgram, controlOptions, controlUsage, socketPath } from "./control.ts";
import { idGiven } from "./operator.ts";
import { plain } from "./text.ts";

const options = {
  ...controlOptions,
  customer: { type: "string" },
  user: { type: "string" },
  since: { type: "string" },
  lines: { type: "string" },
  follow: { type: "boolean" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];

export const auditCommand: Command = {
  summary: "Shows who changed what through the customer API or an operator's command, and when.",
  usage: [
    "accel-central audit [--customer ID] [--user NAME] [--since TIME|AGE] [--lines N] [--follow]",
    "",
    "  --customer ID     only changes of this customer",
    "  --user NAME       only changes by this user, or by this account of the host",
    "  --since TIME|AGE  only changes since a time (2026-11-22T07:30:00Z), or within a duration (90min, 2h, 30d)",
    "  --lines N         the newest N (default 50; with --since all)",
    "  --follow          continue with what comes, until interrupted",
    controlUsage,
    "",
    "With --json each line is one object. Secrets are never in it; long texts are represented by length and digest.",
  ].join("\n"),
  async run(context) {
    const { values } = readArgs(context.args, options);
    await show(values, context, new Date());
  },
};

async function show(values: Values, { out, stop }: CommandContext, now: Date): Promise<void> {
  const customer = idGiven("--customer", values.customer);
  const since = values.since === undefined ? undefined : sinceOf(values.since, now);
  const asked = {
    ...(customer !== undefined && { customer_id: customer }),
    ...(values.user !== undefined && { who: values.user }),
    ...(since !== undefined && { since }),
    ...(values.lines !== undefined && { lines: linesOf(values.lines) }),
    ...(values.follow === true && { follow: true }),
  };
  const answers = callProgram(socketPath("accel-central", values), "audit", asked, stop);
  try {
    for await (const answer of answers) {
      if ("following" in Object(answer)) continue;
      out(values.json === true ? `${JSON.stringify(answer)}\n` : lineText(Object(answer)));
    }
  } catch (error) {
    if (!stop.aborted) throw error; // Interrupted: that is how following ends.
  }
}

const unitMs: Readonly<Record<string, number>> = {
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

function sinceOf(text: string, now: Date): string {
  const age = /^(\d{1,6})(s|min|h|d)$/.exec(text);
  if (age === null) {
    if (Number.isNaN(Date.parse(text)))
      throw new AccelError(
        "USAGE",
        `${text} is no time: write it as 2026-11-22T07:30:00Z, or how long ago, as 30s, 10min, 2h or 30d`,
      );
    return text;
  }
  return new Date(now.getTime() - Number(age[1]) * (unitMs[age[2] ?? ""] ?? 0)).toISOString();
}

function linesOf(text: string): number {
  if (!/^\d{1,7}$/.test(text)) throw new AccelError("USAGE", `--lines takes a number, not ${text}`);
  return Number(text);
}

type Line = {
  readonly at: string;
  readonly via: string;
  readonly who: string;
  readonly customer_id: number | null;
  readonly action: string;
  readonly ids: object;
  readonly change: object;
  readonly address: string | null;
};

function lineText({ at, via, who, customer_id: customer, action, ids, change, address }: Line) {
  const parts = [
    at,
    via === "operator"
      ? `${who} here`
      : `${who || "anyone"}${address === null ? "" : ` from ${address}`}`,
    customer === null ? "" : `customer ${customer}`,
    action,
    members(ids),
    members(change) === "" ? "" : `← ${members(change)}`,
  ];
  return `${plain(parts.filter((part) => part !== "").join("  "))}\n`;
}

function members(value: object): string {
  return Object.entries(value)
    .map(([name, one]) => `${name}=${typeof one === "string" ? one : JSON.stringify(one)}`)
    .join(" ");
}
