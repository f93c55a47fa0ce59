// `accel-central token`: tokens of the customer API.

import { readArgs, type Command, unknownVerb } from "../base/command.ts";
import { duration } from "../base/settings-fields.ts";
import { AccelError } from "../core/faults.ts";
import { roles } from "../core/roles.ts";
import {
  ask,
  callProgram,
  controlOptions,
  controlUsage,
  renderFacts,
  socketPath,
} from "./control.ts";
import { idGiven, operatorName } from "./operator.ts";
import { textTable, type Row } from "./text.ts";

const options = {
  ...controlOptions,
  user: { type: "string" },
  customer: { type: "string" },
  all: { type: "boolean" },
  name: { type: "string" },
  role: { type: "string" },
  domains: { type: "string" },
  for: { type: "string" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];

export const tokenCommand: Command = {
  summary:
    "Lists, issues and revokes tokens of the customer API: what each may do, where and for how long.",
  usage: [
    "accel-central token list [--user NAME] [--customer ID] [--all]",
    "accel-central token issue USER [--name TEXT] [--role ROLE] [--domains LIST] [--for TIME]",
    "accel-central token revoke ID",
    "accel-central token revoke --user NAME",
    "",
    "  --user NAME       tokens of this user; with revoke all of them that are in force",
    "  --customer ID     tokens of the users of this customer",
    "  --all             include tokens that were revoked or have expired",
    "  --name TEXT       what the token is for, as lists show it",
    `  --role ROLE       ${roles.join(", ")} (default): each may do what those before it may`,
    "  --domains LIST    main domains, separated by commas, that it is for alone (default: everything of the customer)",
    "  --for TIME        how long it can be used, such as 90d (default: until it is revoked)",
    controlUsage,
    "",
    "A token is shown once, when it is issued: central keeps only its digest.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 2);
    const [verb, one] = positionals;
    const terms = termsGiven(values);
    if (verb !== "issue" && Object.keys(terms).length > 0)
      throw new AccelError("USAGE", "--name, --role, --domains and --for go with token issue only");
    if (verb !== "list" && (values.customer !== undefined || values.all !== undefined))
      throw new AccelError("USAGE", "--customer and --all go with token list only");
    const path = socketPath("accel-central", values);
    const operator = operatorName(context.env);
    const { json } = values;
    switch (verb) {
      case "list": {
        if (one !== undefined) throw new AccelError("USAGE", "token list takes --user NAME");
        const rows: Row[] = [];
        for await (const row of callProgram(path, "token-list", listOf(values), context.stop))
          rows.push(Object(row));
        return context.out(json === true ? facts(rows) : tokenTable(rows));
      }
      case "issue": {
        if (one === undefined || values.user !== undefined)
          throw new AccelError("USAGE", "token issue takes the name of a user");
        const issued = await ask(
          path,
          "token-issue",
          { operator, username: one, ...terms },
          context,
        );
        return context.out(json === true ? facts(issued) : renderFacts(issued));
      }
      case "revoke": {
        const asked = { operator, ...revokedOf(one, values.user) };
        const answer = await ask(path, "token-revoke", asked, context);
        if (json === true) return context.out(facts(answer));
        const { revoked = [], recovery_links: links = 0 } = Object(answer) as {
          revoked?: readonly Row[];
          recovery_links?: number;
        };
        const voided = links === 0 ? "" : `links to a new token that are void: ${links}\n`;
        return context.out(`${tokenTable(revoked)}${voided}`);
      }
      default:
        throw unknownVerb("token", verb, ["list", "issue", "revoke"]);
    }
  },
};

/** What `token issue` is asked for beside the user. */
function termsGiven({ name, role, domains, for: lifetime }: Values): object {
  return {
    ...(name !== undefined && { name }),
    ...(role !== undefined && { role }),
    ...(domains !== undefined && { domains: namesOf(domains) }),
    ...(lifetime !== undefined && { lifetime_seconds: secondsOf(lifetime) }),
  };
}

function namesOf(text: string): readonly string[] {
  const names = text.split(",").map((one) => one.trim());
  if (names.includes(""))
    throw new AccelError("USAGE", `--domains takes names, separated by commas, not ${text}`);
  return names;
}

function secondsOf(text: string): number {
  const read = duration("1min", "3650d")(text);
  if (read.ok) return Math.floor(read.value / 1_000);
  throw new AccelError("USAGE", `--for ${text}: ${read.reason}`);
}

function listOf({ user, customer, all }: Values): object {
  const id = idGiven("--customer", customer);
  return {
    ...(user !== undefined && { username: user }),
    ...(id !== undefined && { customer_id: id }),
    ...(all === true && { all }),
  };
}

function revokedOf(id: string | undefined, user: string | undefined): object {
  if ((id === undefined) === (user === undefined))
    throw new AccelError("USAGE", "token revoke takes the number of a token, or --user NAME");
  return user === undefined ? { token_id: idGiven("token revoke", id) } : { username: user };
}

function facts(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function tokenTable(rows: readonly Row[]): string {
  const names = ["id", "username", "customer_id", "name", "role", "domains", "when_created"];
  const times = ["when_expires", "when_last_used", "when_revoked"];
  const shown = rows.map((row) => ({ ...row, domains: domainsText(row["domains"]) }));
  return textTable(shown, [...names, ...times], "no tokens");
}

function domainsText(domains: unknown): string {
  return Array.isArray(domains) ? domains.join(",") : "all";
}
