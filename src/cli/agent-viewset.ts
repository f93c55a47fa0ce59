// `accel-agent viewset`: lists the versions that this host keeps of its domains, goes back to one of them,
// and tries again what central wants.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command, unknownVerb } from "../base/command.ts";
import { ask, agentOptions, agentUsage, renderFacts, socketPath } from "./control.ts";

const verbs = ["list", "rollback", "retry", "check"] as const;

export const viewsetCommand: Command = {
  summary:
    "Lists the versions that this host keeps: in force, pinned, on trial, quarantined and why. Goes back to one of them (a pin, told to central), tries again what central wants, or checks their files.",
  usage: [
    "accel-agent viewset list [DOMAIN]",
    "accel-agent viewset rollback DOMAIN [VERSION]",
    "accel-agent viewset retry DOMAIN",
    "accel-agent viewset check",
    "",
    "  VERSION           name, id, or beginning of the manifest's digest (8 characters and more) of a kept version;",
    "                    without it: the version before",
    agentUsage,
    "",
    "rollback pins the host to that version until central activates another one, or until retry.",
    "retry serves what central wants: it lifts a pin, and tries again a version that failed here.",
    "check begins a scrub of all files of all versions, and of the cache, unless one is under way; it reads slowly, and `accel-agent status` tells",
    "where it stands.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, agentOptions, 3);
    const [verb, domain, version] = positionals;
    if (!verbs.some((one) => one === verb)) throw unknownVerb("viewset", verb, verbs);
    if (verb === "check" && domain !== undefined)
      throw new AccelError("USAGE", "viewset check takes no domain: it looks at all of them");
    if (verb !== "list" && verb !== "check" && domain === undefined)
      throw new AccelError("USAGE", `viewset ${verb} takes a domain`);
    if (verb !== "rollback" && version !== undefined)
      throw new AccelError("USAGE", `viewset ${verb} takes no version`);
    const answer = await ask(
      socketPath("accel-agent", values),
      `viewset-${verb}`,
      { domain, version },
      context,
    );
    if (values.json === true) return context.out(`${JSON.stringify(answer, null, 2)}\n`);
    if (verb === "check") return context.out(renderFacts(answer));
    // The shape is what agent/releases.ts makes.
    const facts = answer as ReleaseFacts | readonly ReleaseFacts[];
    context.out(releasesText(Array.isArray(facts) ? facts : [facts as ReleaseFacts]));
  },
};

// What `viewset` says about a domain's versions, for a person to read.

type Ref = {
  readonly viewset_name: string;
  readonly viewset_id: number;
  readonly manifest: string;
};

type ReleaseFacts = {
  readonly domain: string;
  readonly in_force: (Ref & { readonly since: string }) | null;
  readonly wanted: Ref | null;
  readonly standing: string | null;
  readonly pinned: (Ref & { readonly since: string }) | null;
  readonly on_trial_until: string | null;
  readonly prepared?: (Ref & { readonly until: string }) | null;
  readonly kept: readonly (Ref & { readonly activated_at: string; readonly outcome: string })[];
  readonly quarantined: readonly (Ref & { readonly at: string; readonly reason: string })[];
};

function releasesText(domains: readonly ReleaseFacts[]): string {
  if (domains.length === 0) return "this agent serves no domain\n";
  return domains.map(domainText).join("\n");
}

function domainText(facts: ReleaseFacts): string {
  const { domain, in_force: inForce, wanted, pinned, on_trial_until: trial } = facts;
  const lines = [
    `${domain}: ${inForce === null ? "no version of central's is in force" : `${name(inForce)} is in force`}`,
  ];
  if (trial !== null) lines.push(`  on trial until ${trial}`);
  if (pinned !== null) lines.push(`  pinned to it by an operator since ${pinned.since}`);
  if (wanted !== null && wanted.manifest !== inForce?.manifest)
    lines.push(`  central wants ${name(wanted)}: ${facts.standing ?? ""}`);
  const { prepared } = facts;
  if (prepared !== undefined && prepared !== null)
    lines.push(
      `  holds ${name(prepared)} for the decision of the fleet, until ${prepared.until} at the latest`,
    );
  const kept = facts.kept.map((release) => [
    name(release),
    `${release.activated_at}  ${plain(release.outcome)}`,
  ]);
  if (kept.length > 0) lines.push("  kept:", ...aligned(kept));
  const bad = facts.quarantined.map((one) => [name(one), `${one.at}  ${plain(one.reason)}`]);
  if (bad.length > 0) lines.push("  quarantined:", ...aligned(bad));
  return `${lines.join("\n")}\n`;
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const width = Math.max(...rows.map(([left = ""]) => left.length));
  return rows.map(([left = "", right = ""]) => `    ${left.padEnd(width)}  ${right}`);
}

function name({ viewset_name: text, viewset_id: id, manifest }: Ref): string {
  return `${plain(text)} (${id}, ${manifest.slice(0, 12)})`;
}

/** Makes a customer's words harmless on an operator's terminal. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}
