// What is known of the file from which a unit of the agent takes the secret, where it is gone: the agent runs on with a copy, and cannot start.

import { sightOf } from "./absent-settings.ts";
import { agentProgram, placeOf, type UnitPlace } from "./instance.ts";

export type LostSecret = { readonly message: string; readonly hint: string };

/**
 * Says what is wrong where the file is gone from which the unit takes the secret at its next start, and how it comes back; undefined where it is there, or is no unit's. A unit that
 * runs has a copy from its last start.
 */
export function lostSecret(
  path: string,
  { secret: { shown, source }, unit, instance }: SecretPlace = placeOfSecret(path),
): LostSecret | undefined {
  if (path !== shown || sightOf(source) !== "absent") return undefined;
  const copying = `install -o root -g root -m 600 ${shown} ${source}`;
  const name = unit.replace(/\.service$/, "");
  const join = `accel-agent join --central URL${instance === undefined ? "" : ` --instance ${instance}`}`;
  const writing = `install -o root -g root -m 600 /dev/stdin ${source} takes the 32 hex characters that are pasted, until Ctrl-D; then systemctl start ${name}. An owner of the deployment site finds them as secret16 in GET /deployment-site/ID/ of the customer API. Or join again with a code of \`accel-central site enrol\`, which writes the file and starts the agent: ${join}`;
  const sight = sightOf(shown);
  if (sight === "there")
    return {
      message: `${source} is gone; the agent runs with the copy that systemd made of it, and could not start again`,
      hint: `As root, while the agent runs: ${copying}. Without it the unit skips its next start.`,
    };
  // Whether it has ever been there, nobody knows who sees no copy.
  if (sight === "absent")
    return {
      message: `${source} is not there; the agent cannot start`,
      hint: `As root: ${writing}`,
    };
  return {
    message: `${source} is not there; the agent could not start again`,
    hint: `As root, while the agent runs: ${copying}. Otherwise: ${writing}`,
  };
}

export type SecretPlace = Pick<UnitPlace, "secret" | "unit" | "instance">;

/** Returns the unit whose secret is shown at a path; the plain one where none is. */
export function placeOfSecret(path: string): SecretPlace {
  const [, instance] = /^\/run\/credentials\/accel-agent@([^/]+)\.service\//.exec(path) ?? [];
  return placeOf(agentProgram, instance);
}
