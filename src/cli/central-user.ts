// `accel-central user`: users of customers, what they may, and their passwords.

import type { CommandContext, Command } from "../base/command.ts";
import { readArgs, unknownVerb } from "../base/command.ts";
import { readSecret } from "../base/secret-input.ts";
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
import { textTable, type Row } from "./text.ts";

const options = {
  ...controlOptions,
  customer: { type: "string" },
  email: { type: "string" },
  "first-name": { type: "string" },
  "last-name": { type: "string" },
  password: { type: "boolean" },
  none: { type: "boolean" },
  token: { type: "boolean" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];

const shownColumns = [
  "id",
  "username",
  "customer_id",
  "email",
  "may_publish",
  "may_read_logs",
  "has_password",
  "tokens",
  "when_locked",
];

export const userCommand: Command = {
  summary: "Lists, makes and locks users of customers, and sets their passwords and rights.",
  usage: [
    "accel-central user add NAME --customer ID [--email E] [--first-name N] [--last-name N] [--password] [--token]",
    "accel-central user list [--customer ID]",
    "accel-central user show NAME",
    "accel-central user password NAME [--none]",
    "accel-central user grant NAME publish|read-logs",
    "accel-central user revoke NAME publish|read-logs",
    "accel-central user email NAME ADDRESS",
    "accel-central user lock NAME",
    "accel-central user unlock NAME",
    "",
    "  --customer ID     the customer of the user",
    "  --email E         the user's address, as `user email` sets it",
    "  --first-name N    the user's first name",
    "  --last-name N     the user's last name",
    "  --password        set a password, which is read as by `user password`",
    "  --none            with password: the user has none from now on",
    "  --token           issue a token, which is shown only this once",
    controlUsage,
    "",
    "A password is the first line of standard input; on a terminal it is asked for twice and not shown. Whoever has it signs in to the console with all rights of the user, and uploads packages where the user may. Another password, or none, ends the sessions.",
    "publish: may upload accelerator packages; nobody may until it is granted. read-logs: may read the request logs of its customer; all may until it is revoked.",
    "email: sets the address to which the recovery of a lost token is sent; an empty one means none. Links that were sent to the address before are void.",
    "lock: no token, password or link of the user is valid until it is unlocked, and it gets no new link by mail. Afterwards its tokens are valid again, unless `token revoke --user` ends them.",
    "The first user of a customer that `accel-central customer add` made may delete it; any other customer may only be deleted by the user who created it.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 3);
    const [verb, name, what] = positionals;
    refuseStray(verb, values);
    if (verb === "list") {
      if (name !== undefined) throw new AccelError("USAGE", "user list takes no name");
      return list(values, context);
    }
    const parameters = await parametersOf(verb, name, what, values, context);
    const path = socketPath("accel-central", values);
    const answer = await ask(path, parameters.command, parameters.asked, context);
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
    );
  },
};

const ofAdd = ["email", "first-name", "last-name", "password", "token"] as const;

function refuseStray(verb: string | undefined, values: Values): void {
  const stray = ofAdd.find((name) => values[name] !== undefined);
  if (verb !== "add" && stray !== undefined)
    throw new AccelError("USAGE", `--${stray} goes with user add only`);
  if (verb !== "password" && values.none !== undefined)
    throw new AccelError("USAGE", "--none goes with user password only");
  if (verb !== "add" && verb !== "list" && values.customer !== undefined)
    throw new AccelError("USAGE", "--customer goes with user add and user list only");
}

/** What each verb takes behind the name. */
const secondWords: Readonly<Record<string, string>> = {
  grant: "publish or read-logs",
  revoke: "publish or read-logs",
  email: "an address",
};

type Asked = { readonly command: string; readonly asked: object };

async function parametersOf(
  verb: string | undefined,
  username: string | undefined,
  what: string | undefined,
  values: Values,
  context: CommandContext,
): Promise<Asked> {
  const verbs = ["add", "list", "show", "password", "grant", "revoke", "email", "lock", "unlock"];
  if (verb === undefined || !verbs.includes(verb)) throw unknownVerb("user", verb, verbs);
  if (username === undefined) throw new AccelError("USAGE", `user ${verb} takes a name`);
  const wanted = Object.hasOwn(secondWords, verb) ? secondWords[verb] : undefined;
  if ((wanted !== undefined) !== (what !== undefined))
    throw new AccelError(
      "USAGE",
      `user ${verb} takes a name${wanted === undefined ? "" : ` and ${wanted}`}`,
    );
  const operator = operatorName(context.env);
  switch (verb) {
    case "show":
      return { command: "user-show", asked: { username } };
    case "password":
      return {
        command: "user-password",
        asked: {
          operator,
          username,
          password: values.none === true ? null : await password(context),
        },
      };
    case "add":
      return {
        command: "user-add",
        asked: { operator, username, ...(await addedOf(values, context)) },
      };
    case "email":
      return { command: "user-email", asked: { operator, username, email: what } };
    case "lock":
    case "unlock":
      return { command: "user-lock", asked: { operator, username, locked: verb === "lock" } };
    default: {
      const asked = { operator, username, permission: what, granted: verb === "grant" };
      return { command: "user-permit", asked };
    }
  }
}

async function addedOf(values: Values, context: CommandContext): Promise<object> {
  const customer = idGiven("--customer", values.customer);
  if (customer === undefined) throw new AccelError("USAGE", "user add takes --customer ID");
  return {
    customer_id: customer,
    ...(values.email !== undefined && { email: values.email }),
    ...(values["first-name"] !== undefined && { first_name: values["first-name"] }),
    ...(values["last-name"] !== undefined && { last_name: values["last-name"] }),
    ...(values.token === true && { token: true }),
    ...(values.password === true && { password: await password(context) }),
  };
}

async function password({ stop }: CommandContext): Promise<string> {
  const say = (text: string): void => void process.stderr.write(text);
  return readSecret("password", process.stdin, say, stop);
}

async function list(values: Values, { out, stop }: CommandContext): Promise<void> {
  const customer = idGiven("--customer", values.customer);
  const asked = customer === undefined ? {} : { customer_id: customer };
  const rows: Row[] = [];
  const path = socketPath("accel-central", values);
  for await (const row of callProgram(path, "user-list", asked, stop)) rows.push(Object(row));
  out(
    values.json === true
      ? `${JSON.stringify(rows, null, 2)}\n`
      : textTable(rows, shownColumns, "no users"),
  );
}
