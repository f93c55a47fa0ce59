// The template unit accel-agent@.service, made of the one unit: what an instance has of its own is below its name, and everything else is the same.

/** What differs, each with how often the unit has it at least. A change of the unit that loses one of them fails here, not on a host. */
const differences: readonly (readonly [pattern: RegExp, instead: string, least: number])[] = [
  [/\/etc\/accel-agent\//g, "/etc/accel-agent/%i/", 6],
  [/%S\/accel-agent\//g, "%S/accel-agent-%i/", 1],
  [/^StateDirectory=accel-agent$/gm, "StateDirectory=accel-agent-%i", 1],
  // Named after the unit, all instances and the plain one would be the same user: each could read the others' state.
  [/^DynamicUser=yes$/gm, "DynamicUser=yes\nUser=accel-agent-%i", 1],
  [/^Description=accel-agent,/gm, "Description=accel-agent %i,", 1],
  [/^# accel-agent: serves/gm, "# accel-agent@NAME: a further agent of this host, which serves", 1],
  [/systemctl edit accel-agent\)/g, "systemctl edit accel-agent@NAME)", 1],
];

export function instanceUnit(unit: string): string {
  return differences.reduce((text, [pattern, instead, least]) => {
    if ((text.match(pattern) ?? []).length < least)
      throw new Error(
        `systemd/accel-agent.service has no ${pattern} any more, by which accel-agent@.service is made`,
      );
    return text.replaceAll(pattern, instead);
  }, unit);
}
