// `accel-agent bots`: what would happen to an address and why; the sets and policies in force.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command, unknownVerb } from "../base/command.ts";
import { ask, agentOptions, agentUsage, socketPath } from "./control.ts";
import { checkedText, listedText, type Checked, type Listed } from "./visitor-text.ts";

export const agentBotsCommand: Command = {
  summary:
    "Says what would happen to an address (and user agent) on each domain and why: set, version, name, range, pair or policy, since when, and what would change it. Lists the sets and policies in force.",
  usage: [
    "accel-agent bots check IP [--ua UA] [--domain DOMAIN]",
    "accel-agent bots list",
    "",
    "  --ua UA           user agent of the request",
    "  --domain DOMAIN   one domain or sub-domain only",
    agentUsage,
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      { ...agentOptions, ua: { type: "string" }, domain: { type: "string" } },
      2,
    );
    const [verb, ip] = positionals;
    if (verb !== "check" && verb !== "list") throw unknownVerb("bots", verb, ["check", "list"]);
    if ((verb === "check") !== (ip !== undefined))
      throw new AccelError(
        "USAGE",
        verb === "check" ? "bots check takes an address" : "bots list takes no arguments",
      );
    const answer = await ask(
      socketPath("accel-agent", values),
      `bots-${verb}`,
      { ip, user_agent: values.ua, domain: values.domain },
      context,
    );
    if (values.json === true) return context.out(`${JSON.stringify(answer, null, 2)}\n`);
    // The shapes are what agent/why-visitor.ts makes.
    context.out(verb === "check" ? checkedText(answer as Checked) : listedText(answer as Listed));
  },
};
