// `accel-central customer`: customers with what they have.

import { readArgs, type Command, unknownVerb } from "../base/command.ts";
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

const shownColumns = [
  "id",
  "name",
  "when_created",
  "created_by",
  "users",
  "deployment_sites",
  "domains",
];

export const customerCommand: Command = {
  summary: "Lists customers, shows one with its users, and makes one without a trial.",
  usage: [
    "accel-central customer list",
    "accel-central customer show ID",
    "accel-central customer add NAME",
    "",
    controlUsage,
    "",
    "A customer gets users by `accel-central user add --customer ID`; the first of them may delete it.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, controlOptions, 2);
    const [verb, one] = positionals;
    const path = socketPath("accel-central", values);
    if (verb === "list") {
      if (one !== undefined) throw new AccelError("USAGE", "customer list takes no name");
      const rows: Row[] = [];
      for await (const row of callProgram(path, "customer-list", {}, context.stop))
        rows.push(Object(row));
      context.out(
        values.json === true
          ? `${JSON.stringify(rows, null, 2)}\n`
          : textTable(rows, shownColumns, "no customers"),
      );
      return;
    }
    const { command, asked } = askedOf(verb, one, operatorName(context.env));
    const answer = await ask(path, command, asked, context);
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
    );
  },
};

function askedOf(
  verb: string | undefined,
  one: string | undefined,
  operator: string,
): { readonly command: string; readonly asked: object } {
  switch (verb) {
    case "show": {
      const id = idGiven("customer show", one);
      if (id === undefined) throw new AccelError("USAGE", "customer show takes a number");
      return { command: "customer-show", asked: { customer_id: id } };
    }
    case "add":
      if (one === undefined) throw new AccelError("USAGE", "customer add takes a name");
      return { command: "customer-add", asked: { operator, name: one } };
    default:
      throw unknownVerb("customer", verb, ["list", "show", "add"]);
  }
}
