// Activating a version on all instances of a fleet or on none: what central does next, given what it knows. Pure.
//
// Each instance is asked to prepare the version and votes by its receipt; a yes is a promise to be able to serve it.
// Members are the instances that are live when they are asked, and those that become live before the decision. All yes:
// the version is activated everywhere. A no, a loss or the deadline: nothing changes anywhere. The decision is one
// transaction; before it every fault gives the activation up, behind it none does.

export type Vote =
  | { readonly kind: "yes" }
  | { readonly kind: "no"; readonly reason: string }
  | { readonly kind: "awaited" };

export type Member = {
  readonly deploymentSiteId: number;
  readonly instanceId: string;
  /** Whether it has been out of touch for too long to be waited for. */
  readonly isLost: boolean;
  readonly vote: Vote;
};

export type FleetFacts = {
  readonly members: readonly Member[];
  readonly isPastDeadline: boolean;
};

export type FleetStep =
  | { readonly kind: "wait" }
  | { readonly kind: "decide" }
  | { readonly kind: "abort"; readonly reason: string };

/** The members of which an abort for want of votes names. */
const namedMax = 3;

export function nextFleetStep({ members, isPastDeadline }: FleetFacts): FleetStep {
  for (const member of members)
    if (member.vote.kind === "no")
      return abort(`${nameOf(member)} refuses it: ${member.vote.reason}`);
  const silent = members.filter(({ vote }) => vote.kind === "awaited");
  if (isPastDeadline) return abort(`the deadline passed before the decision; ${missing(silent)}`);
  const lost = members.find(({ isLost }) => isLost);
  if (lost !== undefined) return abort(`${nameOf(lost)} was lost before the decision`);
  if (members.length === 0) return abort("no instance of the domain's deployments is left");
  return silent.length === 0 ? { kind: "decide" } : { kind: "wait" };
}

function abort(reason: string): FleetStep {
  return { kind: "abort", reason };
}

function nameOf({ deploymentSiteId, instanceId }: Member): string {
  return `instance ${instanceId} of deployment site ${deploymentSiteId}`;
}

function missing(silent: readonly Member[]): string {
  if (silent.length === 0) return "all had voted for it";
  const named = silent.slice(0, namedMax).map(nameOf).join(", ");
  const more = silent.length > namedMax ? ` and ${silent.length - namedMax} more` : "";
  return `no vote came from ${named}${more}`;
}
