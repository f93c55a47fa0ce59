// What `viewset` says of a domain's versions, for a person to read. The shapes are those that agent/releases.ts makes.

type Ref = {
  readonly viewset_name: string;
  readonly viewset_id: number;
  readonly manifest: string;
};

export type ReleaseFacts = {
  readonly domain: string;
  readonly in_force: (Ref & { readonly since: string }) | null;
  readonly wanted: Ref | null;
  readonly standing: string | null;
  readonly pinned: (Ref & { readonly since: string }) | null;
  readonly on_trial_until: string | null;
  readonly kept: readonly (Ref & { readonly activated_at: string; readonly outcome: string })[];
  readonly quarantined: readonly (Ref & { readonly at: string; readonly reason: string })[];
};

export function releasesText(domains: readonly ReleaseFacts[]): string {
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

/** A customer's words on an operator's terminal. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}
