// `accel-central site`: deployment sites, and codes with which hosts join them.

import { readArgs, type Command, type CommandContext, unknownVerb } from "../base/command.ts";
import { duration } from "../base/settings-fields.ts";
import { AccelError } from "../core/faults.ts";
import {
  ask,
  callProgram,
  controlOptions,
  controlUsage,
  renderFacts,
  socketPath,
} from "./control.ts";
import { idGiven, operatorName } from "./operator.ts";
import { shellWord, textTable, type Row } from "./text.ts";

const options = {
  ...controlOptions,
  customer: { type: "string" },
  user: { type: "string" },
  tags: { type: "string" },
  uses: { type: "string" },
  for: { type: "string" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];
type Verb = "list" | "add" | "enrol" | "codes" | "revoke";

/** The options of each verb beside those of every command. */
const optionsOf: Readonly<Record<Verb, readonly (keyof Values)[]>> = {
  list: ["customer"],
  add: ["user", "tags"],
  enrol: ["uses", "for"],
  codes: [],
  revoke: [],
};

export const siteCommand: Command = {
  summary: "Lists and makes deployment sites, and the codes with which hosts join them.",
  usage: [
    "accel-central site list [--customer ID]",
    "accel-central site add --user NAME [--tags TAGS]",
    "accel-central site enrol SITE [--uses N] [--for TIME]",
    "accel-central site codes SITE",
    "accel-central site revoke SITE CODE",
    "",
    "  --customer ID     the sites of this customer",
    "  --user NAME       the user to whom the new site belongs, who may delete it",
    "  --tags TAGS       tags of the new site, separated by commas",
    "  --uses N          how many hosts may join with the code (default 1, at most 100)",
    "  --for TIME        how long the code can be used (default 1h; 1min to 7d)",
    controlUsage,
    "",
    "SITE is the number of a deployment site, CODE the number of a code in `site codes`.",
    "enrol: prints a code for `accel-agent join` on the new host. The code is shown once, with its number: central keeps only its digest.",
    "codes: one is used by the exchange for name and secret. A host whose join fails behind that gives it again within ten minutes.",
    "revoke: nobody joins with the code any more. Hosts that have joined stay.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 3, optionsOf);
    const [given = "", site, code] = positionals;
    const verb = verbOf(given);
    const stray = (["customer", "user", "tags", "uses", "for"] as const).find(
      (name) => values[name] !== undefined && !optionsOf[verb].includes(name),
    );
    if (stray !== undefined)
      throw new AccelError("USAGE", `--${stray} does not go with site ${verb}`);
    const wanted = verb === "revoke" ? 3 : verb === "enrol" || verb === "codes" ? 2 : 1;
    if (positionals.length !== wanted)
      throw new AccelError(
        "USAGE",
        `site ${verb} takes ${["no number", "the number of a site", "the numbers of a site and of a code"][wanted - 1]}${positionals.length > wanted && wanted > 1 ? " alone" : ""}`,
      );
    const path = socketPath("accel-central", values);
    await commands[verb]({ path, values, site: site ?? "", code: code ?? "" }, context);
  },
};

type Asked = {
  readonly path: string;
  readonly values: Values;
  readonly site: string;
  readonly code: string;
};

const commands: Readonly<Record<Verb, (asked: Asked, context: CommandContext) => Promise<void>>> = {
  async list({ path, values }, context) {
    const id = idGiven("--customer", values.customer);
    const asked = id === undefined ? {} : { customer_id: id };
    await table(path, "site-list", asked, values, context, {
      names: ["id", "name16", "customer_id", "tags", "when_created"],
      empty: "no deployment sites",
    });
  },
  async add({ path, values }, context) {
    const { user: username, tags } = values;
    if (username === undefined) throw new AccelError("USAGE", "site add takes --user NAME");
    const operator = operatorName(context.env);
    const asked = { operator, username, ...(tags !== undefined && { tags }) };
    show(await ask(path, "site-add", asked, context), values, context);
  },
  async enrol({ path, values, site }, context) {
    const made = await ask(
      path,
      "site-enrol",
      {
        operator: operatorName(context.env),
        deployment_site_id: idGiven("site enrol", site),
        ...(values.uses !== undefined && { uses: idGiven("--uses", values.uses) }),
        ...(values.for !== undefined && { lifetime_seconds: secondsOf(values.for) }),
      },
      context,
    );
    if (values.json === true) return show(made, values, context);
    context.out(`${joinText(Object(made) as Row)}\n${revokeText(Object(made) as Row, values)}`);
  },
  async codes({ path, values, site }, context) {
    const asked = { deployment_site_id: idGiven("site codes", site) };
    await table(path, "site-codes", asked, values, context, {
      names: [
        "id",
        "state",
        "used",
        "uses",
        "when_last_used",
        "last_used_from",
        "when_expires",
        "created_by",
      ],
      empty: "no codes",
    });
  },
  async revoke({ path, values, site, code }, context) {
    const asked = {
      operator: operatorName(context.env),
      deployment_site_id: idGiven("site revoke", site),
      enrolment_id: idGiven("site revoke", code),
    };
    show(await ask(path, "site-revoke-code", asked, context), values, context);
  },
};

/** Says how a host joins with a code, in a line that works as it stands, and with more behind it, where central's settings name its address. */
function joinText(made: Row): string {
  const { code, uses, when_expires: until, central_url: url, base_url: base } = made;
  const hosts = uses === 1 ? "" : ` and on ${String(uses)} hosts at most`;
  const isKnown = typeof url === "string";
  const address = isKnown
    ? ""
    : `\nURL is the https address by which hosts reach this central, such as https://central.example.com. Its settings do not name one: base_url is ${String(base)}.\n`;
  return `${String(code)}\n\nOn the new host, until ${String(until)}${hosts}:\n  accel-agent join --central ${isKnown ? wordOf(url) : "URL"}\n\nIt asks for the code. A further agent of a host takes --instance NAME, and a host that has joined --replace.\n${address}`;
}

/** Says which number the code has, which is not in it, and how it is revoked at the same central. */
function revokeText({ id, deployment_site_id: site }: Row, values: Values): string {
  const told = (["config", "state-dir"] as const).flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : [` --${name} ${wordOf(value)}`];
  });
  return `It is code ${String(id)} of deployment site ${String(site)}. This revokes it:\n  accel-central site revoke ${String(site)} ${String(id)}${told.join("")}\n`;
}

const wordOf = (text: string): string => (/^[\w.:/-]+$/.test(text) ? text : shellWord(text));

function verbOf(given: string): Verb {
  const verb = (Object.keys(optionsOf) as Verb[]).find((one) => one === given);
  if (verb === undefined) throw unknownVerb("site", given, Object.keys(optionsOf));
  return verb;
}

function secondsOf(text: string): number {
  const read = duration("1min", "7d")(text);
  if (!read.ok) throw new AccelError("USAGE", `--for ${text}: ${read.reason}`);
  return Math.round(read.value / 1_000);
}

async function table(
  path: string,
  command: string,
  asked: object,
  { json }: Values,
  { out, stop }: CommandContext,
  { names, empty }: { readonly names: readonly string[]; readonly empty: string },
): Promise<void> {
  const rows: Row[] = [];
  for await (const row of callProgram(path, command, asked, stop)) rows.push(Object(row));
  out(json === true ? `${JSON.stringify(rows, null, 2)}\n` : textTable(rows, names, empty));
}

function show(facts: unknown, { json }: Values, { out }: CommandContext): void {
  out(json === true ? `${JSON.stringify(facts, null, 2)}\n` : renderFacts(facts));
}
